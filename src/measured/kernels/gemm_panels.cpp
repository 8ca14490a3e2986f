// Matrix products of one to three rows from the layout that a backend chose for many, in panels of
// outputs: a generation then holds its weights once. Each input is multiplied with the neighbouring
// outputs of a panel, which is read once, sequentially. The backend itself reads its layout as fast
// for more rows.
#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "headroom/expr.h"
#include "linear_kernels.h"
#include "memory_nodes.h"
#include "parallel.h"
#include "simd.h"

namespace headroom::measured {

namespace {

using simd::Floats;
using simd::kLanes;

constexpr std::size_t kMostRows = 3;
/// Vectors of outputs per register block.
constexpr std::size_t kVectors = 4;
constexpr std::int64_t kColumns = kVectors * kLanes;

/// Panels per register block, with AVX-512 as many as keep the sums in registers: the processor
/// prefetches a few long streams better than one.
constexpr std::size_t panels_at_once(std::size_t rows) { return rows == 1 ? 4 : 2; }

/// Operands: x [rows, in] and y [rows, out].
struct RowOperands {
  const float* x = nullptr;
  float* y = nullptr;
};

/// W, its bias and its epilogue.
struct PanelProduct {
  WeightPanels panels;
  std::span<const float> bias;
  Epilogue epilogue = Epilogue::none;

  [[nodiscard]] const float* column(std::int64_t number) const {
    return panels.first + number / panels.width * panels.stride + number % panels.width;
  }
};

/// Stores the sums of the columns from `column` on that exist, or adds them to y.
template <std::size_t vectors>
void store_sums(const PanelProduct& product, const std::array<Floats, vectors>& sums,
                std::int64_t column, float* y) {
  const bool adds = product.epilogue == Epilogue::add_residual;
  simd::unroll<vectors>([&](auto v) {
    const std::int64_t first = column + static_cast<std::int64_t>(v) * kLanes;
    const std::int64_t count = std::min(kLanes, product.panels.out - first);
    for (std::int64_t i = 0; i < count; ++i) {
      const float sum = sums[v][static_cast<int>(i)];
      y[first + i] = adds ? y[first + i] + sum : sum;
    }
  });
}

/// Products of `vectors` vectors of columns from `column` on, in `panels` panels `distance` columns
/// apart.
template <std::size_t rows, std::size_t vectors, std::size_t panels>
void multiply_block(const PanelProduct& product, RowOperands at, std::int64_t column,
                    std::int64_t distance) {
  const std::int64_t in = product.panels.in;
  const std::int64_t width = product.panels.width;
  std::array<std::array<std::array<Floats, vectors>, panels>, rows> sums = {};
  std::array<const float*, panels> from;
  for (std::size_t p = 0; p < panels; ++p) {
    from[p] = product.column(column + static_cast<std::int64_t>(p) * distance);
  }
  for (std::int64_t i = 0; i < in; ++i) {
    std::array<Floats, rows> x;
    simd::unroll<rows>(
        [&](auto r) { x[r] = simd::broadcast(at.x[static_cast<std::int64_t>(r) * in + i]); });
    simd::unroll<panels>([&](auto p) {
      simd::unroll<vectors>([&](auto v) {
        const Floats w = simd::load(from[p] + i * width + static_cast<std::int64_t>(v) * kLanes);
        simd::unroll<rows>([&](auto r) { sums[r][p][v] += x[r] * w; });
      });
    });
  }
  simd::unroll<rows>([&](auto r) {
    float* const y = at.y + static_cast<std::int64_t>(r) * product.panels.out;
    simd::unroll<panels>([&](auto p) {
      store_sums(product, sums[r][p], column + static_cast<std::int64_t>(p) * distance, y);
    });
  });
}

/// Products of neighbouring columns of one panel, whole vectors.
template <std::size_t rows>
void multiply_columns(const PanelProduct& product, RowOperands at, Range columns) {
  for (; columns.size() >= kColumns; columns.begin += kColumns) {
    multiply_block<rows, kVectors, 1>(product, at, columns.begin, 0);
  }
  for (; columns.size() > 0; columns.begin += kLanes) {
    multiply_block<rows, 1, 1>(product, at, columns.begin, 0);
  }
}

/// All columns of `range`, whole vectors, for a constant number of rows.
template <std::size_t rows>
void multiply_range(const PanelProduct& product, RowOperands at, Range range) {
  constexpr auto kPanels = static_cast<std::int64_t>(panels_at_once(rows));
  const std::int64_t width = product.panels.width;
  // Panels of a block are far apart, so that each continues its own stream.
  const bool whole = width % kColumns == 0 && range.begin % width == 0;
  const std::int64_t distance = whole ? range.size() / (kPanels * width) * width : 0;
  for (std::int64_t i = 0; i < distance; i += kColumns) {
    multiply_block<rows, kVectors, panels_at_once(rows)>(product, at, range.begin + i, distance);
  }
  std::int64_t column = range.begin + kPanels * distance;
  while (column < range.end) {
    const std::int64_t end = std::min(range.end, column / width * width + width);
    multiply_columns<rows>(product, at, {column, end});
    column = end;
  }
  const std::int64_t columns = std::min(range.end, product.panels.out) - range.begin;
  apply_epilogue(
      product.epilogue, product.bias.empty() ? nullptr : product.bias.data() + range.begin,
      {at.y + range.begin, product.panels.out, static_cast<std::int64_t>(rows), columns});
}

/// Calls multiply_range for 1 to 3 `rows`.
template <std::size_t max_rows = kMostRows>
void dispatch(const PanelProduct& product, RowOperands at, std::int64_t rows, Range range) {
  if (rows == static_cast<std::int64_t>(max_rows)) {
    multiply_range<max_rows>(product, at, range);
  } else if constexpr (max_rows > 1) {
    dispatch<max_rows - 1>(product, at, rows, range);
  }
}

/// Columns that threads share out in multiples of this: panels, or parts of them where panels
/// would leave threads idle.
std::int64_t granule_of(const WeightPanels& panels, std::int64_t threads) {
  std::int64_t granule = panels.width;
  while (granule % (2 * kLanes) == 0 && !is_balanced(panels.out, granule, threads)) granule /= 2;
  return granule;
}

class PanelKernel : public LinearKernel {
 public:
  explicit PanelKernel(const PanelProduct& product) : product_(product) {}

