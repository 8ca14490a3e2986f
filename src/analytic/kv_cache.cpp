#include "headroom/kv_cache.h"

#include <fmt/format.h>

#include <algorithm>

#include "headroom/error.h"
#include "kv_bytes.h"
#include "kv_policies.h"
#include "setting_format.h"

namespace headroom {
namespace {

using detail::bytes_of_tokens;
using detail::CellQuery;
using detail::KvFormat;
using detail::KvRole;
using detail::KvVectors;
using detail::ResolvedPolicy;
using detail::StoredBytes;

/// One cache tensor of the graph with its attention.
struct CountedCache {
  std::string path;
  KvGrowth growth = KvGrowth::full;
  const AttentionSpec* attention = nullptr;
  Integer layers = 0;
  Integer used_tokens = 0;
  Integer values = 0;  ///< elements per sequence of a constant state
};

KvGrowth growth_of(const Tensor& tensor) {
  const Expr& tokens = tensor.shape.at(1);
  if (tokens.degree(Symbol::windowed_keys) > 0) return KvGrowth::windowed;
  if (tokens.degree(Symbol::visible_keys) > 0) return KvGrowth::full;
  return tokens.degree(Symbol::enc_seq_len) > 0 ? KvGrowth::encoder : KvGrowth::constant;
}

/// The caches of a graph, one per kind of layer.
std::vector<CountedCache> counted_caches(const ModelSpec& spec, const Graph& graph,
                                         const Bindings& values) {
  const StackSpec& stack = spec.main_stack();
  std::vector<CountedCache> caches;
  for (const auto& [id, block, node] : cache_tensors(graph)) {
    const Tensor& tensor = graph.tensors[id];
    CountedCache cache{block->path + "." + tensor.name, growth_of(tensor), nullptr,
                       block->repeat.evaluate(values)};
    cache.attention = cache.growth == KvGrowth::encoder
                          ? &stack.cross_attention.value()
                          : &stack.attention_of(stack.variant(block->layer_of(*node, 0)));
    if (cache.growth == KvGrowth::constant) {
      cache.values = tensor.elements().substitute(Symbol::batch_size, 1).evaluate(values);
    } else {
      cache.used_tokens = tensor.shape.at(1).evaluate(values);
    }
    caches.push_back(std::move(cache));
  }
  return caches;
}

/// Vectors that each token adds to a layer.
std::vector<KvVectors> vectors_of(const AttentionSpec& attention, LatentAttention latent) {
  if (attention.latent && latent == LatentAttention::absorbed) {
    return {{KvRole::key, 1, attention.latent->kv_lora_rank + attention.latent->qk_rope_head_dim}};
  }
  const Integer heads = attention.num_key_value_heads;
  return {{KvRole::key, heads, attention.head_dim},
          {KvRole::value, heads, attention.value_head_dim}};
}

/// Hugging Face's code expands MLA's latent vectors before caching them.
LatentAttention latent_of(KvPolicy policy, const Workload& workload) {
  const bool expands = policy == KvPolicy::hf_dynamic || policy == KvPolicy::hf_static;
  return expands ? LatentAttention::naive : workload.latent;
}

/// Counts the KV-cache of one graph, row by row.
class KvAccountant {
 public:
  KvAccountant(const ModelSpec& spec, const Graph& graph, const Workload& workload,
               const KvCacheRequest& request)
      : spec_(spec), workload_(workload) {
    use_.type = request.type.value_or(kv_type(workload.kv_dtype));
    use_.scales = request.scales;
    use_.policy = request.policy;
    format_ = {use_.type, use_.scales, kv_type(workload.dtype)};
    tokens_ = checked_add(workload.past_len, workload.seq_len);
    policy_ = detail::resolve_policy(request, tokens_);
    caches_ = counted_caches(spec, graph, bindings_of(workload, graph));
  }

  std::optional<KvCacheUse> run() && {
    if (caches_.empty()) return std::nullopt;
    detail::require_type(use_.policy, use_.type, use_.scales);
    for (const CountedCache& cache : caches_) require(cache);
    if (detail::has_blocks(use_.policy)) use_.block = static_cast<std::int64_t>(policy_.block);
    if (detail::reserves_for_length(use_.policy)) {
      use_.capacity = static_cast<std::int64_t>(policy_.capacity);
    }
    for (const CountedCache& cache : caches_) add(cache);
    if (use_.policy == KvPolicy::vllm) pad_groups();
    for (const KvCacheRow& row : use_.rows) {
      use_.used_bytes = checked_add(use_.used_bytes, row.used_bytes);
      use_.reserved_bytes = checked_add(use_.reserved_bytes, row.reserved_bytes);
    }
    return std::move(use_);
  }

 private:
  void require(const CountedCache& cache) const {
    detail::require_known(use_.policy, spec_, cache.growth);
    if (cache.growth == KvGrowth::constant) return;
    detail::require_storable(vectors_of(*cache.attention, latent_of(use_.policy, workload_)),
                             format_);
    const bool chunks = cache.attention->window.kind == WindowKind::chunked;
    if (use_.policy == KvPolicy::vllm && chunks) {
      throw Error(ErrorCode::invalid_input,
                  fmt::format("it is undocumented how vllm frees the chunks of {}", spec_.name), {},
                  fmt::format("choose {} ideal or paged", Setting::kv_policy));
    }
  }

