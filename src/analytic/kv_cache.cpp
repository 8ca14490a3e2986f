#include <fmt/format.h>

#include <algorithm>

#include "headroom/error.h"
#include "headroom/storage.h"
#include "kv_bytes.h"
#include "kv_groups.h"
#include "setting_format.h"

namespace headroom {
namespace {

using detail::bytes_of_tokens;
using detail::CellQuery;
using detail::Cells;
using detail::KvFormat;
using detail::KvRole;
using detail::KvVectors;
using detail::LayerPages;
using detail::PagedLayers;
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
  const Block* block = nullptr;
  std::int64_t layer = 0;  ///< within the block
  ElementType type = ElementType::kv_cache;
  Integer width = 0;      ///< elements per entry of a key cache
  Integer per_entry = 1;  ///< tokens per entry
  Integer taps = 0;       ///< of a convolution state: inputs that the reference code holds
};

/// Returns whether two caches are of one layer: a recurrent layer has two, its convolution's and
/// its recurrence's.
bool in_one_layer(const CountedCache& a, const CountedCache& b) {
  return a.block == b.block && a.layer == b.layer;
}

KvGrowth growth_of(const Tensor& tensor) {
  const Expr& tokens = tensor.shape.at(1);
  if (tensor.type == ElementType::compressor_state) return KvGrowth::constant;
  const bool compressed = tokens.degree(Symbol::compressed_keys) > 0 ||
                          tokens.degree(Symbol::heavily_compressed_keys) > 0;
  if (compressed) return KvGrowth::compressed;
  if (tokens.degree(Symbol::windowed_keys) > 0) return KvGrowth::windowed;
  if (tokens.degree(Symbol::visible_keys) > 0) return KvGrowth::full;
  return tokens.degree(Symbol::enc_seq_len) > 0 ? KvGrowth::encoder : KvGrowth::constant;
}

/// Tokens whose keys become one: of compressed keys, or of an indexer's pool.
Integer tokens_of_entry(const AttentionSpec& attention) {
  const auto& shared = attention.shared_key_value;
  return shared ? shared->compression.value().rate : attention.indexer.value().pool_size;
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
    cache.type = tensor.type;
    if (cache.type == ElementType::convolution_state) {
      cache.taps = tensor.shape.at(1).evaluate(values);
    }
    cache.attention = cache.growth == KvGrowth::encoder
                          ? &stack.cross_attention.value()
                          : &stack.attention_of(stack.variant(block->layer_of(*node, 0)));
    cache.block = block;
    cache.layer = node->layer;
    if (cache.type == ElementType::key_cache) cache.width = tensor.shape.back().evaluate(values);
    if (cache.growth == KvGrowth::compressed) {
      cache.per_entry = tokens_of_entry(*cache.attention);
    }
    if (cache.growth == KvGrowth::constant) {
      cache.values = tensor.elements().substitute(Symbol::batch_size, 1).evaluate(values);
    } else {
      cache.used_tokens = tensor.shape.at(1).evaluate(values);
    }
    caches.push_back(std::move(cache));
  }
  return caches;
}

