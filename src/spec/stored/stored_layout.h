// How a weight is stored in a tensor: transposed, or stacked with others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace headroom::detail {

enum class StoredOrder {
  as_is,
  transposed,  ///< [in, out] instead of [out, in], as in GPT-2's Conv1D
};

/// Order of the weights that share a tensor, along the stacked axis.
enum class Stacking {
  alone,               ///< the tensor holds one weight
  whole,               ///< one after the other
  per_query_head,      ///< per query head, likewise (Qwen3-Next's query and gate)
  per_delta_key_head,  ///< per key head of the gated delta layers (Qwen3-Next)
  per_key_value_head,  ///< per key-value head, its rows of every weight (BLOOM, Falcon)
  per_quarter,         ///< a quarter of the rows of each (CodeGen, saved for four processes)
  per_index,           ///< rows alternate (gpt-oss: even rows gate, odd rows up)
  padded,              ///< the first rows of a tensor padded to a multiple of kPaddedRows
};

/// Kimi K3's A_log has 128 entries for 96 heads: 96 and padding. Source: llama.cpp's
/// conversion/kimi_k3.py (`[:n_head]`), vLLM-Ascend's and Megatron-Bridge's loaders (zeros).
inline constexpr std::int64_t kPaddedRows = 128;

/// The stacked axis of a weight [out, in].
enum class StackAxis { out, in };

enum class ExpertStorage {
  apart,    ///< one tensor per expert, numbered in the name; or no experts
  stacked,  ///< one tensor, [experts, …]
};

/// Steps from a stored tensor to a weight, in this order: select one expert, transpose, select the
/// rows or columns of one part. Their numbers follow from the shapes of the weights.
struct StoredLayout {
  StoredOrder order = StoredOrder::as_is;
  Stacking stacking = Stacking::alone;
  std::uint8_t part = 0;  ///< index among the weights that share the tensor
  StackAxis axis = StackAxis::out;
  ExpertStorage experts = ExpertStorage::apart;

  bool operator==(const StoredLayout&) const = default;
};

/// Part `index` of a stack.
[[nodiscard]] constexpr StoredLayout part(std::uint8_t index, Stacking stacking = Stacking::whole) {
  StoredLayout layout;
  layout.stacking = stacking;
  layout.part = index;
  return layout;
}

/// The first rows of a padded tensor.
[[nodiscard]] constexpr StoredLayout padded_rows() { return part(0, Stacking::padded); }

[[nodiscard]] constexpr StoredLayout transposed(StoredLayout layout = {}) {
  layout.order = StoredOrder::transposed;
  return layout;
}

[[nodiscard]] constexpr StoredLayout along_input(StoredLayout layout) {
  layout.axis = StackAxis::in;
  return layout;
}

[[nodiscard]] constexpr StoredLayout stacked_experts(StoredLayout layout = {}) {
  layout.experts = ExpertStorage::stacked;
  return layout;
}

/// The indices of one part along the stacked axis: in each of `groups` groups of `group_size`
/// indices, `size` of them starting at `begin`.
struct StackRange {
  std::int64_t groups = 1;
  std::int64_t group_size = 0;
  std::int64_t begin = 0;
  std::int64_t size = 0;

  bool operator==(const StackRange&) const = default;
};

/// A weight's shape as a matrix; a vector is one column.
struct MatrixShape {
  std::int64_t rows = 0;
  std::int64_t columns = 1;

  bool operator==(const MatrixShape&) const = default;
};

/// Flattens a shape to [first, product of the others].
[[nodiscard]] MatrixShape matrix_shape(std::span<const std::int64_t> shape);

/// Shape of the tensor that stores one expert of a weight of shape `wanted`.
[[nodiscard]] MatrixShape stored_shape(const StoredLayout& layout, const StackRange& range,
                                       MatrixShape wanted);

/// Copies the weight at `layout` and `range` from `stored`, of shape stored_shape(layout, range,
/// wanted), to `out`, of shape `wanted`.
void copy_part(std::span<const float> stored, const StoredLayout& layout, const StackRange& range,
               MatrixShape wanted, std::span<float> out);

/// Returns whether the weight's rows are whole rows of the tensor.
[[nodiscard]] bool has_whole_rows(const StoredLayout& layout);

/// As copy_part, for a layout with whole rows of `row_bytes` bytes: the weight's `rows` rows.
[[nodiscard]] std::vector<std::byte> rows_of_part(std::span<const std::byte> stored,
                                                  const StoredLayout& layout,
                                                  const StackRange& range, std::int64_t rows,
                                                  std::size_t row_bytes);

}  // namespace headroom::detail
