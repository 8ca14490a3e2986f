// Linear layers: y = f(x·Wᵀ + bias), with weights packed once for the machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "ggml_type.h"
#include "grouped_weights.h"

namespace headroom::measured {

/// Library for matrix products of many rows.
enum class Backend { eigen, onednn };

/// Storage type of weights. bfloat16 rounds every weight to 8 significant bits.
/// `stored` keeps weights that a source has in blocks or in groups as they are, the others as
/// float32.
enum class HeldType { float32, bfloat16, stored };

/// Type in which activations multiply weights that are held in fewer bits. All sums are in float32.
enum class ActivationPath {
  float32,   ///< as they are; each weight is widened or decoded to float32
  int8,      ///< of weights in blocks or groups: quantised by blocks of 32, exact integer sums
  bfloat16,  ///< of bfloat16 weights: rounded to 8 significant bits, for any number of rows
};

/// Numbers of rows that weights are packed for. Every layout works with any number of rows; only
/// the speed differs. `both` stores weights once, in a layout that serves few rows and many.
enum class RowRange { few, many, both };

/// Operation on x·Wᵀ + bias before it is stored; add_residual adds it to y. Programs run
/// activations and residuals as separate operators, so that each has a time: fusing them into
/// BERT's GEMMs changed the total by less than the noise of 1 %.
enum class Epilogue { none, relu, gelu, gelu_tanh, silu, tanh, add_residual };

/// Use of the memory that weights are packed from.
enum class SourceMemory {
  kept,
  released,  ///< its pages return to the system as they are packed, and are not to be read again
};

/// Weight [out, in], row-major, and bias [out] or empty.
struct LinearPart {
  std::span<const float> weight;
  std::span<const float> bias;
  SourceMemory source = SourceMemory::kept;  ///< of `weight`
};

/// Weight [out, in] in ggml's blocks along its rows, as in a file, and bias [out] or empty.
struct BlockPart {
  checkpoint::GgmlType type = checkpoint::GgmlType::q8_0;
  std::span<const std::byte> blocks;
  std::span<const float> bias;
  SourceMemory source = SourceMemory::kept;  ///< of `blocks`
};

/// Weight [out, in] in groups of codes, and bias [out] or empty.
struct GroupPart {
  const checkpoint::GroupedWeights* weights = nullptr;
  std::span<const float> bias;
  SourceMemory source = SourceMemory::kept;  ///< of the codes
};

struct LinearOptions {
  Backend backend = Backend::eigen;
  Epilogue epilogue = Epilogue::none;
  RowRange rows = RowRange::both;
  std::int64_t typical_rows = 128;  ///< number of rows that a backend chooses its layout for
  HeldType storage = HeldType::float32;
  /// bfloat16 applies to bfloat16 weights, and needs has_bfloat16_products() for many rows.
  ActivationPath activations = ActivationPath::float32;
};

/// Kernel of one backend, with packed weights.
class LinearKernel {
 public:
  virtual ~LinearKernel() = default;
  /// Prepares runs with `rows` rows and the current number of threads.
  virtual void prepare(std::int64_t rows) = 0;
  virtual void run(const float* x, float* y, std::int64_t rows) = 0;
  /// Bytes of packed weights and bias.
  [[nodiscard]] virtual std::int64_t held_bytes() const = 0;
  /// Bytes of W that a run reads.
  [[nodiscard]] virtual std::int64_t weight_bytes() const = 0;
  /// Copies row `row` of W [out, in] to `to`; returns false if the layout is opaque.
  [[nodiscard]] virtual bool read_row(std::int64_t row, float* to) const = 0;
  /// A kernel for few rows that reads the weights of this one, which it must not outlive; null if
  /// only the backend can read its layout.
  [[nodiscard]] virtual std::unique_ptr<LinearKernel> kernel_of_few_rows() { return nullptr; }
};

/// Linear layer of parts stacked along the output: y [rows, out] = f(x [rows, in]·Wᵀ + bias). Runs
/// on omp_get_max_threads() threads, one run at a time.
class PackedLinear {
 public:
  /// Maximum number of rows for the kernel of few rows, where there is another one.
  static constexpr std::int64_t kFewRows = 8;

  /// Packs the weights; the spans may be freed after the call. Throws missing_resource if this
  /// build lacks the backend.
  PackedLinear(std::span<const LinearPart> parts, std::int64_t in_features,
               const LinearOptions& options);

  /// Holds weights in their blocks, in one layout for any number of rows. `in_features` must fill
  /// whole blocks. Throws Error{internal} for a type without kernels.
  PackedLinear(std::span<const BlockPart> parts, std::int64_t in_features, ActivationPath path);

  /// Likewise in groups of codes. With int8 activations, codes without integer values or in groups
  /// that do not fill blocks of activations are decoded to float32, as with float32 activations.
  /// Throws Error{internal} for groups that do not fill words.
  PackedLinear(std::span<const GroupPart> parts, std::int64_t in_features, ActivationPath path);

  [[nodiscard]] std::int64_t in_features() const noexcept { return in_; }
  [[nodiscard]] std::int64_t out_features() const noexcept { return out_; }

  /// Bytes of weights and bias, in all layouts together.
  [[nodiscard]] std::int64_t held_bytes() const;

  /// Bytes of W that a run with `rows` rows reads.
  [[nodiscard]] std::int64_t weight_bytes(std::int64_t rows) const;

  /// Copies row `row` of W, so that a tied embedding table need not be stored again. Returns false,
  /// without copying, if no layout is readable.
  [[nodiscard]] bool read_row(std::int64_t row, float* to) const;

  /// Prepares a run with `rows` rows, so that no preparation is timed.
  void prepare(std::int64_t rows);

  /// Computes y from dense row-major x; they must not overlap. Allocates nothing once prepared,
  /// except inside a backend's library. Returns the FLOPs of the matrix product, 2·rows·in·out.
  std::int64_t run(const float* x, float* y, std::int64_t rows);

 private:
  [[nodiscard]] LinearKernel& kernel_for(std::int64_t rows) const;

  std::int64_t in_;
  std::int64_t out_;
  std::unique_ptr<LinearKernel> few_;   ///< null if `many_` runs all numbers of rows
  std::unique_ptr<LinearKernel> many_;  ///< null if `few_` runs all numbers of rows
};

/// Bytes of the scratchpad that all GEMMs on this thread share, as allocated by now.
[[nodiscard]] std::int64_t gemm_scratchpad_bytes();

/// Returns whether the codes of `weights` are integers in groups that int8 activations fit.
[[nodiscard]] bool has_integer_products(const checkpoint::GroupedWeights& weights);

/// Returns whether a PackedLinear can hold blocks of `type`.
[[nodiscard]] bool has_block_kernels(checkpoint::GgmlType type) noexcept;

/// Returns whether `backend` multiplies bfloat16 by bfloat16, in instructions of this processor.
[[nodiscard]] bool has_bfloat16_products(Backend backend) noexcept;

/// Returns whether this build includes `backend`.
[[nodiscard]] bool is_available(Backend backend) noexcept;

}  // namespace headroom::measured