/// Vectors of a cache that has one per position for all heads.
std::vector<KvVectors> key_vectors(const CountedCache& cache) {
  return {{KvRole::key, 1, cache.width}};
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

/// Vectors that `policy` stores. Hugging Face's code expands MLA's latent vectors before it caches
/// them, and Falcon's new decoder architecture repeats its heads.
std::vector<KvVectors> stored_vectors(KvPolicy policy, const AttentionSpec& attention,
                                      LatentAttention latent) {
  if (detail::is_hugging_face(policy)) {
    std::vector<KvVectors> vectors = vectors_of(attention, LatentAttention::naive);
    if (!attention.caches_repeated_heads) return vectors;
    for (KvVectors& kind : vectors) kind.count = attention.num_attention_heads;
    return vectors;
  }
  std::vector<KvVectors> vectors = vectors_of(attention, latent);
  const bool beside_latent = policy == KvPolicy::llama_cpp_b5331 && attention.latent &&
                             latent == LatentAttention::absorbed;
  if (beside_latent) vectors.push_back({KvRole::value, 1, attention.latent->kv_lora_rank});
  return vectors;
}

/// Counts the KV-cache of one graph, row by row.
class KvAccountant {
 public:
  KvAccountant(const ModelSpec& spec, const Graph& graph, const Workload& workload,
               const KvCacheRequest& request)
      : spec_(spec), workload_(workload), request_(request) {
    use_.key_type = request.key_type.value_or(kv_type(workload.kv_dtype));
    use_.value_type = request.value_type.value_or(kv_type(workload.kv_dtype));
    use_.scales = request.scales;
    use_.policy = request.policy;
    use_.prefix_caching = request.prefix_caching;
    format_ = {use_.key_type, use_.value_type, use_.scales, kv_type(workload.dtype)};
    if (detail::is_vllm(request.policy)) format_.token_scale = detail::kVllmTokenScale;
    tokens_ = checked_add(workload.past_len, workload.seq_len);
    policy_ = detail::resolve_policy(request, tokens_, workload.batch_size);
    values_ = bindings_of(workload, graph);
    fill_ = window_fill(workload, graph.traits);
    caches_ = counted_caches(spec, graph, values_);
  }

  std::optional<KvCacheUse> run() && {
    if (caches_.empty()) return std::nullopt;
    detail::require_types(use_.policy, use_.key_type, use_.value_type, use_.scales);
    for (const CountedCache& cache : caches_) require(cache);
    detail::require_layers(request_, spec_,
                           {has_layers(KvGrowth::constant), has_layers(KvGrowth::full)});
    for (const CountedCache& cache : caches_) add(cache);
    if (detail::is_vllm(use_.policy)) reserve_pages();
    store_options();
    for (const KvCacheRow& row : use_.rows) {
      use_.used_bytes = checked_add(use_.used_bytes, row.used_bytes);
      use_.steady_bytes = checked_add(use_.steady_bytes, row.steady_bytes);
      use_.reserved_bytes = checked_add(use_.reserved_bytes, row.reserved_bytes);
    }
    return std::move(use_);
  }

 private:
  [[nodiscard]] bool has_layers(KvGrowth growth) const {
    return std::ranges::any_of(caches_,
                               [&](const CountedCache& cache) { return cache.growth == growth; });
  }

  void require(const CountedCache& cache) const {
    detail::require_known(use_.policy, spec_, cache.growth, *cache.attention);
    if (cache.growth == KvGrowth::constant) return;
    detail::require_storable(stored(cache), format_);
  }

  void store_options() {
    const auto stored = [](Integer value) { return checked_int64(value); };
    if (detail::has_blocks(use_.policy)) use_.block = stored(policy_.block);
    if (detail::reserves_for_length(use_.policy)) use_.capacity = stored(policy_.capacity);
    if (policy_.batched_tokens > 0) use_.batched_tokens = stored(policy_.batched_tokens);
    if (policy_.slots > 0) use_.slots = stored(policy_.slots);
    if (policy_.speculative_tokens > 0)
      use_.speculative_tokens = stored(policy_.speculative_tokens);
    if (policy_.drafter_layers > 0) use_.drafter_layers = stored(policy_.drafter_layers);
  }

  [[nodiscard]] std::vector<KvVectors> used(const CountedCache& cache) const {
    if (cache.type == ElementType::key_cache) return key_vectors(cache);
    return vectors_of(*cache.attention, workload_.latent);
  }
  [[nodiscard]] std::vector<KvVectors> stored(const CountedCache& cache) const {
    if (cache.type == ElementType::key_cache) return key_vectors(cache);
    return stored_vectors(use_.policy, *cache.attention, workload_.latent);
  }

  void add(const CountedCache& cache) {
    KvCacheRow row;
    row.path = cache.path;
    row.growth = cache.growth;
    row.layers = cache.layers;
    row.used_tokens = cache.used_tokens;
    cache.growth == KvGrowth::constant ? add_state(cache, row) : add_tokens(cache, row);
    use_.rows.push_back(std::move(row));
  }

  void add_state(const CountedCache& cache, KvCacheRow& row) const {
    row.used_bytes = checked_multiply(checked_multiply(cache.layers, cache.values),
                                      workload_.batch_size * state_bytes(cache.type));
    row.steady_bytes = row.reserved_bytes = row.used_bytes;
    if (!detail::is_llama_cpp(use_.policy)) return;
    // Recurrent state is float32 whatever the types of K and V, for every slot.
    const Integer slots = policy_.slots > 0 ? policy_.slots : Integer{workload_.batch_size};
    row.steady_bytes = row.reserved_bytes = checked_multiply(
        checked_multiply(cache.layers, engine_values(cache, 0)), slots * bytes_of(DType::float32));
  }

  void add_tokens(const CountedCache& cache, KvCacheRow& row) {
    const std::vector<KvVectors> vectors = used(cache);
    if (format_.scales != KvScales::kivi) {
      row.token_bytes = bytes_of_tokens(vectors, format_, 1).total();
    }
    const Integer copies = checked_multiply(cache.layers, workload_.batch_size);
    const StoredBytes bytes = bytes_of_tokens(vectors, format_, cache.used_tokens);
    const Integer once = checked_multiply(cache.layers, bytes_of_tensor_scales(vectors, format_));
    row.used_bytes = checked_add(checked_multiply(copies, bytes.total()), once);
    use_.scale_bytes =
        checked_add(use_.scale_bytes, checked_add(checked_multiply(copies, bytes.scales), once));
    const Cells cells = cells_of(policy_, query_of(cache), spec_);
    row.steady_tokens = cells.steady;
    row.reserved_tokens = cells.reserved;
    row.steady_bytes = bytes_of_cells(cache, cells.steady);
    row.reserved_bytes = bytes_of_cells(cache, cells.reserved);
    if (cache.growth != KvGrowth::encoder) add_token(cache, vectors);
  }

  /// Bytes of `cells` in all layers, of every sequence unless they share a cache.
  [[nodiscard]] Integer bytes_of_cells(const CountedCache& cache, Integer cells) const {
    const std::vector<KvVectors> vectors = stored(cache);
    const Integer caches = policy_.slots > 0 ? 1 : workload_.batch_size;
    return checked_multiply(
        cache.layers,
        checked_add(checked_multiply(caches, bytes_of_tokens(vectors, format_, cells).total()),
                    bytes_of_tensor_scales(vectors, format_)));
  }

  void add_token(const CountedCache& cache, const std::vector<KvVectors>& vectors) {
    if (cache.growth == KvGrowth::windowed && fill_ == WindowFill::full) return;
    KvFormat steady = format_;
    // On average, KIVI stores as many bytes per token as per-group scales.
    if (steady.scales == KvScales::kivi) steady.scales = KvScales::group;
    const Integer entry =
        checked_multiply(cache.layers, bytes_of_tokens(vectors, steady, 1).total());
    use_.bytes_per_token = checked_add(use_.bytes_per_token, entry / cache.per_entry);
  }

  [[nodiscard]] CellQuery query_of(const CountedCache& cache) const {
    const bool own_length =
        cache.growth == KvGrowth::encoder || cache.growth == KvGrowth::compressed;
    const Integer tokens = own_length ? cache.used_tokens : tokens_;
    const WindowSpec window =
        cache.growth == KvGrowth::windowed ? cache.attention->window : WindowSpec{};
    return {cache.growth, window, tokens, cache.used_tokens, workload_.batch_size};
  }

  /// A recurrent state is not quantised to few bits with the keys and values: it would lose its
  /// content.
  [[nodiscard]] Integer state_bytes(ElementType type) const {
    if (type != ElementType::kv_cache) return bytes_of(type).evaluate(values_);
    const bool plain = use_.scales == KvScales::none && use_.key_type == use_.value_type &&
                       info(use_.key_type).block_values == 1;
    return bytes_of(plain ? info(use_.key_type).counted_as : workload_.dtype);
  }

  /// Values of a state in vLLM (MambaStateShapeCalculator.gated_delta_net_state_shape) and
  /// llama.cpp (llama_hparams::n_embd_r): of a convolution they keep the inputs that the next step
  /// needs, one fewer than it has taps, and vLLM one more per speculative token.
  [[nodiscard]] static Integer engine_values(const CountedCache& cache,
                                             Integer speculative_tokens) {
    if (cache.taps == 0) return cache.values;
    return checked_multiply(cache.values / cache.taps, cache.taps - 1 + speculative_tokens);
  }

  /// vLLM keeps the inputs of a convolution in the model's type (mamba_cache_dtype "auto"), and the
  /// state in the type that the config names: Qwen3_5ForConditionalGenerationConfig in
  /// vllm/model_executor/models/config.py copies mamba_ssm_dtype to mamba_ssm_cache_dtype.
  [[nodiscard]] Integer vllm_state_bytes(const CountedCache& cache) const {
    const auto& delta = cache.attention->gated_delta;
    const bool has_own_type = cache.taps == 0 && delta && delta->state_value_bytes > 0;
    return checked_multiply(
        engine_values(cache, policy_.speculative_tokens),
        has_own_type ? Integer{delta->state_value_bytes} : bytes_of(workload_.dtype));
  }

  /// Bytes of all states of one layer, which share a page.
  [[nodiscard]] Integer layer_state_bytes(const CountedCache& like) const {
    Integer bytes = 0;
    for (const CountedCache& cache : caches_) {
      if (cache.growth != KvGrowth::constant || !in_one_layer(cache, like)) continue;
      bytes = checked_add(bytes, vllm_state_bytes(cache));
    }
    return bytes;
  }

  /// Returns whether an earlier state of the layer has the page of this one.
  [[nodiscard]] bool is_within_page(std::size_t index) const {
    const CountedCache& cache = caches_[index];
    return cache.growth == KvGrowth::constant && index > 0 &&
           caches_[index - 1].growth == KvGrowth::constant &&
           in_one_layer(cache, caches_[index - 1]);
  }

  [[nodiscard]] PagedLayers paged_layers(const CountedCache& cache) const {
    PagedLayers paged{query_of(cache), cache.layers, 0, 0, 0};
    if (cache.growth == KvGrowth::constant) {
      paged.state_bytes = layer_state_bytes(cache);
    } else {
      paged.token_bytes = bytes_of_tokens(stored(cache), format_, 1).total();
    }
    return paged;
  }

  /// vLLM's pages: replaces the rows' bytes by whole pages, and adds a drafter's layers to the
  /// first row with full attention and the unused layers of the last group of each kind to its
  /// first row.
  void reserve_pages() {
    std::vector<PagedLayers> layers;
    std::vector<std::size_t> rows;
    for (std::size_t i = 0; i < caches_.size(); ++i) {
      if (is_within_page(i)) continue;
      layers.push_back(paged_layers(caches_[i]));
      rows.push_back(i);
    }
    const auto full = std::ranges::find(
        layers, KvGrowth::full, [](const PagedLayers& paged) { return paged.query.growth; });
    if (full != layers.end()) full->drafter_layers = policy_.drafter_layers;
    const std::vector<LayerPages> pages = vllm_pages(policy_, layers, spec_);
    for (std::size_t i = 0; i < rows.size(); ++i) store_pages(pages[i], rows[i]);
    for (std::size_t i = 0; i < caches_.size(); ++i) {
      if (is_within_page(i)) share_page(use_.rows[i - 1], use_.rows[i]);
    }
  }

  /// Leaves the first state its own bytes of the page, and gives the second state the others.
  static void share_page(KvCacheRow& first, KvCacheRow& second) {
    second.steady_bytes = first.steady_bytes - first.used_bytes;
    second.reserved_bytes = first.reserved_bytes - first.used_bytes;
    first.steady_bytes = first.reserved_bytes = first.used_bytes;
  }

  void store_pages(const LayerPages& pages, std::size_t index) {
    KvCacheRow& row = use_.rows[index];
    const Integer copies = checked_multiply(row.layers + pages.more_layers, workload_.batch_size);
    const Integer scales =
        row.growth == KvGrowth::constant
            ? 0
            : checked_multiply(row.layers, bytes_of_tensor_scales(stored(caches_[index]), format_));
    const auto bytes_of_pages = [&](Integer count) {
      return checked_add(scales,
                         checked_multiply(copies, checked_multiply(count, pages.page_bytes)));
    };
    row.steady_tokens = pages.steady_pages * pages.block;
    row.reserved_tokens = pages.reserved_pages * pages.block;
    row.steady_bytes = bytes_of_pages(pages.steady_pages);
    row.reserved_bytes = bytes_of_pages(pages.reserved_pages);
    if (pages.block > 0) policy_.block = std::max(policy_.block, pages.block);
  }

  const ModelSpec& spec_;
  const Workload& workload_;
  const KvCacheRequest& request_;
  KvFormat format_;
  ResolvedPolicy policy_;
  Integer tokens_ = 0;
  Bindings values_;
  WindowFill fill_ = WindowFill::filling;
  std::vector<CountedCache> caches_;
  KvCacheUse use_;
};

}  // namespace

