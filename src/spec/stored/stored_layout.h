// How a stored tensor holds the weight that is wanted: turned round, or stacked with others.
#pragma once

#include <cstdint>
#include <span>

namespace headroom::detail {

enum class StoredOrder {
  as_is,
  transposed,  ///< [in, out] in the place of [out, in], as GPT-2's Conv1D stores it
};

/// How the weights that share a tensor lie along the stacked axis.
enum class Stacking {
  alone,               ///< the tensor holds one weight
  whole,               ///< one after the other
  per_key_value_head,  ///< for each key-value head, its share of every weight (BLOOM, Falcon)
  per_index,           ///< one row of each in turn (gpt-oss: even ones gate, odd ones up)
};

/// The axis of the wanted weight [out, in] that is stacked.
enum class StackAxis { out, in };

enum class ExpertStorage {
  apart,    ///< each has a tensor of its own, with its number in the name; or there are none
  stacked,  ///< one tensor, [experts, …]
};

/// Steps from a stored tensor to a weight, in this order: take one expert, turn it round, take the
/// rows or columns of one part. How many those are follows from the weights' own shapes.
struct StoredLayout {
  StoredOrder order = StoredOrder::as_is;
  Stacking stacking = Stacking::alone;
  std::uint8_t part = 0;  ///< place among the weights that share the tensor
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

/// Where one part lies along the stacked axis: in each of `groups` groups of `group_size` indices,
/// the `size` ones from `begin` on.
struct StackRange {
  std::int64_t groups = 1;
  std::int64_t group_size = 0;
  std::int64_t begin = 0;
  std::int64_t size = 0;

  bool operator==(const StackRange&) const = default;
};

/// A weight's sizes as a matrix; one dimension is a column.
struct MatrixShape {
  std::int64_t rows = 0;
  std::int64_t columns = 1;

  bool operator==(const MatrixShape&) const = default;
};

/// The matrix [first, product of the others].
[[nodiscard]] MatrixShape matrix_shape(std::span<const std::int64_t> shape);

/// The shape of the tensor that holds a weight of shape `wanted`, one expert of it.
[[nodiscard]] MatrixShape stored_shape(const StoredLayout& layout, const StackRange& range,
                                       MatrixShape wanted);

/// Copies the weight that `layout` and `range` describe from `stored`, which has the sizes of
/// stored_shape, to `out`, which has those of `wanted`.
void copy_part(std::span<const float> stored, const StoredLayout& layout, const StackRange& range,
               MatrixShape wanted, std::span<float> out);

}  // namespace headroom::detail
