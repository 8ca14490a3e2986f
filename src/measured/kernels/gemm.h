// Linear layers: y = f(x·Wᵀ + bias) with weights that are laid out once for the machine.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

namespace headroom::measured {

/// The library that multiplies matrices of many rows.
enum class Backend { eigen, onednn };

/// What weights are held in for few rows, where reading them is what takes the time. bfloat16
/// rounds every weight to 8 significant bits, for any number of rows, so that prefill and decode
/// compute the same function.
enum class WeightStorage { float32, bfloat16 };

/// Numbers of rows that the weights are laid out for. `both` holds them twice. Every number of
/// rows works with every layout; only the speed differs.
enum class RowRange { few, many, both };

/// What is done to x·Wᵀ + bias before it is stored. add_residual adds it to what y holds. Programs
/// keep activations and residuals as operators of their own: fusing them into BERT's products
/// changed their times by less than the noise, one per cent either way, and each operator keeps its
/// time.
enum class Epilogue { none, relu, gelu, gelu_tanh, silu, tanh, add_residual };

/// Weight matrix [out, in], row-major, and bias [out] or empty.
struct LinearPart {
  std::span<const float> weight;
  std::span<const float> bias;
};

struct LinearOptions {
  Backend backend = Backend::eigen;
  Epilogue epilogue = Epilogue::none;
  RowRange rows = RowRange::both;
  std::int64_t typical_rows = 128;  ///< the number of rows that a backend picks its layout for
  WeightStorage storage = WeightStorage::float32;
};

/// How one backend multiplies by weights that it has laid out.
class LinearKernel {
 public:
  virtual ~LinearKernel() = default;
  /// Gets ready for `rows` rows with the present number of threads.
  virtual void prepare(std::int64_t rows) = 0;
  virtual void run(const float* x, float* y, std::int64_t rows) = 0;
  /// Memory that weights and bias take as they are laid out.
  [[nodiscard]] virtual std::int64_t held_bytes() const = 0;
  /// Copies row `row` of W [out, in]; false where the layout does not tell.
  [[nodiscard]] virtual bool read_row(std::int64_t row, float* to) const = 0;
};

/// A linear layer of parts stacked on the output: y [rows, out] = f(x [rows, in]·Wᵀ + bias).
/// Runs on omp_get_max_threads() threads. One run at a time.
class PackedLinear {
 public:
  /// Most rows that count as few.
  static constexpr std::int64_t kFewRows = 8;

  /// Copies the weights; the spans need not outlive the call. Throws missing_resource for a
  /// backend that this build lacks.
  PackedLinear(std::span<const LinearPart> parts, std::int64_t in_features,
               const LinearOptions& options);

  [[nodiscard]] std::int64_t in_features() const noexcept { return in_; }
  [[nodiscard]] std::int64_t out_features() const noexcept { return out_; }

  /// Memory that weights and bias take, in all layouts together.
  [[nodiscard]] std::int64_t held_bytes() const;

  /// Bytes of W that a run with so many rows reads.
  [[nodiscard]] std::int64_t weight_bytes(std::int64_t rows) const;

  /// Copies row `row` of W, so that a table of embeddings tied to this layer need not be held
  /// besides. Returns false, and copies nothing, where no layout lets it.
  [[nodiscard]] bool read_row(std::int64_t row, float* to) const;

  /// Makes what a run with so many rows needs, so that it need not be made while it is timed.
  void prepare(std::int64_t rows);

  /// Dense row-major x and y, which must not overlap. Allocates nothing once prepared, except what
  /// a backend's library does inside. Returns the floating-point operations of the product,
  /// 2·rows·in·out.
  std::int64_t run(const float* x, float* y, std::int64_t rows);

 private:
  [[nodiscard]] LinearKernel& kernel_for(std::int64_t rows) const;

  std::int64_t in_;
  std::int64_t out_;
  WeightStorage storage_;
  std::unique_ptr<LinearKernel> few_;   ///< null where `many_` does it all
  std::unique_ptr<LinearKernel> many_;  ///< null where `few_` does it all
};

/// Whether this build can multiply with a backend.
[[nodiscard]] bool is_available(Backend backend) noexcept;

}  // namespace headroom::measured
