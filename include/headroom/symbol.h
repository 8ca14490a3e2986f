// The symbols of every count: a closed set, so that a symbol indexes an array and a legend can be
// printed. The order below is the order inside a printed term.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace headroom {

/// A quantity that costs depend on, named after its Hugging Face config key where one exists.
enum class Symbol : std::uint8_t {
  num_hidden_layers,         ///< l: layers of the decoder or of the only stack
  num_encoder_layers,        ///< m: layers of the encoder in an encoder-decoder
  batch_size,                ///< b: sequences in a batch
  seq_len,                   ///< s: new tokens per sequence
  sequence_shard_len,        ///< σ: tokens of one sequence-parallel rank, s/τ
  enc_seq_len,               ///< n: tokens read by the encoder of an encoder-decoder
  visible_keys,              ///< t: keys read by attention, p + s
  visible_pairs,             ///< c: unmasked causal pairs, s·p + s·(s + 1)/2
  windowed_keys,             ///< u: keys read by a sliding-window layer
  windowed_pairs,            ///< x: unmasked pairs under a causal mask and a window
  past_len,                  ///< p: tokens in the KV-cache
  hidden_size,               ///< d
  intermediate_size,         ///< f: inner width of the feed-forward network
  num_attention_heads,       ///< h: query heads
  num_key_value_heads,       ///< g: key and value heads
  head_dim,                  ///< k: dimensions of a query or key head
  value_head_dim,            ///< v: dimensions of a value head
  sliding_window,            ///< w: keys in the window
  kernel_size,               ///< κ: taps of a convolution
  num_experts,               ///< E: routed experts per layer
  num_experts_per_tok,       ///< a: experts that each token is routed to
  moe_intermediate_size,     ///< F: inner width of a routed expert
  experts_read,              ///< y: routed experts whose weights are read, at most min(E, b·s·a)
  shared_intermediate_size,  ///< S: inner width of the shared experts
  q_lora_rank,               ///< Q: rank of MLA's query compression
  kv_lora_rank,              ///< r: rank of MLA's key-value compression
  qk_nope_head_dim,          ///< N: non-rotary dimensions of an MLA head
  qk_rope_head_dim,          ///< o: rotary dimensions of an MLA head
  embedding_size,            ///< e: width of the word embedding where it differs from d
  vocab_size,                ///< V
  max_position_embeddings,   ///< P: rows of a learned position table
  type_vocab_size,           ///< T: rows of the token-type table
  patch_elements,            ///< q: values in an image patch, channels · patch²
  relative_attention_num_buckets,  ///< R: rows of a relative-position table
  num_labels,                      ///< C: outputs of a classifier
  tensor_parallel_share,  ///< τ⁻¹: one rank's fraction; appears in formulas, never bound
  weight_bytes,           ///< bytes per weight
  activation_bytes,       ///< bytes per activation
  kv_cache_bytes,         ///< bytes per KV-cache element
  mask_bytes,             ///< bytes per dropout-mask element
  cast_bytes,  ///< bytes per activation cast from float32: 0 when activations are float32
};

/// Number of symbols. symbol.cpp asserts that `cast_bytes` is the last one.
inline constexpr std::size_t kSymbolCount = static_cast<std::size_t>(Symbol::cast_bytes) + 1;

/// Spelling and meaning of a symbol.
struct SymbolInfo {
  Symbol symbol;
  std::string_view unicode;  ///< one letter where the literature has one
  std::string_view latex;
  std::string_view key;         ///< key in a config or report
  std::string_view definition;  ///< value of a derived symbol in other symbols; else empty
};

/// Position of `symbol` in `symbols()` and in a Monomial.
[[nodiscard]] constexpr std::size_t index(Symbol symbol) noexcept {
  return static_cast<std::size_t>(symbol);
}

/// All symbols, in order of the enumeration.
[[nodiscard]] const std::array<SymbolInfo, kSymbolCount>& symbols() noexcept;

/// Spelling and meaning of `symbol`.
[[nodiscard]] const SymbolInfo& info(Symbol symbol) noexcept;

}  // namespace headroom
