#include "headroom/workload.h"

#include <algorithm>
#include <cmath>

#include "headroom/graph.h"

namespace headroom {
namespace {

/// Unmasked causal (query, key) pairs: the i-th of s new tokens sees p + i keys.
Integer causal_pairs(Integer s, Integer p) {
  return checked_add(checked_multiply(s, p), checked_multiply(s, checked_add(s, Integer{1})) / 2);
}

/// Experts that at least one of `tokens` tokens uses, if each token's choice is even and its own:
/// E·(1 − (1 − a/E)^tokens), to the nearest expert. Uneven routers use fewer.
Integer expected_experts(const LayerTraits& traits, Integer tokens) {
  if (traits.num_experts == 0) return 0;
  const auto experts = static_cast<double>(traits.num_experts);
  const double chosen = std::min(1.0, static_cast<double>(traits.num_experts_per_tok) / experts);
  const double unused = std::pow(1 - chosen, static_cast<double>(tokens));
  return std::llround(experts * (1 - unused));
}

}  // namespace

std::int64_t bytes_of(DType dtype) noexcept {
  switch (dtype) {
    case DType::float32:
      return 4;
    case DType::float16:
    case DType::bfloat16:
      return 2;
    case DType::float8:
    case DType::int8:
    case DType::float4:
    case DType::int4:
      break;
  }
  return 1;
}

std::string_view name_of(Phase phase) noexcept {
  switch (phase) {
    case Phase::prefill:
      return "prefill";
    case Phase::decode:
      return "decode";
    case Phase::train:
      break;
  }
  return "train";
}

std::string_view name_of(DType dtype) noexcept {
  switch (dtype) {
    case DType::float32:
      return "float32";
    case DType::float16:
      return "float16";
    case DType::bfloat16:
      return "bfloat16";
    case DType::float8:
      return "float8";
    case DType::int8:
      return "int8";
    case DType::float4:
      return "float4";
    case DType::int4:
      break;
  }
  return "int4";
}

std::string_view name_of(AttentionImplementation attention) noexcept {
  return attention == AttentionImplementation::eager ? "eager" : "fused";
}

std::string_view name_of(Recompute recompute) noexcept {
  switch (recompute) {
    case Recompute::none:
      return "none";
    case Recompute::selective:
      return "selective";
    case Recompute::full:
      break;
  }
  return "full";
}

std::string_view name_of(Kernels kernels) noexcept {
  return kernels == Kernels::reference ? "reference" : "fused";
}

namespace {

/// Unmasked pairs under a window: Σ over the new tokens of the keys that each sees.
Integer windowed_pairs(const WindowSpec& window, Integer s, Integer p) {
  const Integer size = window.size;
  switch (window.kind) {
    case WindowKind::none:
      return causal_pairs(s, p);
    case WindowKind::sliding: {
      // The first tokens see p + 1, p + 2, … keys until the window is full.
      const Integer growing = std::clamp(size - p, Integer{0}, s);
      return checked_add(causal_pairs(growing, p), checked_multiply(s - growing, size));
    }
    case WindowKind::chunked: {
      const auto from_start = [&](Integer tokens) {
        const Integer whole = checked_multiply(tokens / size, causal_pairs(size, 0));
        return checked_add(whole, causal_pairs(tokens % size, 0));
      };
      return from_start(checked_add(p, s)) - from_start(p);
    }
    case WindowKind::centred:
      break;
  }
  // On the left the tokens see 0, 1, …, `size` others; the right side mirrors it.
  const Integer growing = std::min(s, size);
  const Integer one_side =
      checked_add(checked_multiply(growing, growing - 1) / 2, checked_multiply(s - growing, size));
  return checked_add(s, checked_multiply(2, one_side));
}

/// Σ ⌊i/rate⌋ over the first `tokens` positions i = 1, 2, …
Integer compressed_sum(Integer tokens, Integer rate) {
  const Integer entries = tokens / rate;
  const Integer whole = checked_multiply(rate, checked_multiply(entries, entries - 1) / 2);
  return checked_add(whole, checked_multiply(entries, tokens % rate + 1));
}

/// Pairs with compressed keys: Σ of the complete entries that each new token sees, at most `most`.
Integer compressed_pairs(Integer rate, Integer most, Integer s, Integer p) {
  const auto from_start = [&](Integer tokens) {
    const Integer growing = std::min(tokens, checked_multiply(most, rate));
    return checked_add(compressed_sum(growing, rate), checked_multiply(tokens - growing, most));
  };
  return from_start(checked_add(p, s)) - from_start(p);
}

/// Pairs with keys chosen in blocks: a query at position i reads all i + 1 keys, or `most` of them
/// in whole blocks but the last, which ends with its own key. `most` is a number of blocks.
Integer block_pairs(Integer block, Integer most, Integer s, Integer p) {
  const auto from_start = [&](Integer tokens) {
    const Integer growing = std::min(tokens, most);
    const Integer rest = tokens - growing;
    const Integer own = checked_add(checked_multiply(rest / block, causal_pairs(block, 0)),
                                    causal_pairs(rest % block, 0));
    return checked_add(checked_add(causal_pairs(growing, 0), own),
                       checked_multiply(rest, most - block));
  };
  return from_start(checked_add(p, s)) - from_start(p);
}

/// Pairs with the tokens of chosen pools: of those in at most `most` tokens of whole pools, and of
/// the tokens since the last whole one.
Integer pool_pairs(Integer pool, Integer most, Integer s, Integer p) {
  const auto behind = [&](Integer tokens) {
    const Integer whole = checked_multiply(tokens / pool, causal_pairs(pool - 1, 0));
    return checked_add(whole, causal_pairs(tokens % pool, 0));
  };
  const Integer chosen = checked_multiply(pool, compressed_pairs(pool, most / pool, s, p));
  return checked_add(chosen, behind(checked_add(p, s)) - behind(p));
}

/// Pairs of a query and a key that an indexer chooses.
Integer chosen_pairs(const LayerTraits& traits, Integer s, Integer p) {
  const Integer most = traits.indexer_top_k;
  if (traits.chooses_pools) return pool_pairs(traits.indexed_rate, most, s, p);
  if (traits.indexed_block > 1) return block_pairs(traits.indexed_block, most, s, p);
  return compressed_pairs(traits.indexed_rate, most, s, p);
}

/// Keys and pairs of layers with an indexer, and of those with compressed keys.
void set_compressed_keys(const LayerTraits& traits, Integer s, Integer p, Bindings& values) {
  const Integer tokens = checked_add(p, s);
  const Integer rate = traits.indexed_rate;
  const bool compresses = rate > 1;  // a symbol that does not apply is 0
  values.set(Symbol::compressed_keys, compresses ? tokens / rate : 0);
  values.set(Symbol::new_compressed_keys, compresses ? tokens / rate - p / rate : 0);
  const Integer chosen = chosen_pairs(traits, s, p);
  const Integer keys = traits.chooses_pools ? tokens : tokens / rate;
  values.set(Symbol::chosen_pairs, chosen);
  values.set(Symbol::chosen_keys, std::min(keys, chosen));
  const Integer heavy = traits.heavy_compression_rate;
  const Integer entries = heavy == 0 ? 0 : tokens / heavy;
  values.set(Symbol::heavily_compressed_keys, entries);
  values.set(Symbol::new_heavily_compressed_keys, heavy == 0 ? 0 : entries - p / heavy);
  values.set(Symbol::heavily_compressed_pairs,
             heavy == 0 ? 0 : compressed_pairs(heavy, entries, s, p));
}

/// Pairs of an encoder-decoder's encoder, and blocks of its tokens or of those of an encoder alone,
/// which has no encoder_window; a symbol that does not apply is 0.
void set_encoder_window(const LayerTraits& traits, const Workload& workload, Bindings& values) {
  const bool has_window = traits.encoder_window.kind != WindowKind::none;
  const Integer n = has_window ? workload.enc_seq_len : workload.seq_len;
  values.set(Symbol::encoder_windowed_pairs,
             has_window ? windowed_pairs(traits.encoder_window, n, 0) : 0);
  const Integer block = traits.encoder_block;
  values.set(Symbol::encoder_block_tokens,
             block == 0 ? Integer{0} : checked_multiply((n + block - 1) / block, block));
  const Integer global_block = traits.encoder_global_block;
  values.set(Symbol::transient_global_tokens, global_block == 0 ? Integer{0} : n / global_block);
}

/// Tokens of attention in chunks: the reference code pads a sequence to whole windows.
void set_chunks(const LayerTraits& traits, const Workload& workload, Bindings& values) {
  const Integer window = traits.chunk_window;
  const bool chunked = window > 0;  // a symbol that does not apply is 0
  const Integer windows = chunked ? (Integer{workload.seq_len} + window - 1) / window : 0;
  values.set(Symbol::chunked_tokens, checked_multiply(windows, window));
  values.set(Symbol::global_tokens, chunked ? workload.global_tokens : 0);
}

Integer windowed_keys(const Workload& workload, const WindowSpec& window) {
  const Integer keys = checked_add(workload.past_len, workload.seq_len);
  if (window.kind == WindowKind::none || window.kind == WindowKind::centred) return keys;
  const Integer others = workload.phase == Phase::decode ? Integer{workload.seq_len} - 1 : 0;
  return std::min(keys, checked_add(window.size, others));
}

/// Keys from the start of the first new token's chunk on; a symbol that does not apply is 0.
Integer chunk_keys(const Workload& workload, const WindowSpec& window) {
  if (window.kind != WindowKind::chunked) return 0;
  return checked_add(workload.past_len % window.size, workload.seq_len);
}

}  // namespace

std::string_view name_of(Logits logits) noexcept { return logits == Logits::all ? "all" : "last"; }

std::string_view name_of(LatentAttention latent) noexcept {
  return latent == LatentAttention::absorbed ? "absorbed" : "naive";
}

WindowFill window_fill(const Workload& workload, const LayerTraits& traits) {
  Workload longer = workload;
  longer.past_len = static_cast<std::int64_t>(checked_add(workload.past_len, 1));
  const bool grows = windowed_keys(longer, traits.window) > windowed_keys(workload, traits.window);
  return grows ? WindowFill::filling : WindowFill::full;
}

Bindings bindings_of(const Workload& workload, const LayerTraits& traits) {
  const Integer s = workload.seq_len;
  const Integer p = workload.past_len;
  Bindings values;
  values.set(Symbol::batch_size, workload.batch_size);
  values.set(Symbol::seq_len, s);
  values.set(Symbol::enc_seq_len, workload.enc_seq_len);
  values.set(Symbol::past_len, p);
  values.set(Symbol::visible_keys, checked_add(p, s));
  values.set(Symbol::visible_pairs, causal_pairs(s, p));
  values.set(Symbol::windowed_keys, windowed_keys(workload, traits.window));
  values.set(Symbol::chunk_keys, chunk_keys(workload, traits.window));
  const ImageTotals& images = workload.images.totals;
  const Integer in_images = workload.phase == Phase::decode ? 0 : images.windowed_pairs;
  values.set(Symbol::windowed_pairs, checked_add(windowed_pairs(traits.window, s, p), in_images));
  values.set(Symbol::images, images.images);
  values.set(Symbol::image_patches, images.patches);
  values.set(Symbol::image_pairs, images.pairs);
  values.set(Symbol::image_window_pairs, images.window_pairs);
  values.set(Symbol::image_tokens, images.tokens);
  values.set(Symbol::later_image_pairs, images.later_pairs);
  values.set(Symbol::audio_segments, workload.audio.totals.segments);
  values.set(Symbol::audio_rows, workload.audio.totals.rows);
  values.set(Symbol::audio_tokens, workload.audio.totals.tokens);
  values.set(Symbol::audio_pairs, workload.audio.totals.pairs);
  set_encoder_window(traits, workload, values);
  set_chunks(traits, workload, values);
  set_compressed_keys(traits, s, p, values);
  values.set(Symbol::experts_read,
             expected_experts(traits, checked_multiply(workload.batch_size, s)));
  const std::int64_t activation = bytes_of(workload.dtype);
  values.set(Symbol::weight_bytes, activation);
  values.set(Symbol::activation_bytes, activation);
  values.set(Symbol::kv_cache_bytes, bytes_of(workload.kv_dtype));
  values.set(Symbol::mask_bytes, workload.mask_bytes);
  values.set(Symbol::cast_bytes, activation < bytes_of(DType::float32) ? activation : 0);
  return values;
}

Bindings bindings_of(const Workload& workload, const Graph& graph) {
  Bindings values = bindings_of(workload, graph.traits);
  for (const SymbolInfo& symbol : symbols()) {
    if (const auto size = graph.sizes.get(symbol.symbol)) values.set(symbol.symbol, *size);
  }
  return values;
}

std::vector<Relation> relations_of(const Workload& workload) {
  const Bindings values = bindings_of(workload, LayerTraits{});
  std::vector<Relation> relations;
  for (const Symbol symbol : {Symbol::weight_bytes, Symbol::activation_bytes,
                              Symbol::kv_cache_bytes, Symbol::mask_bytes, Symbol::cast_bytes}) {
    relations.push_back(relation({symbol}, *values.get(symbol)));
  }
  if (workload.past_len == 0) {
    relations.push_back(relation({Symbol::visible_keys}, Symbol::seq_len));
  }
  if (workload.phase == Phase::decode && workload.seq_len == 1) {
    relations.push_back(relation({Symbol::visible_pairs}, Symbol::visible_keys));
    relations.push_back(relation({Symbol::seq_len}, Integer{1}));
  }
  return relations;
}

}  // namespace headroom