  [[nodiscard]] std::int64_t most_rows() const override { return kMostRows; }

  void prepare(std::int64_t /*rows*/) override {}

  void run(const float* x, float* y, std::int64_t rows) override {
    const WeightPanels& panels = product_.panels;
    const std::int64_t padded = round_up(panels.out, kLanes);
#pragma omp parallel if (panels.in * panels.out >= kSerialElements)
    {
      const Range range = thread_range(padded, granule_of(panels, omp_get_num_threads()));
      if (range.size() > 0) dispatch(product_, {x, y}, rows, range);
    }
  }

  /// The other kernel holds them.
  [[nodiscard]] std::int64_t held_bytes() const override { return 0; }

  [[nodiscard]] std::int64_t weight_bytes() const override {
    return product_.panels.in * product_.panels.out * static_cast<std::int64_t>(sizeof(float));
  }

  [[nodiscard]] bool read_row(std::int64_t row, float* to) const override {
    const float* const from = product_.column(row);
    for (std::int64_t i = 0; i < product_.panels.in; ++i) to[i] = from[i * product_.panels.width];
    return true;
  }

 private:
  PanelProduct product_;
};

}  // namespace

bool can_stream_panels(std::int64_t width) noexcept { return width > 0 && width % kLanes == 0; }

void place_panels(const WeightPanels& panels) {
  const std::int64_t columns = round_up(panels.out, kLanes);
  const std::int64_t floats = columns * panels.stride / panels.width;
  place_rows(std::as_bytes(std::span(panels.first, static_cast<std::size_t>(floats))), columns,
             granule_of(panels, omp_get_max_threads()));
}

std::unique_ptr<LinearKernel> make_panel_kernel(const WeightPanels& panels,
                                                std::span<const float> bias, Epilogue epilogue) {
  return std::make_unique<PanelKernel>(PanelProduct{panels, bias, epilogue});
}

}  // namespace headroom::measured
