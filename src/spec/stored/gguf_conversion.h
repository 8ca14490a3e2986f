// What llama.cpp's converter does to a family's weights.
// Source: modify_tensors of each class in convert_hf_to_gguf.py, github.com/ggml-org/llama.cpp.
#pragma once

namespace headroom::detail {

/// The converter's change to values, besides renaming and stacking.
enum class GgufConversion {
  none,
  /// Rows of queries and keys are reordered within each head, so that the two dimensions that RoPE
  /// rotates together are neighbours: row i of the first half, row i of the second, …
  /// (LlamaModel.permute).
  interleaved_heads,
  /// Norms are stored as the factor that they multiply by, 1 + weight (GemmaModel).
  norms_plus_one,
  /// Not undone here: sizes and bytes are read, values are not.
  unknown,
};

}  // namespace headroom::detail
