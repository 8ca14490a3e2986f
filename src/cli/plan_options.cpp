#include "plan_options.h"

#include <utility>

#include "efficiency_options.h"
#include "plan_option_values.h"
#include "type_options.h"
#include "user_settings.h"

namespace headroom::cli {
namespace {

constexpr const char* kLoadGroup = "Workload";
constexpr const char* kPlanGroup = "Plan";
constexpr const char* kTrainingGroup = "Training";
constexpr const char* kServingGroup = "Serving";
constexpr const char* kMachineGroup = "Machine";

constexpr CountRange kDegrees{1, std::int64_t{1} << 40U};
constexpr CountRange kOffloadedLayers{0, std::int64_t{1} << 20U};

/// Adds a count of at least 1 that stays empty unless it is given.
Option add_degree(Command command, const char* names, std::optional<std::int64_t>& target,
                  const char* description) {
  const auto set = [&target](std::int64_t value) { target = value; };
  return add_count(command, names, kDegrees, set, description).group(kPlanGroup);
}

template <class Target>
void add_bytes(Command command, const std::string& names, Target& target,
               Integer (*parse)(const std::string&, const std::string&), const char* description) {
  const auto set = [&target, names, parse](const std::string& text) {
    target = parse(names, text);
  };
  command.add_text(names, "BYTES", set, description).group(kMachineGroup);
}

void add_bandwidth(Command command, const std::string& names, std::optional<double>& target,
                   const char* description) {
  const auto set = [&target, names](const std::string& text) {
    target = static_cast<double>(parse_positive_bytes(names, text));
  };
  command.add_text(names, "BYTES/S", set, description).group(kMachineGroup);
}

void add_purpose(Command command, PlanOptions& options) {
  const Choices<Purpose> purposes{{"serve", Purpose::serve}, {"train", Purpose::train}};
  options.phase =
      add_choice(command, "--phase", options.query.purpose, purposes, "Serve or train (serve)")
          .group(kLoadGroup);
}

/// Help of the options of a load.
struct LoadWords {
  const char* batch_size;
  const char* seq_len;
};

constexpr LoadWords kAnyLoad{
    "Batch size over all replicas (serving: 1; training: one per replica)",
    "Tokens per sequence; serving: context length to reserve (4096, or the model's positions if "
    "fewer)"};
constexpr LoadWords kTrainingRun{
    "Sequences of a step, over all replicas (as many as have 16 Mi tokens)",
    "Tokens per sequence (4096, or the model's positions if fewer)"};

void add_load(Command command, PlanOptions& options, const LoadWords& words) {
  add_count(
      command, "--batch,-b", kDegrees, [&](std::int64_t n) { options.batch_size = n; },
      words.batch_size)
      .group(kLoadGroup);
  add_count(
      command, "--seq,-s", kDegrees, [&](std::int64_t n) { options.seq_len = n; }, words.seq_len)
      .group(kLoadGroup);
  add_tower_options(command, options.query);
  add_choice(command, "--attention", options.attention, attention_choices(),
             "Attention implementation (fused)")
      .group(kLoadGroup);
}

void add_degrees(Command command, PlanOptions& options) {
  FixedDegrees& fixed = options.fixed;
  (void)add_degree(command, "--tp", fixed.tensor, "Tensor parallelism: shards heads and FFNs");
  (void)add_degree(command, "--pp", fixed.pipeline, "Pipeline stages");
  (void)add_degree(command, "--dp", fixed.data,
                   "Data parallelism: replicas (the remaining devices)");
  (void)add_degree(command, "--ep", fixed.expert, "Expert parallelism, within the replicas");
  const Choices<ExpertTensor> expert_tensors{{"tp", ExpertTensor::divided},
                                             {"1", ExpertTensor::whole}};
  add_choice(command, "--etp", fixed.expert_tensor, expert_tensors,
             "Tensor-parallel degree of routed experts: as --tp, or 1, which also spreads --ep "
             "over the tensor-parallel ranks (tp)")
      .group(kPlanGroup);
  const Choices<ExpertExchange> exchanges{{"direct", ExpertExchange::direct},
                                          {"by-node", ExpertExchange::by_node}};
  add_choice(
      command, "--expert-exchange", fixed.expert_exchange, exchanges,
      "Tokens travel to each of their experts, or once to each node that holds some (direct)")
      .group(kPlanGroup);
  const auto set_imbalance = [&options](const std::string& text) {
    options.query.expert_imbalance = parse_imbalance("--expert-imbalance", text);
  };
  command
      .add_text("--expert-imbalance", "FACTOR", set_imbalance,
                "Tokens of the fullest rank of experts over the mean, such as 1.2 (1)")
      .group(kPlanGroup);
}

void add_training_degrees(Command command, PlanOptions& options) {
  FixedDegrees& fixed = options.fixed;
  const auto set_sequence = [&fixed](const std::string& word) {
    fixed.sequence = parse_sequence_parallel("--sp", word);
  };
  command
      .add_optional_text("--sp", "on|off", set_sequence,
                         "Sequence parallelism outside the tensor-parallel GEMMs (off; --sp alone "
                         "is on)")
      .group(kPlanGroup);
  (void)add_degree(command, "--cp", fixed.context, "Context parallelism: shards each sequence");
  (void)add_degree(command, "--interleave", fixed.interleave, "Model chunks per pipeline rank");
  const Choices<PipelineSchedule> schedules{{"1f1b", PipelineSchedule::one_forward_one_backward},
                                            {"zero-bubble", PipelineSchedule::zero_bubble},
                                            {"dual-pipe", PipelineSchedule::dual_pipe}};
  options.training_only.push_back(add_choice(command, "--schedule", fixed.step.schedule, schedules,
                                             "Pipeline schedule of training (1f1b)")
                                      .group(kPlanGroup));
  options.training_only.push_back(add_degree(command, "--micro-batch", fixed.micro_batch,
                                             "Sequences per pass of a replica in training"));
}

Choices<Optimizer> optimizer_choices() {
  Choices<Optimizer> choices;
  for (const OptimizerInfo& one : optimizers()) {
    choices.emplace_back(one.name, one.optimizer);
    if (one.optimizer == Optimizer::adam) choices.emplace_back("adamw", one.optimizer);
  }
  return choices;
}

using AnyRecipe = std::variant<std::monostate, Recipe, InferenceRecipe>;

Choices<AnyRecipe> recipe_choices() {
  Choices<AnyRecipe> choices;
  for (const RecipeInfo& one : recipes()) choices.emplace_back(one.name, one.recipe);
  for (const InferenceRecipeInfo& one : inference_recipes()) {
    choices.emplace_back(one.name, one.recipe);
  }
  return choices;
}

void add_stored_type(Command command, PlanOptions& options) {
  options.serving_only.push_back(add_weights_option(command, options.weights));
}

void add_types(Command command, PlanOptions& options) {
  const auto set_recipe = [&options](InferenceRecipe recipe) { options.dtype_recipe = recipe; };
  (void)add_dtype_option(command, options.dtype, set_recipe,
                         "Type of activations and messages (auto: the config's torch_dtype if it "
                         "has 16 bits, else bfloat16)");
  (void)add_arithmetic_option(command, options.arithmetic);
  const auto set = [&options](const std::string& word) {
    options.recipe = value_of("--recipe", word, recipe_choices());
    count_as_given({"weights", "arithmetic"});
  };
  command
      .add_text("--recipe", listed(recipe_choices()), set,
                "Types by recipe name; in training also of gradients and optimizer states "
                "(megatron: 2 + 4 + 12 bytes per parameter with Adam)")
      .group("Types");
}

void add_adapter_sizes(Command command, PlanOptions& options, const char* group) {
  Adapter& adapter = options.query.adapter;
  constexpr CountRange kRanks{1, 65536};
  const Choices<AdapterTargets> targets{{"all", AdapterTargets::all},
                                        {"attention", AdapterTargets::attention},
                                        {"query-value", AdapterTargets::query_value}};
  options.adapter_only.push_back(add_count(
                                     command, "--adapter-rank", kRanks,
                                     [&](std::int64_t n) { adapter.rank = n; },
                                     "Rank of the adapters (16)")
                                     .group(group));
  options.adapter_only.push_back(add_choice(command, "--adapter-targets", adapter.targets, targets,
                                            "Layer matrices with an adapter (all)")
                                     .group(group));
}

void add_adapter(Command command, PlanOptions& options) {
  Adapter& adapter = options.query.adapter;
  const Choices<AdapterKind> kinds{
      {"none", AdapterKind::none}, {"lora", AdapterKind::lora}, {"qlora", AdapterKind::qlora}};
  options.training_only.push_back(
      add_choice(command, "--adapter", adapter.kind, kinds,
                 "Parameter-efficient fine-tuning of frozen weights (none)")
          .group(kTrainingGroup));
  add_adapter_sizes(command, options, kTrainingGroup);
}

/// Adapters of requests.
void add_served_adapters(Command command, PlanOptions& options) {
  constexpr CountRange kAdapters{1, 65536};
  Adapter& adapter = options.query.adapter;
  const auto set = [&adapter](std::int64_t n) { adapter.held = n; };
  options.served_adapters =
      add_count(command, "--adapters", kAdapters, set,
                "LoRA adapters in device memory, of which each request uses one, "
                "vLLM's max_loras (none)")
          .group(kServingGroup);
  options.serving_only.push_back(*options.served_adapters);
}

void add_training(Command command, PlanOptions& options) {
  const auto set_recompute = [&options](const std::string& word) {
    options.fixed.recompute = parse_recomputation("--recompute", word);
  };
  const auto training = [&options](Option option) {
    options.training_only.push_back(option.group(kTrainingGroup));
  };
  training(command.add_text(
      "--recompute", "none|selective|full|every=K|MODULES", set_recompute,
      "Activation recomputation: none, selective (core_attn), full, every K layers, or the modules "
      "that are named, with commas between them: core_attn, layernorm, mla_up_proj, mlp, moe, "
      "moe_act, shared_experts (none)"));
  const Choices<Zero> stages{
      {"0", Zero::none}, {"1", Zero::optimizer}, {"2", Zero::gradients}, {"3", Zero::weights}};
  training(add_choice(command, "--zero", options.fixed.zero, stages, "ZeRO stage; 3 is FSDP (0)"));
  training(add_count(
      command, "--zero-ranks", kDegrees, [&](std::int64_t n) { options.fixed.step.zero_ranks = n; },
      "Replicas per ZeRO sharding group; several groups are HSDP (all)"));
  const Choices<DataOverlap> overlaps{
      {"auto", DataOverlap::by_zero}, {"on", DataOverlap::on}, {"off", DataOverlap::off}};
  training(add_choice(command, "--dp-overlap", options.fixed.step.overlap, overlaps,
                      "Overlap data-parallel communication with the passes (auto: unless ZeRO 1)"));
  const auto set_tensor_overlap = [&options](const std::string& word) {
    options.fixed.step.tensor_overlap = parse_tensor_overlap("--tp-comm-overlap", word);
  };
  training(command.add_optional_text(
      "--tp-comm-overlap", "on|off", set_tensor_overlap,
      "Run sequence parallelism's collectives beside the GEMMs of the layers, a chunk per rank "
      "(off; --tp-comm-overlap alone is on)"));
  const Choices<Offload> offloads{{"none", Offload::none}, {"optimizer", Offload::optimizer}};
  training(add_choice(command, "--offload", options.fixed.step.offload, offloads,
                      "Training states to keep in host memory (none)"));
  training(add_count(
      command, "--cpu-offloading-num-layers", kOffloadedLayers,
      [&](std::int64_t n) { options.fixed.step.offload_layers = n; },
      "Layers, fewer than all, whose activations are offloaded to host memory (0)"));
  training(add_count(
      command, "--loss-chunks", kDegrees,
      [&](std::int64_t n) { options.fixed.step.loss_chunks = n; },
      "Chunks of the tokens whose logits are held one at a time, as Liger's fused linear "
      "cross-entropy does (1: all logits)"));
  training(add_choice(command, "--optimizer", options.query.states.optimizer, optimizer_choices(),
                      "Optimizer (adam)"));
  add_adapter(command, options);
}

void add_kv_cache(Command command, PlanOptions& options) {
  for (const Option& option : add_kv_cache_options(command, options.kv_cache, kServingGroup)) {
    options.serving_only.push_back(option);
  }
}

void add_batch_overlap(Command command, PlanOptions& options) {
  const auto set_overlap = [&options](const std::string& word) {
    options.fixed.batch_overlap = parse_batch_overlap("--two-batch-overlap", word);
  };
  Option option = command.add_optional_text(
      "--two-batch-overlap", "on|off", set_overlap,
      "Run each pass as two batches, one computing while the other's tokens travel to the experts "
      "(off; --two-batch-overlap alone is on)");
  options.serving_only.push_back(option.group(kServingGroup));
}

void add_key_division(Command command, PlanOptions& options) {
  const Choices<DecodeAttention> divisions{{"split", DecodeAttention::split},
                                           {"whole", DecodeAttention::whole}};
  Option option = add_choice(
      command, "--decode-attention", options.query.decode_attention, divisions,
      "Multiprocessors split the keys of a head between them, or one reads the whole head, as in "
      "TensorRT-LLM of 2024 (split)");
  options.serving_only.push_back(option.group(kServingGroup));
}

void add_serving(Command command, PlanOptions& options) {
  constexpr CountRange kPrefillTokens{1, std::int64_t{1} << 30U};
  const auto serving = [&options](Option option) {
    options.serving_only.push_back(option.group(kServingGroup));
  };
  serving(add_count(
      command, "--prefill-tokens", kPrefillTokens,
      [&](std::int64_t n) { options.query.prefill_tokens = n; },
      "Maximum prompt tokens per pass, for the memory of activations; TTFT is of one pass (2048)"));
  add_batch_overlap(command, options);
  add_key_division(command, options);
  add_served_adapters(command, options);
}

constexpr CountRange kDevices{1, std::int64_t{1} << 24U};

Option add_device_count(Command command, DeviceCount& count) {
  return add_count(
      command, "--count,-n", kDevices, [&count](std::int64_t n) { count.given = n; },
      "Number of devices (1)");
}

/// With "auto".
Option add_device_count_or_auto(Command command, DeviceCount& count) {
  const char* const names = "--count,-n";
  const auto set = [&count, names](const std::string& word) {
    count.fewest = word == "auto";
    if (!count.fewest) count.given = parse_count(names, word, kDevices);
  };
  return command.add_text(
      names, "N|auto", set,
      "Number of devices; auto: the fewest that fit, with the fastest plan (1)");
}

/// Returns the option of the number of devices.
Option add_machine(Command command, PlanOptions& options, MachineNeed need) {
  constexpr CountRange kDevicesPerNode{1, std::int64_t{1} << 20U};
  const Option count = need == MachineNeed::required
                           ? add_device_count(command, options.count)
                           : add_device_count_or_auto(command, options.count);
  add_bytes(command, "--memory", options.memory_bytes, parse_positive_bytes,
            "Memory of a device, such as 80GB or 79GiB (the machine's)");
  add_bytes(command, "--overhead", options.query.overhead_bytes, parse_bytes,
            "Runtime memory per device; replaces context, communication library and fragmentation "
            "(the machine's)");
  add_count(
      command, "--devices-per-node", kDevicesPerNode,
      [&](std::int64_t n) { options.devices_per_node = n; },
      "Devices that share the fast network (the machine's, or 8)")
      .group(kMachineGroup);
  add_bandwidth(command, "--intra-node-bandwidth", options.intra_node_bytes_per_s,
                "Send bandwidth per device within a node, such as 300GB");
  add_bandwidth(command, "--inter-node-bandwidth", options.inter_node_bytes_per_s,
                "Send bandwidth per device between nodes, such as 25GB");
  add_device_efficiencies(command, options.efficiency, kMachineGroup);
  add_network_efficiency(command, options.efficiency, kMachineGroup);
  return count;
}

}  // namespace

bool serves_adapters(const PlanOptions& options) {
  return options.served_adapters && options.served_adapters->is_given();
}

void refuse_ignored_options(const PlanOptions& options) {
  switch (options.query.purpose) {
    case Purpose::serve:
      refuse_given(options.training_only, "applies only to training",
                   "leave it out, or add --phase train");
      if (!serves_adapters(options)) {
        refuse_given(options.adapter_only, "applies only to adapters",
                     "leave it out, or add --adapters 4, or --phase train --adapter lora");
      }
      break;
    case Purpose::train:
      refuse_given(options.serving_only, "applies only to serving",
                   "leave it out, or use --phase serve");
      if (options.query.adapter.kind == AdapterKind::none) {
        refuse_given(options.adapter_only, "applies only to an adapter",
                     "leave it out, or add --adapter lora");
      }
      break;
  }
}

namespace {

void add_model_and_machine(Command command, PlanOptions& options, MachineNeed need) {
  add_model_argument(command, options.model);
  add_reading_options(command, options.reading);
  Option machine = command.add_text("--machine", "MACHINE", options.machine,
                                    "The device: a name of `headroom machines`, here, or a file");
  if (need == MachineNeed::required && !has_user_machine()) machine.require();
}

}  // namespace

Choices<Engine> engine_choices() {
  Choices<Engine> choices;
  for (const EngineInfo& one : engines()) choices.emplace_back(one.name, one.engine);
  return choices;
}

namespace {

void add_engine(Command command, PlanOptions& options) {
  add_choice(command, "--engine", options.engine, engine_choices(),
             "Show the command line with which an engine runs the plan; llama.cpp also sets its "
             "own rates");
}

}  // namespace

void add_plan_options(Command command, PlanOptions& options, MachineNeed need) {
  add_model_and_machine(command, options, need);
  add_purpose(command, options);
  add_load(command, options, kAnyLoad);
  add_stored_type(command, options);
  add_types(command, options);
  (void)add_machine(command, options, need);
  add_degrees(command, options);
  add_training_degrees(command, options);
  add_training(command, options);
  add_kv_cache(command, options);
  add_serving(command, options);
  add_engine(command, options);
  // A trace shows one plan.
  add_output_options(command, options.output, "--output,-o",
                     need == MachineNeed::optional ? TraceFormat::offered : TraceFormat::none);
}

void add_training_plan_options(Command command, PlanOptions& options) {
  options.query.purpose = Purpose::train;
  add_model_and_machine(command, options, MachineNeed::required);
  add_load(command, options, kTrainingRun);
  add_types(command, options);
  (void)add_machine(command, options, MachineNeed::required);
  add_degrees(command, options);
  add_training_degrees(command, options);
  add_training(command, options);
  add_output_options(command, options.output);
}

Option add_serving_plan_options(Command command, PlanOptions& options) {
  add_model_and_machine(command, options, MachineNeed::optional);
  add_stored_type(command, options);
  add_types(command, options);
  const Option count = add_machine(command, options, MachineNeed::required);
  add_degrees(command, options);
  add_kv_cache(command, options);
  add_batch_overlap(command, options);
  add_key_division(command, options);
  add_served_adapters(command, options);
  add_adapter_sizes(command, options, kServingGroup);
  add_engine(command, options);
  return count;
}

}  // namespace headroom::cli
