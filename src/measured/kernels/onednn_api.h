// The parts of oneDNN's C++ interface that differ between versions 2 and 3. The only place that
// tests the version.
#pragma once

#include <algorithm>
#include <cstdint>
#include <oneapi/dnnl/dnnl.hpp>
#include <optional>
#include <vector>

namespace headroom::measured::onednn {

/// A layout of a matrix [in, out] in blocks of neighbouring outputs: all inputs of a block, one
/// after the other, or word after word of a few inputs of one output.
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

/// The output blocks of `layout` with `word` inputs in a word: rows follow each other within a
/// block of outputs, also from one inner block of inputs to the next (oneDNN's BA16a64b, or
/// BA16a64b2a with words of two, and similar).
[[nodiscard]] inline std::optional<OutputBlocks> output_blocks(BlockedLayout layout,
                                                               std::int64_t word) {
  constexpr std::int64_t kInputs = 0;
  constexpr std::int64_t kOutputs = 1;
  if (layout.strides.size() != 2) return std::nullopt;
  const auto drop_last = [&](std::int64_t axis) {
    if (layout.axes.empty() || layout.axes.back() != axis) return std::int64_t{0};
    const std::int64_t size = layout.blocks.back();
    layout.axes.pop_back();
    layout.blocks.pop_back();
    return size;
  };
  if (word > 1 && drop_last(kInputs) != word) return std::nullopt;
  const std::int64_t width = drop_last(kOutputs);
  const std::int64_t rows = std::max<std::int64_t>(1, drop_last(kInputs));
  const bool follow = layout.strides[kInputs] == rows * width * word;
  if (width == 0 || !layout.axes.empty() || !follow) return std::nullopt;
  return OutputBlocks{width, layout.strides[kOutputs]};
}

#if DNNL_VERSION_MAJOR >= 3

/// The output blocks of a description, empty for other layouts.
[[nodiscard]] inline std::optional<OutputBlocks> output_blocks(const dnnl::memory::desc& desc,
                                                               std::int64_t word) {
  if (desc.get_format_kind() != dnnl::memory::format_kind::blocked) return std::nullopt;
  return output_blocks(
      BlockedLayout{desc.get_inner_blks(), desc.get_inner_idxs(), desc.get_strides()}, word);
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

[[nodiscard]] inline std::optional<OutputBlocks> output_blocks(const dnnl::memory::desc& desc,
                                                               std::int64_t word) {
  if (desc.data.format_kind != dnnl_blocked || desc.data.ndims != 2) return std::nullopt;
  const dnnl_blocking_desc_t& blocking = desc.data.format_desc.blocking;
  const auto count = blocking.inner_nblks;
  return output_blocks(BlockedLayout{{blocking.inner_blks, blocking.inner_blks + count},
                                     {blocking.inner_idxs, blocking.inner_idxs + count},
                                     {blocking.strides, blocking.strides + 2}},
                       word);
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
