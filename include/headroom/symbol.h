// The symbols that every count is a polynomial in: a closed set, so that a value is an array index
// and a legend can be printed. The order below is the order inside a printed term.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace headroom {

/// One quantity that a cost depends on. Names are the field's own (Hugging Face's config keys).
enum class Symbol : std::uint8_t {
  num_hidden_layers,         ///< l: layers of the decoder, or of the only stack
  num_encoder_layers,        ///< m: layers of the encoder, where there are two stacks
  batch_size,                ///< b: sequences processed together
  seq_len,                   ///< s: new tokens of each sequence
  sequence_shard_len,        ///< σ: a sequence-parallel rank's share of s, s/τ
  enc_seq_len,               ///< n: tokens that the encoder of an encoder-decoder reads
  visible_keys,              ///< t: keys that the attention reads, p + s
  visible_pairs,             ///< c: pairs that a causal mask leaves, s·p + s·(s + 1)/2
  windowed_keys,             ///< u: of those, the keys that a windowed layer reads
  windowed_pairs,            ///< x: pairs that a causal mask and a window leave
  past_len,                  ///< p: tokens already in the KV-cache
  hidden_size,               ///< d
  intermediate_size,         ///< f: inner width of the feed-forward network
  num_attention_heads,       ///< h: query heads
  num_key_value_heads,       ///< g: key and value heads
  head_dim,                  ///< k: width of a query or key head
  value_head_dim,            ///< v: width of a value head
  sliding_window,            ///< w: keys in a window
  kernel_size,               ///< κ: positions that a convolution's output is made of
  num_experts,               ///< E: routed experts of a layer
  num_experts_per_tok,       ///< a: experts that a token takes
  moe_intermediate_size,     ///< F: inner width of a routed expert
  experts_read,              ///< y: routed experts whose weights are read, min(E, b·s·a) at most
  shared_intermediate_size,  ///< S: inner width of the experts that every token takes
  q_lora_rank,               ///< Q: width of MLA's latent queries
  kv_lora_rank,              ///< r: width of MLA's latent keys and values
  qk_nope_head_dim,          ///< N: dimensions of an MLA head that do not turn
  qk_rope_head_dim,          ///< o: dimensions of an MLA head that turn
  embedding_size,            ///< e: width of a word's row, where it is not d
  vocab_size,                ///< V
  max_position_embeddings,   ///< P: rows of a learned position table
  type_vocab_size,           ///< T: rows of the token-type table
  patch_elements,            ///< q: values in an image patch, channels · patch²
  relative_attention_num_buckets,  ///< R: rows of a relative-position table
  num_labels,                      ///< C: outputs of a classifier
  tensor_parallel_share,           ///< τ⁻¹: one rank's share; stands in formulas, has no value
  weight_bytes,                    ///< bytes of one weight
  activation_bytes,                ///< bytes of one activation
  kv_cache_bytes,                  ///< bytes of one KV-cache element
  mask_bytes,                      ///< bytes of one dropout-mask element
  cast_bytes,  ///< bytes of one activation cast from float32: 0 when activations are float32
};

inline constexpr std::size_t kSymbolCount = 41;

/// How a symbol is written, and what it means.
struct SymbolInfo {
  Symbol symbol;
  std::string_view unicode;  ///< one letter where the field has one
  std::string_view latex;
  std::string_view key;         ///< the key in a config or report
  std::string_view definition;  ///< for a derived symbol, its value in other symbols; else empty
};

/// All symbols, in order of the enumeration.
[[nodiscard]] const std::array<SymbolInfo, kSymbolCount>& symbols() noexcept;

/// How `symbol` is written.
[[nodiscard]] const SymbolInfo& info(Symbol symbol) noexcept;

/// The symbol's place in `symbols()` and in a monomial's powers.
[[nodiscard]] constexpr std::size_t index(Symbol symbol) noexcept {
  return static_cast<std::size_t>(symbol);
}

}  // namespace headroom
