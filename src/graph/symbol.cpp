#include "enum_table.h"
#include "headroom/expr.h"

namespace headroom {
namespace {

constexpr std::array<SymbolInfo, kSymbolCount> kSymbols{{
    {Symbol::num_hidden_layers, "l", "l", "num_hidden_layers", {}},
    {Symbol::num_encoder_layers, "m", "m", "num_encoder_layers", {}},
    {Symbol::batch_size, "b", "b", "batch_size", {}},
    {Symbol::seq_len, "s", "s", "seq_len", {}},
    {Symbol::new_tokens, "G", "G", "new_tokens", {}},
    {Symbol::sequence_shard_len, "σ", "\\sigma", "sequence_shard_len", "s·τ⁻¹"},
    {Symbol::enc_seq_len, "n", "n", "enc_seq_len", {}},
    {Symbol::visible_keys, "t", "t", "visible_keys", "p + s"},
    {Symbol::visible_pairs, "c", "c", "visible_pairs", "s·p + s·(s + 1)/2"},
    {Symbol::windowed_keys, "u", "u", "windowed_keys",
     "keys that windowed layers read: min(t, w); in decode min(t, w + s − 1)"},
    {Symbol::windowed_pairs, "x", "x", "windowed_pairs", "unmasked pairs within w keys"},
    {Symbol::encoder_windowed_pairs, "Y", "Y", "encoder_windowed_pairs",
     "pairs of n tokens within the encoder's window"},
    {Symbol::encoder_block_tokens, "Z", "Z", "encoder_block_tokens",
     "n, padded to whole blocks of attention"},
    {Symbol::chunked_tokens, "Λ", "\\Lambda", "chunked_tokens", "s, padded to whole windows"},
    {Symbol::global_tokens, "γ", "\\gamma", "global_tokens",
     "tokens with global attention per sequence"},
    {Symbol::chosen_keys, "K", "K", "chosen_keys", "keys that an indexer's choices read per layer"},
    {Symbol::chosen_pairs, "z", "z", "chosen_pairs",
     "pairs of queries and keys that an indexer chooses"},
    {Symbol::compressed_keys, "j", "j", "compressed_keys",
     "⌊t/rate⌋: compressed keys of layers with an indexer"},
    {Symbol::new_compressed_keys, "i", "i", "new_compressed_keys",
     "⌊t/rate⌋ − ⌊p/rate⌋ of layers with an indexer"},
    {Symbol::heavily_compressed_keys, "J", "J", "heavily_compressed_keys",
     "⌊t/rate⌋: compressed keys of layers without an indexer"},
    {Symbol::new_heavily_compressed_keys, "I", "I", "new_heavily_compressed_keys",
     "⌊t/rate⌋ − ⌊p/rate⌋ of layers without an indexer"},
    {Symbol::heavily_compressed_pairs, "X", "X", "heavily_compressed_pairs",
     "unmasked pairs of queries and the J keys"},
    {Symbol::past_len, "p", "p", "past_len", {}},
    {Symbol::images, "M", "M", "images", {}},
    {Symbol::image_patches, "A", "A", "image_patches", "patches of all M images"},
    {Symbol::image_pairs, "H", "H", "image_pairs",
     "pairs of rows of one image in its tower, over all M images"},
    {Symbol::image_window_pairs, "W", "W", "image_window_pairs",
     "pairs of rows of one window of patches in the tower, over all M images"},
    {Symbol::image_tokens, "D", "D", "image_tokens", "visual tokens of all M images"},
    {Symbol::later_image_pairs, "U", "U", "later_image_pairs",
     "pairs of a visual token and a later one of its image, per sequence"},
    {Symbol::hidden_size, "d", "d", "hidden_size", {}},
    {Symbol::intermediate_size, "f", "f", "intermediate_size", {}},
    {Symbol::num_attention_heads, "h", "h", "num_attention_heads", {}},
    {Symbol::num_key_value_heads, "g", "g", "num_key_value_heads", {}},
    {Symbol::head_dim, "k", "k", "head_dim", {}},
    {Symbol::value_head_dim, "v", "v", "value_head_dim", {}},
    {Symbol::sliding_window, "w", "w", "sliding_window", {}},
    {Symbol::kernel_size, "κ", "\\kappa", "kernel_size", {}},
    {Symbol::num_experts, "E", "E", "num_experts", {}},
    {Symbol::num_experts_per_tok, "a", "a", "num_experts_per_tok", {}},
    {Symbol::moe_intermediate_size, "F", "F", "moe_intermediate_size", {}},
    {Symbol::experts_read, "y", "y", "experts_read",
     "routed experts per layer that some token uses: at most min(E, b·s·a)"},
    {Symbol::shared_intermediate_size, "S", "S", "shared_intermediate_size", {}},
    {Symbol::q_lora_rank, "Q", "Q", "q_lora_rank", {}},
    {Symbol::kv_lora_rank, "r", "r", "kv_lora_rank", {}},
    {Symbol::qk_nope_head_dim, "ν", "\\nu", "qk_nope_head_dim", {}},
    {Symbol::qk_rope_head_dim, "o", "o", "qk_rope_head_dim", {}},
    {Symbol::embedding_size, "e", "e", "embedding_size", {}},
    {Symbol::vocab_size, "V", "V", "vocab_size", {}},
    {Symbol::max_position_embeddings, "P", "P", "max_position_embeddings", {}},
    {Symbol::type_vocab_size, "T", "T", "type_vocab_size", {}},
    {Symbol::patch_elements, "q", "q", "patch_elements", "num_channels·patch_size²"},
    {Symbol::relative_attention_num_buckets, "R", "R", "relative_attention_num_buckets", {}},
    {Symbol::num_labels, "C", "C", "num_labels", {}},
    {Symbol::tensor_parallel_share, "τ⁻¹", "\\tau^{-1}", "tensor_parallel_share", {}},
    {Symbol::weight_bytes, "weight_bytes", "\\beta_w", "weight_bytes", {}},
    {Symbol::activation_bytes, "activation_bytes", "\\beta_a", "activation_bytes", {}},
    {Symbol::kv_cache_bytes, "kv_cache_bytes", "\\beta_{kv}", "kv_cache_bytes", {}},
    {Symbol::mask_bytes, "mask_bytes", "\\beta_m", "mask_bytes", {}},
    {Symbol::cast_bytes, "cast_bytes", "\\beta_c", "cast_bytes",
     "activation_bytes, or 0 when activations are float32"},
}};

static_assert(detail::lists_every<kSymbols>(&SymbolInfo::symbol));

}  // namespace

const std::array<SymbolInfo, kSymbolCount>& symbols() noexcept { return kSymbols; }

const SymbolInfo& info(Symbol symbol) noexcept { return kSymbols[index(symbol)]; }

}  // namespace headroom
