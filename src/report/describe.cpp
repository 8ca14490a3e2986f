#include "describe.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "headroom/storage.h"
#include "used_variants.h"
#include "with_noun.h"

namespace headroom::detail {
namespace {

std::string describe_layers(const ModelSpec& spec) {
  if (spec.kind == ModelKind::encoder_decoder) {
    return fmt::format("{} + {} layers", spec.encoder->num_layers, spec.decoder->num_layers);
  }
  const std::int64_t layers = spec.main_stack().num_layers;
  if (spec.denoiser && spec.denoiser->num_single_layers > 0) {
    const std::int64_t single = spec.denoiser->num_single_layers;
    return fmt::format("{} joint + {} single layers", layers - single, single);
  }
  return with_noun(layers, "layer");
}

std::string_view cell_name(RecurrentCell cell) noexcept {
  switch (cell) {
    case RecurrentCell::rnn:
      return "RNN";
    case RecurrentCell::gru:
      return "GRU";
    case RecurrentCell::lstm:
      break;
  }
  return "LSTM";
}

/// "kernel 3, causal, dilation 1–128".
std::string describe_convolution(const StackSpec& stack) {
  std::string words = fmt::format("kernel {}", stack.convolution->kernel_size);
  if (stack.convolution->causal) words += ", causal";
  std::int64_t least = stack.convolution->dilation;
  std::int64_t most = least;
  for (std::size_t variant = 0; variant <= stack.variants.size(); ++variant) {
    const std::int64_t dilation = stack.convolution_of(variant)->dilation;
    least = std::min(least, dilation);
    most = std::max(most, dilation);
  }
  if (most == 1) return words;
  words += fmt::format(", dilation {}", least);
  return most == least ? words : words + fmt::format("–{}", most);
}

std::string describe_window(const WindowSpec& window) {
  return window.kind == WindowKind::centred ? fmt::format("window ±{}", window.size)
                                            : fmt::format("window {}", window.size);
}

std::string describe_heads(const AttentionSpec& attention) {
  std::string heads = fmt::format("heads {}", attention.num_attention_heads);
  if (attention.num_key_value_heads != attention.num_attention_heads) {
    heads += fmt::format(" ({} key-value)", attention.num_key_value_heads);
  }
  return attention.kind == AttentionKind::linear ? "linear attention · " + heads : heads;
}

/// Number of layers whose attention `has` holds for.
template <class Predicate>
std::int64_t layers_where(const StackSpec& stack, const Predicate& has) {
  std::int64_t count = 0;
  for (std::int64_t layer = 0; layer < stack.num_layers; ++layer) {
    if (has(stack.attention_of(stack.variant(layer)))) ++count;
  }
  return count;
}

/// Adds "RG-LRU in 18 layers, 2560 channels" and likewise RWKV's recurrence.
void add_recurrences(const StackSpec& stack, std::vector<std::string>& words) {
  std::int64_t griffin = 0;
  std::int64_t rwkv = 0;
  for (std::size_t variant = 0; variant <= stack.variants.size(); ++variant) {
    const AttentionSpec& attention = stack.attention_of(variant);
    if (attention.gated_recurrence) griffin = attention.gated_recurrence->width;
    if (attention.weighted_key_value_width > 0) rwkv = attention.weighted_key_value_width;
  }
  if (griffin > 0) {
    const auto layers = layers_where(stack, [](const AttentionSpec& attention) {
      return attention.gated_recurrence.has_value();
    });
    words.push_back(fmt::format("RG-LRU in {}, {} channels", with_noun(layers, "layer"), griffin));
  }
  if (rwkv > 0) {
    words.push_back(
        fmt::format("WKV in {}, {} channels", with_noun(stack.num_layers, "layer"), rwkv));
  }
}

/// Adds "state space in 23 layers, 64 heads of 64, state 128" and other mixers with a state.
void add_mixers(const StackSpec& stack, std::vector<std::string>& words) {
  std::optional<StateSpaceSpec> scan;
  std::optional<ShortConvolutionSpec> convolution;
  std::optional<GatedDeltaSpec> delta;
  std::optional<TimeMixSpec> mix;
  for (std::size_t variant = 0; variant <= stack.variants.size(); ++variant) {
    const AttentionSpec& attention = stack.attention_of(variant);
    if (attention.state_space) scan = attention.state_space;
    if (attention.short_convolution) convolution = attention.short_convolution;
    if (attention.gated_delta) delta = attention.gated_delta;
    if (attention.time_mix) mix = attention.time_mix;
  }
  if (scan) {
    const auto layers = layers_where(
        stack, [](const AttentionSpec& attention) { return attention.state_space.has_value(); });
    const std::string heads =
        scan->head_dim == 1
            ? with_noun(scan->num_heads, "channel")
            : fmt::format("{} of {}", with_noun(scan->num_heads, "head"), scan->head_dim);
    if (scan->kind == StateSpaceKind::lightning) {
      words.push_back(fmt::format("lightning attention in {}", with_noun(layers, "layer")));
    } else {
      words.push_back(fmt::format("state space in {}, {}, state {}", with_noun(layers, "layer"),
                                  heads, scan->state_size));
    }
  }
  if (convolution) {
    const auto layers = layers_where(stack, [](const AttentionSpec& attention) {
      return attention.short_convolution.has_value();
    });
    words.push_back(fmt::format("short convolution in {}, kernel {}", with_noun(layers, "layer"),
                                convolution->kernel_size));
  }
  if (delta) {
    const auto layers = layers_where(
        stack, [](const AttentionSpec& attention) { return attention.gated_delta.has_value(); });
    words.push_back(fmt::format("gated delta in {}, {} of {} × {}", with_noun(layers, "layer"),
                                with_noun(delta->num_value_heads, "head"), delta->key_head_dim,
                                delta->value_head_dim));
  }
  if (mix) {
    const auto layers = layers_where(
        stack, [](const AttentionSpec& attention) { return attention.time_mix.has_value(); });
    words.push_back(fmt::format("time mixing in {}, {} of {} × {}", with_noun(layers, "layer"),
                                with_noun(mix->num_heads, "head"), mix->head_dim,
                                mix->value_head_dim));
  }
  add_recurrences(stack, words);
}

void add_mask(const AttentionSpec& attention, std::vector<std::string>& words) {
  if (attention.causal) words.emplace_back("causal");
  if (attention.window.kind != WindowKind::none) words.push_back(describe_window(attention.window));
}

/// True if the head dim is not hidden size over heads, or differs between K and V.
bool has_own_head_dim(const ModelSpec& spec) {
  const AttentionSpec& attention = spec.main_stack().self_attention;
  return spec.has_attention() &&
         (attention.head_dim * attention.num_attention_heads != spec.hidden_size ||
          attention.value_head_dim != attention.head_dim);
}

std::string describe_head_dim(const AttentionSpec& attention) {
  std::string keys = fmt::format("head dim {}", attention.head_dim);
  if (attention.value_head_dim == attention.head_dim) return keys;
  return fmt::format("{} / {}", keys, attention.value_head_dim);
}

/// The first variant's feed-forward network that `has` holds for; null if no layer has one.
template <class Predicate>
const FfnSpec* ffn_where(const StackSpec& stack, const Predicate& has) {
  for (const std::size_t variant : used_variants(stack)) {
    const FfnSpec& ffn = stack.ffn_of(variant);
    if (has(ffn)) return &ffn;
  }
  return nullptr;
}

/// The network that every token of a layer reads; null if no layer has one.
const FfnSpec* dense_ffn(const StackSpec& stack) {
  return ffn_where(stack, [](const FfnSpec& ffn) {
    const bool routed = ffn.experts && !ffn.experts->beside_dense;
    return ffn.kind != FfnKind::none && ffn.intermediate_size > 0 && !routed;
  });
}

/// The first variant's network with routed experts; null if no layer has them.
const FfnSpec* routed_ffn(const StackSpec& stack) {
  return ffn_where(stack, [](const FfnSpec& ffn) { return ffn.experts.has_value(); });
}

/// Adds "gated FFN 18432" and "256 experts of 2048, 8 per token", of layers that have them.
void add_ffn(const StackSpec& stack, std::vector<std::string>& words) {
  if (const FfnSpec* dense = dense_ffn(stack)) {
    words.push_back(fmt::format("{}FFN {}", dense->kind == FfnKind::gated ? "gated " : "",
                                dense->intermediate_size));
  }
  const FfnSpec* routed = routed_ffn(stack);
  if (routed == nullptr) return;
  const ExpertsSpec& experts = *routed->experts;
  words.push_back(fmt::format("{} of {}, {} per token", with_noun(experts.num_experts, "expert"),
                              experts.intermediate_size, experts.num_experts_per_tok));
}

bool is_attention_layer(ModelKind kind) {
  return kind == ModelKind::attention_layer || kind == ModelKind::cross_attention_layer;
}

}  // namespace

std::string_view name_of(ModelKind kind) noexcept {
  switch (kind) {
    case ModelKind::encoder:
      return "encoder";
    case ModelKind::decoder:
      return "decoder";
    case ModelKind::encoder_decoder:
      return "encoder-decoder";
    case ModelKind::denoiser:
      return "diffusion transformer";
    case ModelKind::attention_layer:
      return "attention layer";
    case ModelKind::cross_attention_layer:
      return "cross-attention layer";
    case ModelKind::recurrent_layer:
      return "recurrent layer";
    case ModelKind::convolution_layer:
      return "convolution layer";
    case ModelKind::feed_forward_layer:
      break;
  }
  return "feed-forward layer";
}

std::string describe(const ModelSpec& spec) {
  const StackSpec& stack = spec.main_stack();
  std::vector<std::string> words{std::string(name_of(spec.kind)), describe_layers(spec),
                                 fmt::format("hidden {}", spec.hidden_size)};
  if (spec.has_attention()) words.push_back(describe_heads(stack.self_attention));
  add_mixers(stack, words);
  if (const auto& shared = stack.shared_block) {
    words.push_back(fmt::format("shared attention and FFN {} in {}", shared->ffn.intermediate_size,
                                with_noun(static_cast<Integer>(shared->layers.size()), "layer")));
  }
  if (stack.recurrent) words.emplace_back(cell_name(stack.recurrent->cell));
  if (stack.convolution) words.push_back(describe_convolution(stack));
  if (is_attention_layer(spec.kind)) add_mask(stack.self_attention, words);
  if (has_own_head_dim(spec)) words.push_back(describe_head_dim(stack.self_attention));
  add_ffn(stack, words);
  if (spec.embedding.vocab_size > 0) {
    words.push_back(fmt::format("vocab {}", spec.embedding.vocab_size));
  }
  if (const auto& image = spec.embedding.image) {
    words.push_back(fmt::format("image {}, patch {}", image->image_size, image->patch_size));
  }
  return fmt::format("{}", fmt::join(words, " · "));
}

namespace {

/// Adds "1024 × 1024 pixels" or "81 frames of 480 × 832 pixels".
void add_sample(const SampleSize& sample, const LatentSpec& latent,
                std::vector<std::string>& words) {
  const std::string size = fmt::format("{} × {} pixels", sample.image.height, sample.image.width);
  words.push_back(
      latent.is_video() ? fmt::format("{} of {}", with_noun(sample.frames, "frame"), size) : size);
}

/// Adds the lengths of the model's sequences.
void add_lengths(const Workload& workload, const ModelSpec& spec, std::vector<std::string>& words) {
  if (spec.denoiser) {
    if (workload.sample) add_sample(*workload.sample, spec.denoiser->latent, words);
    words.push_back(with_noun(workload.seq_len, "latent token"));
    words.push_back(with_noun(workload.enc_seq_len, "text token"));
    return;
  }
  words.push_back(fmt::format("seq {}", workload.seq_len));
  if (spec.reads_two_sequences()) {
    words.push_back(fmt::format("enc-seq {}", workload.enc_seq_len));
  }
}

}  // namespace

std::string describe(const WorkloadImages& images, std::int64_t sequences) {
  std::string words = fmt::format("{} of {} × {}", with_noun(images.count, "image"),
                                  images.size.height, images.size.width);
  if (images.totals.tokens > 0) {
    words += ": " + with_noun(images.totals.tokens / sequences, "visual token");
  }
  return words;
}

std::string describe(const WorkloadAudio& audio, std::int64_t sequences) {
  return fmt::format("{} of {} s: {}", with_noun(audio.count, "clip"), audio.seconds,
                     with_noun(audio.totals.tokens / sequences, "audio token"));
}

std::string describe(const Workload& workload, const ModelSpec& spec, std::string_view cache_type) {
  const bool denoises = spec.denoiser && workload.phase == Phase::prefill;
  std::vector<std::string> words{denoises ? "denoising step" : std::string(name_of(workload.phase)),
                                 fmt::format("batch {}", workload.batch_size)};
  add_lengths(workload, spec, words);
  if (workload.images.count > 0) {
    words.push_back(describe(workload.images, workload.batch_size));
  }
  if (workload.audio.count > 0) {
    words.push_back(describe(workload.audio, workload.batch_size));
  }
  if (workload.global_tokens > 0) {
    words.push_back(with_noun(workload.global_tokens, "global token"));
  }
  if (workload.past_len > 0) words.push_back(fmt::format("past {}", workload.past_len));
  if (workload.weights) {
    words.push_back(fmt::format("{} weights", name_of(workload.weights)));
  }
  words.emplace_back(name_of(workload.dtype));
  if (workload.arithmetic_type() != workload.dtype) {
    words.push_back(fmt::format("{} arithmetic", name_of(workload.arithmetic_type())));
  }
  const std::string_view cached = cache_type.empty() ? name_of(workload.kv_dtype) : cache_type;
  if (cached != name_of(workload.dtype)) words.push_back(fmt::format("KV-cache {}", cached));
  if (spec.has_attention()) {
    words.push_back(fmt::format("{} attention", name_of(workload.attention)));
  }
  if (workload.logits == Logits::last) words.emplace_back("last logits");
  if (workload.phase == Phase::train) {
    words.push_back(fmt::format("recompute {}", name_of(workload.recompute)));
    words.push_back(fmt::format("{} kernels", name_of(workload.kernels)));
  }
  return fmt::format("{}", fmt::join(words, " · "));
}

std::string describe_bytes(Integer bytes) {
  const Unit unit = byte_unit(bytes);
  return fmt::format("{} {}", cell_text(bytes, in_unit(unit, 2)), unit.name);
}

std::string describe_allocated(const AllocatedMemory& memory) {
  std::string text = fmt::format("{} arena", describe_bytes(memory.arena_bytes));
  const auto add = [&](std::int64_t bytes, std::string_view name) {
    if (bytes > 0) text += fmt::format(" · {} {}", describe_bytes(bytes), name);
  };
  add(memory.strided_copy_bytes, "strided copies");
  add(memory.kernel_scratch_bytes, "kernel scratch");
  add(memory.gemm_scratchpad_bytes, "GEMM scratchpad");
  return text;
}

std::string describe_threads(int threads) { return with_noun(threads, "thread"); }

void add_token_times(const std::optional<double>& ttft_s, const std::optional<double>& tpot_s,
                     Document& document) {
  if (ttft_s) document.add_line("TTFT", duration(*ttft_s));
  if (tpot_s) {
    document.add_line("TPOT",
                      fmt::format("{} = (total − TTFT)/(new tokens − 1)", duration(*tpot_s)));
  }
}

Json to_json(const WorkloadImages& images, std::int64_t sequences) {
  return {{"count", images.count},
          {"height", images.size.height},
          {"width", images.size.width},
          {"visual_tokens", images.totals.tokens / sequences}};
}

Json to_json(const WorkloadAudio& audio, std::int64_t sequences) {
  return {{"count", audio.count},
          {"seconds", audio.seconds},
          {"audio_tokens", audio.totals.tokens / sequences}};
}

Json to_json(const Workload& workload, const ModelSpec& spec) {
  Json json;
  json["phase"] = name_of(workload.phase);
  json["batch_size"] = workload.batch_size;
  json["seq_len"] = workload.seq_len;
  json["enc_seq_len"] = spec.reads_two_sequences() ? Json(workload.enc_seq_len) : Json(nullptr);
  json["past_len"] = workload.past_len;
  if (workload.images.count > 0) json["images"] = to_json(workload.images, workload.batch_size);
  if (workload.audio.count > 0) json["audio"] = to_json(workload.audio, workload.batch_size);
  if (workload.sample) {
    json["sample"] = {{"height", workload.sample->image.height},
                      {"width", workload.sample->image.width},
                      {"frames", workload.sample->frames}};
  }
  if (spec.main_stack().self_attention.global) json["global_tokens"] = workload.global_tokens;
  json["weights"] = name_of(workload.weights);
  json["dtype"] = name_of(workload.dtype);
  json["arithmetic"] = name_of(workload.arithmetic_type());
  json["kv_dtype"] = name_of(workload.kv_dtype);
  json["attention"] = name_of(workload.attention);
  json["recompute"] = name_of(workload.recompute);
  json["kernels"] = name_of(workload.kernels);
  json["latent_attention"] = name_of(workload.latent);
  json["logits"] = can_generate(spec) ? Json(name_of(workload.logits)) : Json(nullptr);
  json["new_tokens"] = nullptr;
  return json;
}

Json to_json(const Workload& workload, const ModelSpec& spec,
             const std::optional<KvCacheUse>& cache) {
  Json json = to_json(workload, spec);
  if (cache) json["kv_dtype"] = name_of_types(cache->key_type, cache->value_type);
  return json;
}

Json to_json(const Model& model) {
  const ModelSpec& spec = model.spec;
  const StackSpec& stack = spec.main_stack();
  const AttentionSpec& attention = stack.self_attention;
  const auto or_null = [](std::int64_t value) { return value > 0 ? Json(value) : Json(nullptr); };
  Json json;
  json["name"] = spec.name;
  json["model_type"] = spec.model_type;
  json["architecture"] = spec.architecture;
  json["kind"] = name_of(spec.kind);
  json["source"] = model.source;
  json["num_hidden_layers"] = stack.num_layers;
  json["num_encoder_layers"] =
      spec.kind == ModelKind::encoder_decoder ? Json(spec.encoder->num_layers) : Json(nullptr);
  json["hidden_size"] = spec.hidden_size;
  json["num_attention_heads"] = or_null(attention.num_attention_heads);
  json["num_key_value_heads"] = or_null(attention.num_key_value_heads);
  json["head_dim"] = or_null(attention.head_dim);
  json["value_head_dim"] = or_null(attention.value_head_dim);
  json["intermediate_size"] = or_null(dense_intermediate_size(stack));
  const FfnSpec* routed = routed_ffn(stack);
  json["moe_intermediate_size"] =
      routed == nullptr ? Json(nullptr) : Json(routed->experts->intermediate_size);
  json["vocab_size"] = or_null(spec.embedding.vocab_size);
  json["max_position_embeddings"] = or_null(spec.position.max_position_embeddings);
  json["complete"] = spec.unread_keys.empty() && spec.storage.bytes_known;
  if (!model.name_note.empty()) json["name_note"] = model.name_note;
  return json;
}

Json verdict_json(std::optional<bool> passed, const std::string& text) {
  return {{"passed", passed ? Json(*passed) : Json(nullptr)}, {"text", text}};
}

Json context_json(const MachineContext& context) {
  return {{"cpu", context.cpu},
          {"logical_cpus", context.logical_cpus},
          {"threads", context.threads},
          {"caches", context.caches},
          {"frequency_governor",
           context.frequency_governor.empty() ? Json(nullptr) : Json(context.frequency_governor)},
          {"compiler", context.compiler},
          {"backend", context.backend},
          {"load_average", context.load_average},
          {"other_programs_cpus", json_or_null(context.other_programs_cpus)}};
}

std::string fixed_times_text(const FixedTimes& times, std::string_view per) {
  if (times.kernel_s <= 0) return {};
  const auto microseconds = [](double seconds) { return fmt::format("{:.0f}", 1e6 * seconds); };
  const std::string others = microseconds(times.kernel_s);
  const std::string layers = microseconds(times.layer_gemm_kernel_s);
  std::string text = fmt::format(", {} µs per {}", others, per);
  if (times.layer_gemm_type && layers != others) {
    text += fmt::format(" ({} in {})", layers, name_of(*times.layer_gemm_type));
  }
  return text;
}

std::string factor_text(double factor) {
  return fmt::format(
      "a step takes 1/{0:.3g} to {0:.3g} times as long as predicted, within the roofline, for nine "
      "of ten runs",
      factor);
}

}  // namespace headroom::detail
