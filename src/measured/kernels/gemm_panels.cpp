// Matrix products from weights in panels of outputs. Those that a backend chose for many rows serve
// few rows here: a generation then holds its weights once. Own panels of bfloat16 serve any number
// of rows, widened in registers.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "bfloat16.h"
#include "headroom/expr.h"
#include "linear_kernels.h"
#include "memory_nodes.h"
#include "panel_tile.h"
#include "parallel.h"
#include "simd.h"
#include "stacked_rows.h"
#include "weight_panels.h"

namespace headroom::measured {

namespace {

using simd::kLanes;

constexpr auto kTileColumns = static_cast<std::int64_t>(kTileVectors) * kLanes;

/// Bytes of a panel that several tiles of rows read: less than a second cache.
constexpr std::int64_t kPanelBytes = std::int64_t{1} << 17U;

/// W, its bias and its epilogue.
template <class Weight>
struct PanelProduct {
  WeightPanels<Weight> panels;
  std::span<const float> bias;
  Epilogue epilogue = Epilogue::none;
};

/// Operands: x [rows, in] and y [rows, out].
struct RowOperands {
  const float* x = nullptr;
  float* y = nullptr;
  std::int64_t rows = 0;
};

/// Columns that threads share out in multiples of this: panels, or parts of them where panels
/// would leave threads idle.
std::int64_t granule_of(std::int64_t width, std::int64_t out, std::int64_t threads) {
  std::int64_t granule = width;
  while (granule % (2 * kLanes) == 0 && !is_balanced(out, granule, threads)) granule /= 2;
  return granule;
}

/// Rows and columns of y that a thread computes.
struct Share {
  Range rows;
  Range columns;
};

/// The calling thread's share. Many rows are split where whole panels would leave threads idle.
template <class Weight>
Share share_of(const WeightPanels<Weight>& panels, std::int64_t rows) {
  constexpr std::int64_t kMinRows = 64;
  constexpr auto kRows = static_cast<std::int64_t>(kTileRows);
  const std::int64_t threads = omp_get_num_threads();
  const std::int64_t columns = round_up(panels.out, kLanes);
  if (rows >= kMinRows * threads && !is_balanced(columns, panels.width, threads)) {
    return {thread_range(rows, kRows), {0, columns}};
  }
  return {{0, rows}, thread_range(columns, granule_of(panels.width, panels.out, threads))};
}

/// All rows with `columns`, at most kTileVectors vectors of one panel.
template <class Weight>
void multiply_columns(const PanelProduct<Weight>& product, const RowOperands& at, Range columns) {
  const WeightPanels<Weight>& panels = product.panels;
  const std::int64_t row_bytes = panels.width * static_cast<std::int64_t>(sizeof(Weight));
  const bool is_read_once = at.rows <= static_cast<std::int64_t>(kTileRows);
  const std::int64_t block =
      is_read_once ? panels.in : round_up(kPanelBytes / row_bytes, kWordInputs<Weight>);
  for (std::int64_t input = 0; input < panels.in; input += block) {
    const bool adds = input > 0 || product.epilogue == Epilogue::add_residual;
    const TileOperands<Weight> tile{.weights = panels.column(columns.begin) + input * panels.width,
                                    .word_stride = panels.word_stride(),
                                    .inputs = std::min(block, panels.in - input),
                                    .x = at.x + input,
                                    .x_stride = panels.in,
                                    .y = at.y + columns.begin,
                                    .y_stride = panels.out,
                                    .columns = std::min(columns.end, panels.out) - columns.begin,
                                    .first_sum = adds ? FirstSum::y : FirstSum::zero};
    if (columns.size() == kTileColumns)
      multiply_rows<kTileVectors>(tile, at.rows);
    else if (columns.size() == 2 * kLanes)
      multiply_rows<2>(tile, at.rows);
    else
      multiply_rows<1>(tile, at.rows);
  }
}

/// Columns from `begin` on that one tile multiplies: 4, 2 or 1 vectors of one panel.
Range tile_columns(std::int64_t begin, std::int64_t end, std::int64_t width) {
  const std::int64_t rest = std::min(end, begin / width * width + width) - begin;
  if (rest >= kTileColumns) return {begin, begin + kTileColumns};
  return {begin, begin + (rest >= 2 * kLanes ? 2 * kLanes : kLanes)};
}

template <class Weight>
void multiply(const PanelProduct<Weight>& product, const RowOperands& all, const Share& share) {
  const WeightPanels<Weight>& panels = product.panels;
  const RowOperands at{all.x + share.rows.begin * panels.in, all.y + share.rows.begin * panels.out,
                       share.rows.size()};
  if (at.rows <= 0) return;
  for (std::int64_t column = share.columns.begin; column < share.columns.end;) {
    const Range some = tile_columns(column, share.columns.end, panels.width);
    multiply_columns(product, at, some);
    apply_epilogue(
        product.epilogue, product.bias.empty() ? nullptr : product.bias.data() + some.begin,
        {at.y + some.begin, panels.out, at.rows, std::min(some.end, panels.out) - some.begin});
    column = some.end;
  }
}

template <class Weight>
class PanelKernel : public LinearKernel {
 public:
  PanelKernel(const PanelProduct<Weight>& product, ActivationPath activations)
      : product_(product), rounds_(activations == ActivationPath::bfloat16) {}

  void prepare(std::int64_t rows) override {
    if (rounds_) (void)shared_scratch(rows * product_.panels.in);
  }

  void run(const float* x, float* y, std::int64_t rows) override {
    const WeightPanels<Weight>& panels = product_.panels;
    if (rounds_) x = rounded(x, rows * panels.in);
#pragma omp parallel if (panels.in * panels.out >= kSerialElements)
    multiply(product_, {x, y, rows}, share_of(panels, rows));
  }