  void add(const CountedCache& cache) {
    KvCacheRow row;
    row.path = cache.path;
    row.growth = cache.growth;
    row.layers = cache.layers;
    row.used_tokens = cache.used_tokens;
    const Integer copies = checked_multiply(cache.layers, workload_.batch_size);
    if (cache.growth == KvGrowth::constant) {
      row.used_bytes = checked_multiply(copies, checked_multiply(cache.values, state_bytes()));
      row.reserved_bytes = row.used_bytes;
      use_.rows.push_back(std::move(row));
      return;
    }
    const auto used = vectors_of(*cache.attention, workload_.latent);
    const auto held = vectors_of(*cache.attention, latent_of(use_.policy, workload_));
    if (format_.scales != KvScales::kivi) {
      row.token_bytes = bytes_of_tokens(used, format_, 1).total();
    }
    const StoredBytes bytes = bytes_of_tokens(used, format_, cache.used_tokens);
    const Integer once = checked_multiply(cache.layers, bytes_of_tensor_scales(used, format_));
    row.used_bytes = checked_add(checked_multiply(copies, bytes.total()), once);
    use_.scale_bytes =
        checked_add(use_.scale_bytes, checked_add(checked_multiply(copies, bytes.scales), once));
    row.reserved_tokens = detail::reserved_cells(policy_, query_of(cache), spec_);
    row.reserved_bytes = checked_add(
        checked_multiply(copies, bytes_of_tokens(held, format_, row.reserved_tokens).total()),
        checked_multiply(cache.layers, bytes_of_tensor_scales(held, format_)));
    if (cache.growth != KvGrowth::encoder) add_token(cache, used);
    use_.rows.push_back(std::move(row));
  }

  void add_token(const CountedCache& cache, const std::vector<KvVectors>& vectors) {
    KvFormat steady = format_;
    // On average, KIVI stores as many bytes per token as per-group scales.
    if (steady.scales == KvScales::kivi) steady.scales = KvScales::group;
    use_.bytes_per_token =
        checked_add(use_.bytes_per_token,
                    checked_multiply(cache.layers, bytes_of_tokens(vectors, steady, 1).total()));
  }

  [[nodiscard]] CellQuery query_of(const CountedCache& cache) const {
    const Integer tokens = cache.growth == KvGrowth::encoder ? cache.used_tokens : tokens_;
    return {cache.growth, cache.attention->window, tokens, cache.used_tokens};
  }

  /// A recurrent state is not quantised to few bits with the keys and values: it would lose its
  /// content.
  [[nodiscard]] Integer state_bytes() const {
    const bool few_bits = is_block_type(use_.type) || info(use_.type).block_values > 1;
    return few_bits || use_.scales != KvScales::none ? bytes_of(workload_.dtype)
                                                     : bytes_of(info(use_.type).counted_as);
  }

  [[nodiscard]] Integer layers_of(KvGrowth growth) const {
    Integer layers = 0;
    for (const KvCacheRow& row : use_.rows) layers += row.growth == growth ? row.layers : 0;
    return layers;
  }

  /// vLLM gives every group the same number of layers and pads the last group of a kind with unused
  /// layers.
  void pad_groups() {
    const Integer full = layers_of(KvGrowth::full);
    const Integer windowed = layers_of(KvGrowth::windowed);
    if (full == 0 || windowed == 0) return;
    require_one_width();
    const Integer size =
        detail::vllm_group_size(std::min(full, windowed), std::max(full, windowed));
    pad(KvGrowth::full, round_up(full, size) - full);
    pad(KvGrowth::windowed, round_up(windowed, size) - windowed);
  }

  void pad(KvGrowth growth, Integer layers) {
    const auto row = std::ranges::find(use_.rows, growth, &KvCacheRow::growth);
    row->reserved_bytes = checked_add(row->reserved_bytes,
                                      checked_multiply(row->reserved_bytes / row->layers, layers));
  }

  void require_one_width() const {
    const auto width = [&](const CountedCache& cache) {
      return bytes_of_tokens(vectors_of(*cache.attention, workload_.latent), format_, 1).total();
    };
    const auto other = std::ranges::find_if(
        caches_, [&](const CountedCache& cache) { return width(cache) != width(caches_.front()); });
    if (other == caches_.end()) return;
    throw Error(
        ErrorCode::invalid_input,
        fmt::format("it is undocumented how vllm groups layers of different widths, as in {}",
                    spec_.name),
        {}, fmt::format("choose {} ideal or paged", Setting::kv_policy));
  }

  const ModelSpec& spec_;
  const Workload& workload_;
  KvFormat format_;
  ResolvedPolicy policy_;
  Integer tokens_ = 0;
  std::vector<CountedCache> caches_;
  KvCacheUse use_;
};

}  // namespace

bool has_plain_values(const KvCacheUse& use) noexcept {
  return use.scales == KvScales::none && info(use.type).block_values == 1;
}

bool asks_for_policy(const KvCacheRequest& request) noexcept {
  return request.policy != KvPolicy::ideal || request.scales != KvScales::none || request.block ||
         request.capacity;
}

std::optional<DType> counted_type(const KvCacheRequest& request) noexcept {
  if (!request.type) return std::nullopt;
  return info(*request.type).counted_as;
}

std::optional<KvCacheUse> kv_cache_use(const ModelSpec& spec, const Graph& graph,
                                       const Workload& workload, const KvCacheRequest& request) {
  return KvAccountant(spec, graph, workload, request).run();
}

}  // namespace headroom
