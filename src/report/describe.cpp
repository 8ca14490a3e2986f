#include "describe.h"

#include <fmt/format.h>

#include <vector>

namespace headroom::detail {
namespace {

std::string describe_layers(const ModelSpec& spec) {
  if (spec.kind == ModelKind::encoder_decoder) {
    return fmt::format("{} + {} layers", spec.encoder->num_layers, spec.decoder->num_layers);
  }
  const std::int64_t layers = spec.main_stack().num_layers;
  return fmt::format("{} layer{}", layers, layers == 1 ? "" : "s");
}

std::string describe_heads(const AttentionSpec& attention) {
  std::string heads = fmt::format("heads {}", attention.num_attention_heads);
  if (attention.num_key_value_heads != attention.num_attention_heads) {
    heads += fmt::format(" ({} key-value)", attention.num_key_value_heads);
  }
  return attention.kind == AttentionKind::linear ? "linear attention · " + heads : heads;
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
    case ModelKind::attention_layer:
      break;
  }
  return "attention layer";
}

std::string describe(const ModelSpec& spec) {
  const StackSpec& stack = spec.main_stack();
  const AttentionSpec& attention = stack.self_attention;
  std::vector<std::string> words{std::string(name_of(spec.kind)), describe_layers(spec),
                                 fmt::format("hidden {}", spec.hidden_size),
                                 describe_heads(attention)};
  const bool own_head_dim =
      attention.head_dim * attention.num_attention_heads != spec.hidden_size ||
      attention.value_head_dim != attention.head_dim;
  if (own_head_dim) words.push_back(fmt::format("head dim {}", attention.head_dim));
  if (attention.value_head_dim != attention.head_dim) {
    words.back() += fmt::format(" / {}", attention.value_head_dim);
  }
  if (stack.ffn.kind != FfnKind::none) {
    words.push_back(fmt::format("{}FFN {}", stack.ffn.kind == FfnKind::gated ? "gated " : "",
                                stack.ffn.intermediate_size));
  }
  if (spec.embedding.vocab_size > 0) {
    words.push_back(fmt::format("vocab {}", spec.embedding.vocab_size));
  }
  if (const auto& image = spec.embedding.image) {
    words.push_back(fmt::format("image {}, patch {}", image->image_size, image->patch_size));
  }
  return fmt::format("{}", fmt::join(words, " · "));
}

std::string describe(const Workload& workload, const ModelSpec& spec, std::string_view cache_type) {
  std::vector<std::string> words{std::string(name_of(workload.phase)),
                                 fmt::format("batch {}", workload.batch_size),
                                 fmt::format("seq {}", workload.seq_len)};
  if (spec.kind == ModelKind::encoder_decoder) {
    words.push_back(fmt::format("enc-seq {}", workload.enc_seq_len));
  }
  if (workload.past_len > 0) words.push_back(fmt::format("past {}", workload.past_len));
  words.emplace_back(name_of(workload.dtype));
  const std::string_view cached = cache_type.empty() ? name_of(workload.kv_dtype) : cache_type;
  if (cached != name_of(workload.dtype)) words.push_back(fmt::format("KV-cache {}", cached));
  words.push_back(fmt::format("{} attention", name_of(workload.attention)));
  if (workload.phase == Phase::train) {
    words.push_back(fmt::format("recompute {}", name_of(workload.recompute)));
    words.push_back(fmt::format("{} kernels", name_of(workload.kernels)));
  }
  return fmt::format("{}", fmt::join(words, " · "));
}

std::string describe_bytes(Integer bytes) {
  const Unit unit = byte_unit(bytes);
  return fmt::format("{} {}", shown_text(bytes, in_unit(unit, 2)), unit.name);
}

std::string describe_threads(int threads) {
  return fmt::format("{} thread{}", threads, threads == 1 ? "" : "s");
}

void add_token_times(const std::optional<double>& ttft_s, const std::optional<double>& tpot_s,
                     Document& document) {
  if (ttft_s) document.add_line("TTFT", duration(*ttft_s));
  if (tpot_s) {
    document.add_line("TPOT",
                      fmt::format("{} = (total − TTFT)/(new tokens − 1)", duration(*tpot_s)));
  }
}

Json to_json(const Workload& workload, const ModelSpec& spec) {
  Json json;
  json["phase"] = name_of(workload.phase);
  json["batch_size"] = workload.batch_size;
  json["seq_len"] = workload.seq_len;
  json["enc_seq_len"] =
      spec.kind == ModelKind::encoder_decoder ? Json(workload.enc_seq_len) : Json(nullptr);
  json["past_len"] = workload.past_len;
  json["dtype"] = name_of(workload.dtype);
  json["kv_dtype"] = name_of(workload.kv_dtype);
  json["attention"] = name_of(workload.attention);
  json["recompute"] = name_of(workload.recompute);
  json["kernels"] = name_of(workload.kernels);
  json["latent_attention"] = name_of(workload.latent);
  return json;
}

Json to_json(const Workload& workload, const ModelSpec& spec,
             const std::optional<KvCacheUse>& cache) {
  Json json = to_json(workload, spec);
  if (cache) json["kv_dtype"] = info(cache->type).name;
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
  json["num_attention_heads"] = attention.num_attention_heads;
  json["num_key_value_heads"] = attention.num_key_value_heads;
  json["head_dim"] = attention.head_dim;
  json["value_head_dim"] = attention.value_head_dim;
  json["intermediate_size"] = or_null(stack.ffn.intermediate_size);
  json["vocab_size"] = or_null(spec.embedding.vocab_size);
  json["max_position_embeddings"] = or_null(spec.position.max_position_embeddings);
  return json;
}

Bindings all_values(const Graph& graph, const Workload& workload) {
  return bindings_of(workload, graph);
}

}  // namespace headroom::detail
