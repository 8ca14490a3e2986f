// The parts of oneDNN's C++ interface that differ between versions 2 and 3. The only place that
// tests the version.
#pragma once

#include <cstdint>
#include <oneapi/dnnl/dnnl.hpp>
#include <optional>
#include <vector>

namespace headroom::measured::onednn {

/// A layout of a matrix [in, out] in blocks of neighbouring outputs: all inputs of a block, one
/// after the other.
struct OutputBlocks {
  std::int64_t width = 0;   ///< outputs per block
  std::int64_t stride = 0;  ///< elements from a block to the next
};

/// A blocked layout, dimension by dimension.
struct BlockedLayout {
  std::vector<std::int64_t> blocks;   ///< sizes of the inner blocks, from outer to inner
  std::vector<std::int64_t> axes;     ///< their dimensions
  std::vector<std::int64_t> strides;  ///< of the outer blocks, by dimension
};

/// Rows of `layout` follow each other within a block of outputs, also from one inner block of
/// inputs to the next (oneDNN's BA16a64b, and similar).
[[nodiscard]] inline std::optional<OutputBlocks> output_blocks(const BlockedLayout& layout) {
  constexpr std::int64_t kInputs = 0;
  constexpr std::int64_t kOutputs = 1;
  const std::size_t inner = layout.blocks.size();
  const bool by_outputs = inner > 0 && layout.axes.back() == kOutputs;
  const bool two = inner == 2 && layout.axes.front() == kInputs;
  if (!by_outputs || (inner != 1 && !two) || layout.strides.size() != 2) return std::nullopt;
  const std::int64_t width = layout.blocks.back();
  const std::int64_t rows = two ? layout.blocks.front() : 1;
  if (layout.strides[kInputs] != rows * width) return std::nullopt;
  return OutputBlocks{width, layout.strides[kOutputs]};
}

#if DNNL_VERSION_MAJOR >= 3

/// The output blocks of a description, empty for other layouts.
[[nodiscard]] inline std::optional<OutputBlocks> output_blocks(const dnnl::memory::desc& desc) {
  if (desc.get_format_kind() != dnnl::memory::format_kind::blocked) return std::nullopt;
  return output_blocks(
      BlockedLayout{desc.get_inner_blks(), desc.get_inner_idxs(), desc.get_strides()});
}

/// Describes a primitive. `arguments` are those of its operation: a propagation kind if it has
/// one, then memory descriptors.
template <class Primitive, class... Arguments>
[[nodiscard]] typename Primitive::primitive_desc describe(const dnnl::engine& engine,
                                                          const dnnl::primitive_attr& attributes,
                                                          const Arguments&... arguments) {
  return {engine, arguments..., attributes};
}

/// Appends an element-wise function with its parameter `alpha`.
inline void append_eltwise(dnnl::post_ops& operations, dnnl::algorithm algorithm, float alpha) {
  operations.append_eltwise(algorithm, alpha, 0.0F);
}

#else

[[nodiscard]] inline std::optional<OutputBlocks> output_blocks(const dnnl::memory::desc& desc) {
  if (desc.data.format_kind != dnnl_blocked || desc.data.ndims != 2) return std::nullopt;
  const dnnl_blocking_desc_t& blocking = desc.data.format_desc.blocking;
  const auto count = blocking.inner_nblks;
  return output_blocks(BlockedLayout{{blocking.inner_blks, blocking.inner_blks + count},
                                     {blocking.inner_idxs, blocking.inner_idxs + count},
                                     {blocking.strides, blocking.strides + 2}});
}

template <class Primitive, class... Arguments>
[[nodiscard]] typename Primitive::primitive_desc describe(const dnnl::engine& engine,
                                                          const dnnl::primitive_attr& attributes,
                                                          const Arguments&... arguments) {
  return {typename Primitive::desc(arguments...), attributes, engine};
}

inline void append_eltwise(dnnl::post_ops& operations, dnnl::algorithm algorithm, float alpha) {
  operations.append_eltwise(1.0F, algorithm, alpha, 0.0F);
}

#endif

}  // namespace headroom::measured::onednn