  /// Another kernel holds them.
  [[nodiscard]] std::int64_t held_bytes() const override { return 0; }

  [[nodiscard]] std::int64_t weight_bytes() const override {
    return product_.panels.in * product_.panels.out * static_cast<std::int64_t>(sizeof(Weight));
  }

  [[nodiscard]] bool read_row(std::int64_t row, float* to) const override {
    const WeightPanels<Weight>& panels = product_.panels;
    constexpr std::int64_t kInputs = kWordInputs<Weight>;
    const Weight* const from = panels.column(row);
    for (std::int64_t i = 0; i < panels.in; ++i) {
      to[i] = to_float(from[i / kInputs * panels.word_stride() + i % kInputs]);
    }
    return true;
  }

 private:
  static float to_float(float weight) { return weight; }
  static float to_float(std::uint16_t bits) { return float_of_bfloat16(bits); }

  static const float* rounded(const float* x, std::int64_t count) {
    float* const to = shared_scratch(count);
#pragma omp parallel for if (count >= kSerialElements) schedule(static)
    for (std::int64_t i = 0; i < count; ++i) to[i] = round_to_bfloat16(x[i]);
    return to;
  }

  PanelProduct<Weight> product_;
  bool rounds_;
};

/// Panels of bfloat16 weights, and a bias.
class NarrowPanels {
 public:
  explicit NarrowPanels(const StackedWeights& weights) : bias_(weights.bias) {
    // A wide panel that few outputs fill would mostly hold zeros.
    constexpr std::int64_t kMinPanels = 4;
    const std::int64_t width = weights.out < kMinPanels * kTileColumns ? kLanes : kTileColumns;
    const std::int64_t words = ceil_div(weights.in, kInputs);
    weight_.resize(static_cast<std::size_t>(round_up(weights.out, width) * words * kInputs));
    panels_ = {weight_.data(), weights.in, weights.out, width, width * words * kInputs};
    place_panels(panels_);
    StackedRows(weights).for_slices(width, [&](Range rows, const float* values) {
#pragma omp parallel for schedule(static)
      for (std::int64_t row = rows.begin; row < rows.end; row += width) {
        pack(row, std::min(width, rows.end - row), values + (row - rows.begin) * weights.in);
      }
    });
  }

  [[nodiscard]] const WeightPanels<std::uint16_t>& panels() const noexcept { return panels_; }
  [[nodiscard]] std::span<const float> bias() const noexcept { return bias_; }
  [[nodiscard]] std::int64_t bytes() const noexcept {
    return static_cast<std::int64_t>(weight_.size() * sizeof(std::uint16_t) +
                                     bias_.size() * sizeof(float));
  }

 private:
  static constexpr std::int64_t kInputs = kWordInputs<std::uint16_t>;

  /// Writes the panel whose first output is `first`: `count` rows of values, [count, in].
  void pack(std::int64_t first, std::int64_t count, const float* values) {
    std::uint16_t* to = weight_.data() + first / panels_.width * panels_.stride;
    for (std::int64_t input = 0; input < panels_.in; input += kInputs) {
      for (std::int64_t column = 0; column < panels_.width; ++column, to += kInputs) {
        for (std::int64_t i = 0; i < kInputs; ++i) {
          const bool exists = column < count && input + i < panels_.in;
          to[i] =
              exists ? bfloat16_bits(values[column * panels_.in + input + i]) : std::uint16_t{0};
        }
      }
    }
  }

  UnfilledVector<std::uint16_t> weight_;
  PooledVector<float> bias_;
  WeightPanels<std::uint16_t> panels_;
};

/// Holds its panels itself.
class NarrowKernel : public PanelKernel<std::uint16_t> {
 public:
  NarrowKernel(std::unique_ptr<const NarrowPanels> held, Epilogue epilogue,
               ActivationPath activations)
      : PanelKernel({held->panels(), held->bias(), epilogue}, activations),
        held_(std::move(held)) {}

  [[nodiscard]] std::int64_t held_bytes() const override { return held_->bytes(); }

 private:
  std::unique_ptr<const NarrowPanels> held_;
};

}  // namespace

bool can_stream_panels(std::int64_t width) noexcept { return width > 0 && width % kLanes == 0; }

template <class Weight>
void place_panels(const WeightPanels<Weight>& panels) {
  const std::int64_t columns = round_up(panels.out, kLanes);
  const std::int64_t count = columns * panels.stride / panels.width;
  place_rows(std::as_bytes(std::span(panels.first, static_cast<std::size_t>(count))), columns,
             granule_of(panels.width, panels.out, omp_get_max_threads()));
}

template void place_panels(const WeightPanels<float>&);
template void place_panels(const WeightPanels<std::uint16_t>&);

std::unique_ptr<LinearKernel> make_panel_kernel(const WeightPanels<float>& panels,
                                                std::span<const float> bias, Epilogue epilogue) {
  return std::make_unique<PanelKernel<float>>(PanelProduct<float>{panels, bias, epilogue},
                                              ActivationPath::float32);
}

std::unique_ptr<LinearKernel> make_panel_kernel(const WeightPanels<std::uint16_t>& panels,
                                                std::span<const float> bias, Epilogue epilogue) {
  return std::make_unique<PanelKernel<std::uint16_t>>(
      PanelProduct<std::uint16_t>{panels, bias, epilogue}, ActivationPath::bfloat16);
}

std::unique_ptr<LinearKernel> make_narrow_kernel(const StackedWeights& weights,
                                                 const LinearOptions& options) {
  return std::make_unique<NarrowKernel>(std::make_unique<const NarrowPanels>(weights),
                                        options.epilogue, options.activations);
}

}  // namespace headroom::measured
