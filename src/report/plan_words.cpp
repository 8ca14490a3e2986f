#include "plan_words.h"

#include <fmt/format.h>

#include "describe.h"
#include "kv_cache_report.h"
#include "schema_version.h"
#include "storage_report.h"
#include "with_noun.h"

namespace headroom::detail {
namespace {

Json length_or_null(const std::optional<std::int64_t>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json memory_json(const PlanMemory& memory, const DeviceRates& rates) {
  Json json;
  for (const MemoryCategory& category : categories_of(memory)) {
    json[category.key] = json_integer(category.bytes);
  }
  json["allocated_bytes"] = json_integer(memory.allocated());
  json["total_bytes"] = json_integer(memory.total());
  json["capacity_bytes"] = json_integer(rates.memory_bytes);
  json["free_bytes"] = json_integer(rates.memory_bytes - memory.total());
  json["stage"] = name_of(memory.stage);
  return json;
}

Json time_json(const PlanTime& time) {
  Json json;
  json["iteration_s"] = time.iteration_s;
  json["low_s"] = time.low_s;
  json["high_s"] = time.high_s;
  json["compute_s"] = time.compute_s;
  json["communication_s"] = time.communication_s;
  if (time.host_copies_s > 0) json["host_copies_s"] = time.host_copies_s;
  json["bubble_s"] = time.bubble_s;
  json["optimizer_s"] = time.optimizer_s;
  json["tokens_per_s"] = time.tokens_per_s;
  json["mfu"] = json_or_null(time.mfu);
  json["ttft_s"] = json_or_null(time.ttft_s);
  return json;
}

std::string stored_types(const PlanQuery& query) {
  const KvType otherwise = kv_type(query.kv_dtype);
  return name_of_types(query.kv_cache.key_type.value_or(otherwise),
                       query.kv_cache.value_type.value_or(otherwise));
}

Json training_json(const PlanQuery& query) {
  if (query.purpose != Purpose::train) return nullptr;
  Json json;
  json["recipe"] = info(query.states.recipe).name;
  json["optimizer"] = info(query.states.optimizer).name;
  const Adapter& adapter = query.adapter;
  const bool none = adapter.kind == AdapterKind::none;
  json["adapter"] =
      none ? Json(nullptr) : Json(adapter.kind == AdapterKind::lora ? "lora" : "qlora");
  json["adapter_rank"] = none ? Json(nullptr) : Json(adapter.rank);
  return json;
}

Json serving_json(const PlanQuery& query) {
  if (query.purpose != Purpose::serve) return nullptr;
  Json json{{"kv_cache", request_json(query.kv_cache)}, {"prefill_tokens", query.prefill_tokens}};
  const Adapter& adapter = query.adapter;
  if (adapter.kind != AdapterKind::none) {
    json["adapters"] = {
        {"count", adapter.held}, {"rank", adapter.rank}, {"targets", name_of(adapter.targets)}};
  }
  return json;
}

/// The types of weights and KV-cache are null in training, where the recipe states them.
Json workload_json(const PlanQuestion& question) {
  const PlanQuery& query = question.query;
  const bool serves = query.purpose == Purpose::serve;
  Json json;
  json["phase"] = name_of(query.purpose);
  json["batch_size"] = question.load.batch_size;
  json["seq_len"] = question.load.seq_len;
  const auto enc_seq_len = encoder_tokens(question.model.spec, question.load.seq_len);
  if (enc_seq_len) json["enc_seq_len"] = *enc_seq_len;
  if (question.images.count > 0) json["images"] = to_json(question.images, 1);
  if (question.audio.count > 0) json["audio"] = to_json(question.audio, 1);
  json["weights"] = serves ? Json(name_of(query.weights)) : Json(nullptr);
  json["dtype"] = name_of(query.dtype);
  json["arithmetic"] = name_of(query.arithmetic.value_or(query.dtype));
  json["kv_dtype"] = serves ? Json(stored_types(query)) : Json(nullptr);
  json["communication"] = describe_communication(query);
  json["attention"] = name_of(query.attention);
  json["new_tokens"] = nullptr;
  if (query.expert_imbalance > 1) json["expert_imbalance"] = query.expert_imbalance;
  if (query.decode_attention == DecodeAttention::whole) json["decode_attention"] = "whole";
  return json;
}

Json machine_json(const PlanQuestion& question) {
  const DeviceRates& rates = question.rates;
  const auto speed = [&](double value) { return rates.have_speed() ? Json(value) : Json(nullptr); };
  Json json;
  json["name"] = rates.name;
  json["count"] = question.devices;
  json["memory_bytes"] = json_integer(rates.memory_bytes);
  json["driver_bytes"] = json_integer(rates.driver_bytes);
  json["flops_per_s"] = speed(rates.flops_per_s);
  json["memory_bytes_per_s"] = speed(rates.memory_bytes_per_s);
  json["devices_per_node"] = rates.link.devices_per_node;
  json["intra_node_bytes_per_s"] = rates.link.intra_node_bytes_per_s;
  json["inter_node_bytes_per_s"] = *rates.link.inter_node_bytes_per_s;
  json["interconnect_source"] = rates.link.source;
  const std::optional<Integer>& overhead = question.query.overhead_bytes;
  json["assumed"] = {{"matrix_efficiency", speed(rates.efficiency.matrix)},
                     {"memory_efficiency", speed(rates.efficiency.memory)},
                     {"network_efficiency", speed(rates.efficiency.network)},
                     {"port_efficiency", speed(rates.port_fraction)},
                     {"exchange_latency_s", rates.collective_latency_s},
                     {"efficiency_origin", name_of(rates.efficiency_origin)},
                     {"efficiency_source", rates.efficiency_source},
                     {"kernel_s", speed(rates.kernel_s)},
                     {"layer_gemm_kernel_s", speed(rates.layer_gemm_kernel_s)},
                     {"time_range", rates.time_range.compute},
                     {"memory_time_range", rates.time_range.memory},
                     {"overhead_bytes", overhead ? json_integer(*overhead) : Json(nullptr)},
                     {"intra_node", rates.link_is_assumed},
                     {"inter_node", rates.network_is_assumed}};
  return json;
}

}  // namespace

std::string describe_attention(const PlanQuery& query) {
  const char* const whole =
      query.decode_attention == DecodeAttention::whole ? ", whole heads in decode steps" : "";
  return fmt::format("{} attention{}", name_of(query.attention), whole);
}

std::string describe(const PlanQuestion& question) {
  const PlanQuery& query = question.query;
  std::vector<std::string> words{std::string(name_of(query.purpose)),
                                 fmt::format("batch {}", question.load.batch_size),
                                 fmt::format("seq {}", question.load.seq_len)};
  const auto enc_seq_len = encoder_tokens(question.model.spec, question.load.seq_len);
  if (enc_seq_len) words.push_back(fmt::format("enc-seq {}", *enc_seq_len));
  if (question.images.count > 0) words.push_back(detail::describe(question.images, 1));
  if (question.audio.count > 0) words.push_back(detail::describe(question.audio, 1));
  if (!question.rates.name.empty()) {
    words.push_back(fmt::format("{} × {}", question.devices, question.rates.name));
  }
  switch (query.purpose) {
    case Purpose::serve:
      words.push_back(
          fmt::format("KV-cache {}", describe_request(query.kv_cache, stored_types(query))));
      break;
    case Purpose::train:
      words.push_back(fmt::format("{} recipe", info(query.states.recipe).name));
      words.push_back(std::string(info(query.states.optimizer).name));
      break;
  }
  words.push_back(describe_attention(query));
  if (query.expert_imbalance > 1) {
    words.push_back(fmt::format("expert imbalance {}", query.expert_imbalance));
  }
  if (query.adapter.kind != AdapterKind::none) words.push_back(describe_adapter(query));
  return fmt::format("{}", fmt::join(words, " · "));
}

std::string describe_adapter(const PlanQuery& query) {
  const Adapter& adapter = query.adapter;
  switch (adapter.kind) {
    case AdapterKind::none:
      break;
    case AdapterKind::lora:
      if (query.purpose == Purpose::serve) {
        return fmt::format("{} of rank {}", with_noun(adapter.held, "LoRA adapter"), adapter.rank);
      }
      return fmt::format("LoRA rank {}", adapter.rank);
    case AdapterKind::qlora:
      return fmt::format("QLoRA rank {}", adapter.rank);
  }
  return "no adapter";
}

std::string describe(const PlanChoice& choice, Purpose purpose) {
  std::string text = headroom::describe(choice.parallel);
  if (purpose == Purpose::serve) return text;
  text += fmt::format(" · micro-batch {} · recompute {}", choice.micro_batch,
                      name_of(choice.recompute));
  if (choice.zero != Zero::none) text += fmt::format(" · ZeRO {}", static_cast<int>(choice.zero));
  if (choice.step.zero_ranks != 0)
    text += fmt::format(" over {}", with_noun(choice.step.zero_ranks, "rank"));
  if (choice.step.schedule != PipelineSchedule::one_forward_one_backward) {
    text += fmt::format(" · {}", name_of(choice.step.schedule));
  }
  if (choice.step.tensor_overlap == TensorOverlap::on) text += " · tp-comm-overlap";
  if (choice.step.loss_chunks > 1)
    text += fmt::format(" · loss in {} chunks", choice.step.loss_chunks);
  if (choice.step.offload == Offload::optimizer) text += " · optimizer on the host";
  if (choice.step.offload_layers > 0) {
    text += fmt::format(" · activations of {} on the host",
                        with_noun(choice.step.offload_layers, "layer"));
  }
  return text;
}

std::vector<MemoryCategory> categories_of(const PlanMemory& memory) {
  return {{"weight_bytes", "weights", memory.weights},
          {"gradient_bytes", "gradients", memory.gradients},
          {"optimizer_bytes", "optimizer and master weights", memory.optimizer},
          {"embedding_state_bytes", "embedding and head of this stage", memory.embedding_states},
          {"activation_bytes", "activations", memory.activations},
          {"embedding_and_loss_bytes", "activations of embedding, logits, loss",
           memory.embedding_and_loss},
          {"kv_cache_bytes", "KV-cache", memory.kv_cache},
          {"backward_bytes", "backward temporaries", memory.buffers.backward},
          {"weight_gradient_bytes", "weight-gradient buffers", memory.buffers.weight_gradients},
          {"gathered_sequence_bytes", "gathered sequence", memory.buffers.gathered_sequence},
          {"gathered_weight_bytes", "gathered weights", memory.buffers.gathered_weights},
          {"driver_bytes", "driver", memory.runtime.driver},
          {"context_bytes", "context", memory.runtime.context},
          {"communication_bytes", "communication library", memory.runtime.communication},
          {"fragmentation_bytes", "fragmentation", memory.runtime.fragmentation},
          {"overhead_bytes", "runtime (given)", memory.runtime.given}};
}

const char* step_name(Purpose purpose, const PlanTime& time) {
  if (purpose == Purpose::train) return "step";
  return time.ttft_s ? "decode step" : "pass";
}

std::string limit_text(const std::optional<std::int64_t>& limit) {
  return limit ? with_separators(*limit) : "no limit";
}

Document document_of(const PlanQuestion& question) {
  const ModelSpec& spec = question.model.spec;
  Document document;
  document.blocks.push_back(Line{spec.name, describe(spec), LineRole::subject});
  document.blocks.push_back(Line{"workload", describe(question)});
  document.blocks.push_back(Line{"types", describe_types(question.query)});
  return document;
}

namespace {

/// " (64 % in float8)": the layers' GEMMs, where they reach another fraction of their peak.
std::string layer_gemms_text(const PlanQuestion& question) {
  const DeviceRates& rates = question.rates;
  const auto percent = [](double fraction) { return fmt::format("{:.0f} %", 100 * fraction); };
  const double others = rates.efficiency.matrix;
  const double layers = rates.layer_gemm_matrix.value_or(others);
  if (percent(layers) == percent(others) || !question.query.arithmetic) return {};
  return fmt::format(" ({} in {})", percent(layers), name_of(*question.query.arithmetic));
}

std::string question_times_text(const PlanQuestion& question) {
  const DeviceRates& rates = question.rates;
  const bool trains = question.query.purpose == Purpose::train;
  return fixed_times_text({rates.kernel_s, rates.layer_gemm_kernel_s, question.query.arithmetic},
                          trains ? "kernel" : "operator with weights");
}

}  // namespace

void add_device(const PlanQuestion& question, Document& document) {
  const DeviceRates& rates = question.rates;
  if (!rates.have_speed()) {
    document.blocks.push_back(Line{"rates", "unknown: this machine is not calibrated"});
    return;
  }
  document.blocks.push_back(
      Line{"rates",
           fmt::format("{:.0f} % of peak arithmetic{}, {:.0f} % of memory and {:.0f} % of network "
                       "bandwidth{} ({}: {})",
                       100 * rates.efficiency.matrix, layer_gemms_text(question),
                       100 * rates.efficiency.memory, 100 * rates.efficiency.network,
                       question_times_text(question), name_of(rates.efficiency_origin),
                       rates.efficiency_source)});
  if (question.devices == 1) return;
  const auto mark = [](bool assumed) { return assumed ? " (assumed)" : ""; };
  document.blocks.push_back(
      Line{"network",
           fmt::format("{} per node, {:.0f} GB/s within a node{}, {:.1f} GB/s between nodes{}, of "
                       "which collectives reach {:.0f} %",
                       with_noun(rates.link.devices_per_node, "device"),
                       rates.link.intra_node_bytes_per_s / 1e9, mark(rates.link_is_assumed),
                       *rates.link.inter_node_bytes_per_s / 1e9, mark(rates.network_is_assumed),
                       100 * rates.port_fraction)});
}

namespace {

bool offloads(const PlanChoice& choice) {
  return choice.step.offload == Offload::optimizer || choice.step.offload_layers > 0;
}

}  // namespace

void add_engine(const std::string& command, std::optional<Engine> engine, Document& document) {
  if (command.empty() || !engine) return;
  document.add_line("command", command);
  document.add_line("options", fmt::format("of {}, {}", release_of(*engine), info(*engine).source));
}

void add_engine(const std::string& command, std::optional<Engine> engine, Json& json) {
  const bool has_command = !command.empty() && engine;
  json["engine_command"] = has_command ? Json(command) : Json(nullptr);
  json["engine"] = nullptr;
  if (!has_command) return;
  const EngineInfo& about = info(*engine);
  json["engine"] = {{"name", about.name},
                    {"version", about.version},
                    {"date", about.date},
                    {"source", about.source}};
}

void add_host_link(const PlanQuestion& question, const PlanChoice& choice, Document& document) {
  if (!offloads(choice)) return;
  const DeviceRates& rates = question.rates;
  document.add_line("host link",
                    fmt::format("{:.1f} GB/s in one direction{}", rates.host_bytes_per_s / 1e9,
                                rates.host_link_is_assumed ? " (assumed)" : ""));
}

void add_host_link(const PlanQuestion& question, const PlanChoice& choice, Json& json) {
  if (!offloads(choice)) return;
  json["machine"]["host_bytes_per_s"] = question.rates.host_bytes_per_s;
  json["machine"]["assumed"]["host_link"] = question.rates.host_link_is_assumed;
}

Json question_json(const PlanQuestion& question, std::string_view schema) {
  Json json;
  json["schema_version"] = kSchemaVersion;
  json["schema"] = schema;
  json["model"] = to_json(question.model);
  json["workload"] = workload_json(question);
  json["training"] = training_json(question.query);
  json["serving"] = serving_json(question.query);
  json["machine"] = machine_json(question);
  return json;
}

Json plan_json(const PlanChoice& choice) {
  const ParallelPlan& plan = choice.parallel;
  Json json;
  json["tp"] = plan.tensor;
  json["sp"] = plan.sequence == SequenceParallel::on;
  json["pp"] = plan.pipeline;
  json["dp"] = plan.data;
  json["ep"] = plan.expert;
  json["cp"] = plan.context;
  json["interleave"] = plan.interleave;
  json["micro_batch"] = choice.micro_batch;
  json["recompute"] = name_of(choice.recompute);
  json["zero"] = static_cast<int>(choice.zero);
  json["zero_ranks"] = choice.step.zero_ranks == 0 ? Json(nullptr) : Json(choice.step.zero_ranks);
  json["schedule"] = name_of(choice.step.schedule);
  json["etp"] = plan.expert_tensor == ExpertTensor::whole ? 1 : plan.tensor;
  json["expert_exchange"] = plan.expert_exchange == ExpertExchange::by_node ? "by_node" : "direct";
  json["two_batch_overlap"] = plan.batch_overlap == BatchOverlap::two_batches;
  json["offload"] = choice.step.offload == Offload::optimizer ? "optimizer" : "none";
  json["tp_comm_overlap"] = choice.step.tensor_overlap == TensorOverlap::on;
  json["cpu_offloading_num_layers"] = choice.step.offload_layers;
  json["loss_chunks"] = choice.step.loss_chunks;
  return json;
}

Json result_json(const PlanResult& result, const PlanQuestion& question) {
  Json json;
  json["plan"] = plan_json(result.choice);
  json["fits"] = result.fits;
  json["memory"] = memory_json(result.figures.memory, question.rates);
  const bool has_time = result.fits && question.rates.have_speed();
  json["time"] = has_time ? time_json(result.figures.time) : Json(nullptr);
  json["largest_batch"] = length_or_null(result.largest_batch);
  json["largest_context"] = length_or_null(result.largest_context);
  return json;
}

}  // namespace headroom::detail