void set_types(KvCacheRequest& request, const KvTypes& types) noexcept {
  request.key_type = types.key;
  request.value_type = types.value;
}

void set_type(KvCacheRequest& request, KvType type) noexcept {
  request.key_type = request.value_type = type;
}

std::string name_of_types(KvType key, KvType value) {
  if (key == value) return std::string(info(key).name);
  return fmt::format("k={},v={}", info(key).name, info(value).name);
}

bool has_plain_values(const KvCacheUse& use) noexcept {
  const KvTypeInfo& key = info(use.key_type);
  const KvTypeInfo& value = info(use.value_type);
  return use.scales == KvScales::none && key.block_values == 1 && value.block_values == 1 &&
         key.block_bytes == value.block_bytes;
}

bool asks_for_policy(const KvCacheRequest& request) noexcept {
  return request.policy != KvPolicy::ideal || request.scales != KvScales::none || request.block ||
         request.capacity || request.batched_tokens || request.slots || request.prefix_caching ||
         request.speculative_tokens || request.drafter_layers;
}

std::optional<DType> counted_type(const KvCacheRequest& request, DType dtype) noexcept {
  if (!request.key_type && !request.value_type) return std::nullopt;
  const DType key = info(request.key_type.value_or(kv_type(dtype))).counted_as;
  const DType value = info(request.value_type.value_or(kv_type(dtype))).counted_as;
  return bytes_of(value) > bytes_of(key) ? value : key;
}

std::optional<KvCacheUse> kv_cache_use(const ModelSpec& spec, const Graph& graph,
                                       const Workload& workload, const KvCacheRequest& request) {
  return KvAccountant(spec, graph, workload, request).run();
}

std::vector<std::string> notes_on(const KvCacheUse& use, const Workload& workload) {
  std::vector<std::string> notes;
  const bool few_bits = is_block_type(use.value_type);
  if (detail::is_llama_cpp(use.policy) && few_bits &&
      workload.attention == AttentionImplementation::eager) {
    notes.push_back(fmt::format(
        "llama.cpp stores quantised values only with flash attention; without it V is float16"));
  }
  return notes;
}

}  // namespace headroom
