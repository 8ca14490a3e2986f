// Changes of llama.cpp's converter to a family's weights.
// Source: modify_tensors of each class in convert_hf_to_gguf.py, github.com/ggml-org/llama.cpp.
#pragma once

namespace headroom::detail {

/// The converter's change to values, apart from renaming, stacking, and -exp of a state space's
/// A_log, which all its families have.
enum class GgufConversion {
  none,
  /// Rows of Q and K are reordered within each head, so that the two dimensions of a RoPE pair are
  /// neighbours: row i of the first half, row i of the second, … (LlamaModel.permute).
  interleaved_heads,
  /// With RoPE in sections (M-RoPE), the rows of Q and K that turn are reordered within each head,
  /// the first ones of all pairs before the second ones (Glm4Model.normal_to_neox).
  split_pairs,
  /// Norms are stored as 1 + weight, the factor they multiply by (GemmaModel).
  norms_plus_one,
  /// As norms_plus_one; the value heads of gated delta layers are ordered by their index within a
  /// key head first (_LinearAttentionVReorderBase).
  tiled_value_heads,
  /// Not reversed: sizes and bytes are read, values are not.
  unknown,
};

}  // namespace headroom::detail
