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

/// Columns of one panel, or of several that are equally far apart: `first` of the first panel.
struct ColumnsOfPanels {
  Range first;
  std::int64_t next = 0;  ///< columns from one panel to the next
};

/// All rows, a single one for several panels, with the tile's columns.
template <std::size_t panels, std::size_t vectors, class Weight>
void multiply_vectors(const TileOperands<Weight>& tile, std::int64_t rows) {
  if constexpr (panels == 1)
    multiply_rows<vectors>(tile, rows);
  else
    multiply_tile<panels, 1, vectors>(tile);
}

/// All rows with `columns`, at most kTileVectors vectors of each panel.
template <std::size_t panels, class Weight>
void multiply_columns(const PanelProduct<Weight>& product, const RowOperands& at,
                      ColumnsOfPanels columns) {
  const WeightPanels<Weight>& w = product.panels;
  const Range first = columns.first;
  const std::int64_t row_bytes = w.width * static_cast<std::int64_t>(sizeof(Weight));
  const bool is_read_once = at.rows <= static_cast<std::int64_t>(kTileRows);
  const std::int64_t block =
      is_read_once ? w.in : round_up(kPanelBytes / row_bytes, kWordInputs<Weight>);
  for (std::int64_t input = 0; input < w.in; input += block) {
    const bool adds = input > 0 || product.epilogue == Epilogue::add_residual;
    const TileOperands<Weight> tile{.weights = w.column(first.begin) + input * w.width,
                                    .word_stride = w.word_stride(),
                                    .inputs = std::min(block, w.in - input),
                                    .x = at.x + input,
                                    .x_stride = w.in,
                                    .y = at.y + first.begin,
                                    .y_stride = w.out,
                                    .columns = std::min(first.end, w.out) - first.begin,
                                    .first_sum = adds ? FirstSum::y : FirstSum::zero,
                                    .next_weights = columns.next / w.width * w.stride,
                                    .next_columns = columns.next};
    if (first.size() == kTileColumns)
      multiply_vectors<panels, kTileVectors>(tile, at.rows);
    else if (first.size() == 2 * kLanes)
      multiply_vectors<panels, 2>(tile, at.rows);
    else
      multiply_vectors<panels, 1>(tile, at.rows);
  }
}

/// Columns from `begin` on that one tile multiplies: 4, 2 or 1 vectors of one panel.
Range tile_columns(std::int64_t begin, std::int64_t end, std::int64_t width) {
  const std::int64_t rest = std::min(end, begin / width * width + width) - begin;
  if (rest >= kTileColumns) return {begin, begin + kTileColumns};
  return {begin, begin + (rest >= 2 * kLanes ? 2 * kLanes : kLanes)};
}

/// The columns of `range`, and of as many panels as there are at once; adds bias and residual.
template <std::size_t panels, class Weight>
void multiply_range(const PanelProduct<Weight>& product, const RowOperands& at, Range range,
                    std::int64_t next) {
  const std::int64_t out = product.panels.out;
  for (std::int64_t column = range.begin; column < range.end;) {
    const Range some = tile_columns(column, range.end, product.panels.width);
    multiply_columns<panels>(product, at, {some, next});
    for (std::size_t panel = 0; panel < panels; ++panel) {
      const std::int64_t first = some.begin + static_cast<std::int64_t>(panel) * next;
      const std::int64_t count = std::min(some.size(), out - first);
      apply_epilogue(product.epilogue, product.bias.empty() ? nullptr : product.bias.data() + first,
                     {at.y + first, out, at.rows, count});
    }
    column = some.end;
  }
}

/// One row with the whole panels of `columns`, kTilePanels at once; returns the columns behind
/// them.
template <class Weight>
Range multiply_whole_panels(const PanelProduct<Weight>& product, const RowOperands& at,
                            Range columns) {
  const std::int64_t width = product.panels.width;
  constexpr auto kPanels = static_cast<std::int64_t>(kTilePanels);
  if (at.rows != 1 || columns.begin % width != 0) return columns;
  const std::int64_t whole = std::min(columns.end, product.panels.out) - columns.begin;
  const std::int64_t next = std::max<std::int64_t>(0, whole) / (kPanels * width) * width;
  multiply_range<kTilePanels>(product, at, {columns.begin, columns.begin + next}, next);
  return {columns.begin + kPanels * next, columns.end};
}

template <class Weight>
void multiply(const PanelProduct<Weight>& product, const RowOperands& all, const Share& share) {
  const WeightPanels<Weight>& panels = product.panels;
  const RowOperands at{all.x + share.rows.begin * panels.in, all.y + share.rows.begin * panels.out,
                       share.rows.size()};
  if (at.rows <= 0) return;
  multiply_range<1>(product, at, multiply_whole_panels(product, at, share.columns), 0);
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
