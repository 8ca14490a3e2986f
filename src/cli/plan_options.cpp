#include "plan_options.h"

#include <utility>

#include "plan_option_values.h"

namespace headroom::cli {
namespace {

constexpr const char* kLoadGroup = "Workload";
constexpr const char* kPlanGroup = "Plan";
constexpr const char* kTrainingGroup = "Training";
constexpr const char* kServingGroup = "Serving";
constexpr const char* kMachineGroup = "Machine";

constexpr CountRange kDegrees{1, std::int64_t{1} << 40U};

/// Adds a count of at least 1 that stays empty unless it is given.
void add_degree(Command command, const char* names, std::optional<std::int64_t>& target,
                const char* description) {
  const auto set = [&target](std::int64_t value) { target = value; };
  add_count(command, names, kDegrees, set, description).group(kPlanGroup);
}

void add_efficiency(Command command, const std::string& names, std::optional<double>& target,
                    const char* description) {
  const auto set = [&target, names](const std::string& text) {
    target = parse_efficiency(names, text);
  };
  command.add_text(names, "FRACTION", set, description).group(kMachineGroup);
}

template <class Target>
void add_bytes(Command command, const std::string& names, Target& target, const char* description) {
  const auto set = [&target, names](const std::string& text) { target = parse_bytes(names, text); };
  command.add_text(names, "BYTES", set, description).group(kMachineGroup);
}

void add_bandwidth(Command command, const std::string& names, std::optional<double>& target,
                   const char* description) {
  const auto set = [&target, names](const std::string& text) {
    target = static_cast<double>(parse_bytes(names, text));
  };
  command.add_text(names, "BYTES/S", set, description).group(kMachineGroup);
}

void add_load(Command command, PlanOptions& options) {
  const Choices<Purpose> purposes{{"serve", Purpose::serve}, {"train", Purpose::train}};
  add_choice(command, "--phase", options.query.purpose, purposes, "Serve or train (serve)")
      .group(kLoadGroup);
  add_count(
      command, "--batch,-b", kDegrees, [&](std::int64_t n) { options.batch_size = n; },
      "Sequences at once over all replicas (serving: 1; training: one per replica)")
      .group(kLoadGroup);
  add_count(
      command, "--seq,-s", kDegrees, [&](std::int64_t n) { options.seq_len = n; },
      "Tokens per sequence; serving: the context that the KV-cache has room for (4096, or the "
      "model's positions if fewer)")
      .group(kLoadGroup);
  add_choice(command, "--dtype", options.query.dtype, dtype_choices(),
             "Type of activations and arithmetic (bfloat16)")
      .group(kLoadGroup);
  add_choice(command, "--attention", options.attention, attention_choices(),
             "Attention implementation (serving: fused; training: eager)")
      .group(kLoadGroup);
}

void add_degrees(Command command, PlanOptions& options) {
  FixedDegrees& fixed = options.fixed;
  add_degree(command, "--tp", fixed.tensor, "Tensor parallelism: shards heads and FFNs");
  const auto set_sequence = [&fixed](const std::string& word) {
    fixed.sequence = parse_sequence_parallel("--sp", word);
  };
  command
      .add_optional_text("--sp", "on|off", set_sequence,
                         "Sequence parallelism outside the tensor-parallel GEMMs (off; --sp alone "
                         "is on)")
      .group(kPlanGroup);
  add_degree(command, "--pp", fixed.pipeline, "Pipeline stages");
  add_degree(command, "--dp", fixed.data, "Data parallelism: replicas (the remaining devices)");
  add_degree(command, "--ep", fixed.expert, "Expert parallelism, within the replicas");
  add_degree(command, "--cp", fixed.context, "Context parallelism: shards each sequence");
  add_degree(command, "--interleave", fixed.interleave, "Model chunks per pipeline rank");
  add_degree(command, "--micro-batch", fixed.micro_batch, "Sequences per pass of a replica");
}

Choices<Optimizer> optimizer_choices() {
  Choices<Optimizer> choices;
  for (const OptimizerInfo& one : optimizers()) {
    choices.emplace_back(one.name, one.optimizer);
    if (one.optimizer == Optimizer::adam) choices.emplace_back("adamw", one.optimizer);
  }
  return choices;
}

Choices<Recipe> recipe_choices() {
  Choices<Recipe> choices;
  for (const RecipeInfo& one : recipes()) choices.emplace_back(one.name, one.recipe);
  return choices;
}

void add_adapter(Command command, Adapter& adapter) {
  constexpr CountRange kRanks{1, 65536};
  const Choices<AdapterKind> kinds{
      {"none", AdapterKind::none}, {"lora", AdapterKind::lora}, {"qlora", AdapterKind::qlora}};
  const Choices<AdapterTargets> targets{{"all", AdapterTargets::all},
                                        {"attention", AdapterTargets::attention}};
  add_choice(command, "--adapter", adapter.kind, kinds,
             "Parameter-efficient fine-tuning of frozen weights (none)")
      .group(kTrainingGroup);
  add_count(
      command, "--adapter-rank", kRanks, [&](std::int64_t n) { adapter.rank = n; },
      "Rank of the adapters (16)")
      .group(kTrainingGroup);
  add_choice(command, "--adapter-targets", adapter.targets, targets,
             "Layer matrices with an adapter (all)")
      .group(kTrainingGroup);
}

void add_training(Command command, PlanOptions& options) {
  const auto set_recompute = [&options](const std::string& word) {
    options.fixed.recompute = parse_recomputation("--recompute", word);
  };
  command
      .add_text("--recompute", "none|selective|full|every=K", set_recompute,
                "Activation recomputation: none, selective, full, or every K layers (none)")
      .group(kTrainingGroup);
  const Choices<Zero> stages{
      {"0", Zero::none}, {"1", Zero::optimizer}, {"2", Zero::gradients}, {"3", Zero::weights}};
  add_choice(command, "--zero", options.fixed.zero, stages, "ZeRO stage; 3 is FSDP (0)")
      .group(kTrainingGroup);
  add_choice(command, "--optimizer", options.query.states.optimizer, optimizer_choices(),
             "Optimizer (adam)")
      .group(kTrainingGroup);
  add_choice(command, "--recipe", options.query.states.recipe, recipe_choices(),
             "Precision of weights, gradients and optimizer states (megatron: 2 + 4 + 12 bytes per "
             "parameter with Adam)")
      .group(kTrainingGroup);
  add_adapter(command, options.query.adapter);
}

void add_serving(Command command, PlanOptions& options) {
  constexpr CountRange kPrefillTokens{1, std::int64_t{1} << 30U};
  const Choices<WeightFormat> formats{
      {"float32", WeightFormat::float32}, {"bfloat16", WeightFormat::bfloat16},
      {"bf16", WeightFormat::bfloat16},   {"float8", WeightFormat::float8},
      {"fp8", WeightFormat::float8},      {"int8", WeightFormat::int8},
      {"int4", WeightFormat::int4}};
  add_choice(command, "--weights", options.weights, formats,
             "Storage type of the layers' matrices (as --dtype)")
      .group(kServingGroup);
  add_choice(command, "--kv-dtype", options.kv_dtype, dtype_choices(),
             "Type of the KV-cache (as --dtype)")
      .group(kServingGroup);
  add_count(
      command, "--prefill-tokens", kPrefillTokens,
      [&](std::int64_t n) { options.query.prefill_tokens = n; },
      "Most prompt tokens of one pass (2048)")
      .group(kServingGroup);
}

void add_machine(Command command, PlanOptions& options) {
  constexpr CountRange kDevices{1, std::int64_t{1} << 24U};
  constexpr CountRange kDevicesPerNode{1, std::int64_t{1} << 20U};
  add_count(
      command, "--count,-n", kDevices, [&](std::int64_t n) { options.count = n; },
      "Number of devices (1)");
  add_bytes(command, "--memory", options.memory_bytes,
            "Memory of a device, such as 80GB or 79GiB (the machine's)");
  add_bytes(command, "--overhead", options.query.overhead_bytes,
            "Memory of the runtime on each device (1GiB, assumed)");
  add_count(
      command, "--devices-per-node", kDevicesPerNode,
      [&](std::int64_t n) { options.devices_per_node = n; },
      "Devices that share the fast network (the machine's, or 8)")
      .group(kMachineGroup);
  add_bandwidth(command, "--intra-node-bandwidth", options.intra_node_bytes_per_s,
                "Bytes per second that a device sends within its node, such as 300GB");
  add_bandwidth(command, "--inter-node-bandwidth", options.inter_node_bytes_per_s,
                "Bytes per second that a device sends to other nodes, such as 25GB");
  add_efficiency(command, "--matrix-efficiency", options.matrix_efficiency,
                 "Fraction of peak arithmetic that GEMMs achieve (0.74)");
  add_efficiency(command, "--memory-efficiency", options.memory_efficiency,
                 "Fraction of memory bandwidth that other operators achieve (0.8)");
  add_efficiency(command, "--network-efficiency", options.network_efficiency,
                 "Fraction of network bandwidth that is achieved (0.65)");
}

}  // namespace

void add_plan_options(Command command, PlanOptions& options) {
  add_model_argument(command, options.model);
  command
      .add_text("--machine", "MACHINE", options.machine,
                "The device: a name of `headroom machines`, here, or a file")
      .require();
  add_load(command, options);
  add_machine(command, options);
  add_degrees(command, options);
  add_training(command, options);
  add_serving(command, options);
  add_output_options(command, options.output);
}

}  // namespace headroom::cli
