#include "plan_options.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <utility>

#include "headroom/error.h"
#include "own_machine.h"

namespace headroom::cli {
namespace {

constexpr const char* kModelGroup = "Workload";
constexpr const char* kPlanGroup = "Plan";
constexpr const char* kTrainingGroup = "Training";
constexpr const char* kServingGroup = "Serving";
constexpr const char* kMachineGroup = "Machine";

/// Contexts that are asked for when none is named.
constexpr std::int64_t kDefaultContext = 4096;

Choices<DType> plan_dtypes() {
  return {{"float32", DType::float32}, {"fp32", DType::float32},      {"float16", DType::float16},
          {"fp16", DType::float16},    {"bfloat16", DType::bfloat16}, {"bf16", DType::bfloat16},
          {"float8", DType::float8},   {"fp8", DType::float8},        {"int8", DType::int8}};
}

void add_degree(CLI::App& app, const char* name, std::optional<std::int64_t>& target,
                const char* description) {
  add_count(
      app, name, [&target](std::int64_t value) { target = value; }, description)
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 40U))
      ->group(kPlanGroup);
}

void add_share(CLI::App& app, const char* name, std::optional<double>& target,
               const char* description) {
  app.add_option_function<double>(
         name, [&target](double value) { target = value; }, description)
      ->check(CLI::Range(0.001, 1.0))
      ->type_name("SHARE")
      ->group(kMachineGroup);
}

void add_rate(CLI::App& app, const char* name, std::optional<double>& target,
              const char* description) {
  const auto parse = [&target, name](const std::string& text) {
    target = static_cast<double>(parse_bytes(name, text));
  };
  app.add_option_function<std::string>(name, parse, description)
      ->type_name("BYTES")
      ->group(kMachineGroup);
}

Recomputation parse_recompute(const std::string& word) {
  if (word == "none") return {Recompute::none, 1};
  if (word == "selective") return {Recompute::selective, 1};
  if (word == "full") return {Recompute::full, 1};
  constexpr std::string_view kEvery = "every=";
  if (word.starts_with(kEvery)) {
    const std::string number = word.substr(kEvery.size());
    char* end = nullptr;
    const long long every = std::strtoll(number.c_str(), &end, 10);
    if (!number.empty() && *end == '\0' && every >= 1) return {Recompute::full, every};
  }
  throw CLI::ValidationError("--recompute",
                             "takes none, selective, full or every=K, not \"" + word + "\"");
}

SequenceParallel parse_sequence(const std::string& word) {
  if (word == "off" || word == "0" || word == "false") return SequenceParallel::off;
  if (word.empty() || word == "on" || word == "1" || word == "true") return SequenceParallel::on;
  throw CLI::ValidationError("--sp", "takes on or off, not \"" + word + "\"");
}

void add_degrees(CLI::App& app, PlanOptions& options) {
  FixedDegrees& fixed = options.fixed;
  add_degree(app, "--tp", fixed.tensor, "Tensor parallelism: ranks that divide heads and widths");
  app.add_option_function<std::string>(
         "--sp", [&fixed](const std::string& word) { fixed.sequence = parse_sequence(word); },
         "Sequence parallelism between tensor-parallel products (off; alone it means on)")
      ->expected(0, 1)
      ->type_name("on|off")
      ->group(kPlanGroup);
  add_degree(app, "--pp", fixed.pipeline, "Pipeline stages");
  add_degree(app, "--dp", fixed.data, "Data parallelism: replicas (what --count leaves)");
  add_degree(app, "--ep", fixed.expert, "Expert parallelism, inside the replicas");
  add_degree(app, "--cp", fixed.context, "Context parallelism: ranks that share a sequence");
  add_degree(app, "--interleave", fixed.interleave, "Model chunks of a pipeline rank");
  add_degree(app, "--micro-batch", fixed.micro_batch, "Sequences of one pass of a replica");
}

void add_training(CLI::App& app, PlanOptions& options) {
  app.add_option_function<std::string>(
         "--recompute",
         [&options](const std::string& word) { options.fixed.recompute = parse_recompute(word); },
         "What is computed again: none, selective, full, every=K layers (none)")
      ->type_name("none|selective|full|every=K")
      ->group(kTrainingGroup);
  add_choice<Zero>(
      app, "--zero", options.fixed.zero,
      {{"0", Zero::none}, {"1", Zero::optimizer}, {"2", Zero::gradients}, {"3", Zero::weights}},
      "ZeRO stage; 3 is FSDP (0)")
      ->group(kTrainingGroup);
  Choices<Optimizer> by_name;
  for (const OptimizerInfo& one : optimizers()) {
    by_name.emplace_back(one.name, one.optimizer);
    if (one.optimizer == Optimizer::adam) by_name.emplace_back("adamw", one.optimizer);
  }
  add_choice<Optimizer>(app, "--optimizer", options.query.states.optimizer, by_name,
                        "Whose states are kept (adam)")
      ->group(kTrainingGroup);
  Choices<Recipe> recipe_choices;
  for (const RecipeInfo& one : recipes()) recipe_choices.emplace_back(one.name, one.recipe);
  add_choice<Recipe>(app, "--recipe", options.query.states.recipe, recipe_choices,
                     "Numbers that weights, gradients and states are kept in (megatron: 2 + 4 + "
                     "12 bytes with Adam)")
      ->group(kTrainingGroup);
  add_choice<AdapterKind>(
      app, "--adapter", options.query.adapter.kind,
      {{"none", AdapterKind::none}, {"lora", AdapterKind::lora}, {"qlora", AdapterKind::qlora}},
      "Train thin matrices beside frozen weights (none)")
      ->group(kTrainingGroup);
  add_count(
      app, "--adapter-rank", [&options](std::int64_t n) { options.query.adapter.rank = n; },
      "Their rank (16)")
      ->check(CLI::Range(1, 65536))
      ->group(kTrainingGroup);
  add_choice<AdapterTargets>(
      app, "--adapter-targets", options.query.adapter.targets,
      {{"all", AdapterTargets::all}, {"attention", AdapterTargets::attention}},
      "Which of a layer's matrices have one (all)")
      ->group(kTrainingGroup);
}

void add_serving(CLI::App& app, PlanOptions& options) {
  add_choice<WeightFormat>(app, "--weights", options.weights,
                           {{"float32", WeightFormat::float32},
                            {"bfloat16", WeightFormat::bfloat16},
                            {"bf16", WeightFormat::bfloat16},
                            {"float8", WeightFormat::float8},
                            {"fp8", WeightFormat::float8},
                            {"int8", WeightFormat::int8},
                            {"int4", WeightFormat::int4}},
                           "How the layers' matrices are stored (as --dtype)")
      ->group(kServingGroup);
  add_choice<DType>(app, "--kv-dtype", options.kv_dtype, plan_dtypes(),
                    "Type of the KV-cache (as --dtype)")
      ->group(kServingGroup);
  add_count(
      app, "--prefill-tokens", [&options](std::int64_t n) { options.query.prefill_tokens = n; },
      "Tokens of a prompt that one pass reads at most (2048)")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 30U))
      ->group(kServingGroup);
}

void add_machine(CLI::App& app, PlanOptions& options) {
  app.add_option("--machine", options.machine,
                 "The device: a name of `headroom machines`, here, or a file")
      ->type_name("MACHINE")
      ->required();
  add_count(
      app, "--count,-n", [&options](std::int64_t n) { options.count = n; }, "How many of them (1)")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 24U));
  app.add_option_function<std::string>(
         "--memory",
         [&options](const std::string& text) {
           options.memory_bytes = parse_bytes("--memory", text);
         },
         "Memory of a device, such as 80GB or 79GiB (the machine's)")
      ->type_name("BYTES")
      ->group(kMachineGroup);
  app.add_option_function<std::string>(
         "--overhead",
         [&options](const std::string& text) {
           options.query.overhead_bytes = parse_bytes("--overhead", text);
         },
         "What the runtime takes on a device (1GiB, assumed)")
      ->type_name("BYTES")
      ->group(kMachineGroup);
  add_count(
      app, "--devices-per-node", [&options](std::int64_t n) { options.devices_per_node = n; },
      "Devices that share the fast network (the machine's, or 8)")
      ->check(CLI::Range(1, 1 << 20))
      ->group(kMachineGroup);
  add_rate(app, "--intra-node-bandwidth", options.intra_node_bytes_per_s,
           "Bytes a second that a device sends inside its node, such as 300GB");
  add_rate(app, "--inter-node-bandwidth", options.inter_node_bytes_per_s,
           "The same to other nodes, such as 25GB");
  add_share(app, "--matrix-efficiency", options.matrix_efficiency,
            "Share of the arithmetic that products reach (0.74)");
  add_share(app, "--memory-efficiency", options.memory_efficiency,
            "Share of the memory bandwidth that all else reaches (0.8)");
  add_share(app, "--network-efficiency", options.network_efficiency,
            "Share of the network's bandwidth that is reached (0.65)");
}

/// Memory of this machine, which its profile does not hold.
Integer own_memory() {
  const long pages = sysconf(_SC_PHYS_PAGES);
  const long size = sysconf(_SC_PAGE_SIZE);
  return pages > 0 && size > 0 ? checked_multiply(pages, size) : 0;
}

DeviceRates rates_of(const PlanOptions& options) {
  DeviceRates rates =
      device_rates(machine_named(options.machine, default_backend()), options.query.dtype);
  if (options.machine == "here") rates.memory_bytes = own_memory();
  rates.memory_bytes = options.memory_bytes.value_or(rates.memory_bytes);
  if (rates.memory_bytes == 0) {
    throw Error(ErrorCode::invalid_input, "the memory of this machine is not known",
                options.machine, "add --memory, such as --memory 64GiB");
  }
  const auto replace = [](auto& target, const auto& value) {
    if (value) target = *value;
  };
  replace(rates.link.devices_per_node, options.devices_per_node);
  replace(rates.link.intra_node_bytes_per_s, options.intra_node_bytes_per_s);
  replace(rates.link.inter_node_bytes_per_s, options.inter_node_bytes_per_s);
  if (options.intra_node_bytes_per_s) rates.link_is_assumed = false;
  if (options.inter_node_bytes_per_s) rates.network_is_assumed = false;
  replace(rates.efficiency.matrix, options.matrix_efficiency);
  replace(rates.efficiency.memory, options.memory_efficiency);
  replace(rates.efficiency.network, options.network_efficiency);
  return rates;
}

std::int64_t default_context(const ModelSpec& spec) {
  if (const auto& image = spec.embedding.image) return image->num_patches() + 1;
  const PositionSpec& position = spec.position;
  if (position.max_position_embeddings == 0) return kDefaultContext;
  return std::clamp<std::int64_t>(position.max_position_embeddings - position.offset, 1,
                                  kDefaultContext);
}

/// A sequence for every replica and, in a pipeline, a micro-batch for every stage.
std::int64_t default_batch(const PlanOptions& options) {
  if (options.query.purpose == Purpose::serve) return options.fixed.data.value_or(1);
  const FixedDegrees& fixed = options.fixed;
  const std::int64_t share = fixed.tensor.value_or(1) * fixed.context.value_or(1);
  return std::max<std::int64_t>(1, options.count / share) * fixed.micro_batch.value_or(1);
}

WeightFormat format_of(DType dtype) {
  switch (dtype) {
    case DType::float32:
      return WeightFormat::float32;
    case DType::float16:
    case DType::bfloat16:
      return WeightFormat::bfloat16;
    case DType::float8:
      return WeightFormat::float8;
    case DType::int8:
      break;
  }
  return WeightFormat::int8;
}

}  // namespace

Integer parse_bytes(const std::string& option, const std::string& text) {
  static const Choices<double> units{{"", 1},
                                     {"B", 1},
                                     {"kB", 1e3},
                                     {"MB", 1e6},
                                     {"GB", 1e9},
                                     {"TB", 1e12},
                                     {"KiB", 1024.0},
                                     {"MiB", 1048576.0},
                                     {"GiB", 1073741824.0},
                                     {"TiB", 1099511627776.0}};
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  const std::string unit(end);
  const auto known = std::ranges::find(units, unit, &std::pair<std::string, double>::first);
  const bool sound = end != text.c_str() && known != units.end() && std::isfinite(number) &&
                     number >= 0 && number * known->second < 1e18;
  if (!sound)
    throw CLI::ValidationError(option, "takes bytes such as 80GB or 79.1GiB, not \"" + text + "\"");
  return static_cast<Integer>(std::llround(number * known->second));
}

void add_plan_options(CLI::App& app, PlanOptions& options) {
  app.add_option("model", options.model, "A preset, a config.json, or a folder with one")
      ->type_name("MODEL")
      ->required();
  add_machine(app, options);
  add_choice<Purpose>(app, "--phase", options.query.purpose,
                      {{"serve", Purpose::serve}, {"train", Purpose::train}},
                      "What the model is for (serve)")
      ->group(kModelGroup);
  const auto positive = CLI::Range(std::int64_t{1}, std::int64_t{1} << 40U);
  add_count(
      app, "--batch,-b", [&options](std::int64_t n) { options.batch_size = n; },
      "Sequences at once, of all replicas (serving: 1; training: one for each)")
      ->check(positive)
      ->group(kModelGroup);
  add_count(
      app, "--seq,-s", [&options](std::int64_t n) { options.seq_len = n; },
      "Tokens of a sequence; serving: the context that the KV-cache has room for (4096, or less "
      "where the model has fewer positions)")
      ->check(positive)
      ->group(kModelGroup);
  add_choice<DType>(app, "--dtype", options.query.dtype, plan_dtypes(),
                    "Type of activations and arithmetic (bfloat16)")
      ->group(kModelGroup);
  add_choice<AttentionImplementation>(
      app, "--attention", options.attention,
      {{"eager", AttentionImplementation::eager}, {"fused", AttentionImplementation::fused}},
      "How attention is computed (serving: fused; training: eager)")
      ->group(kModelGroup);
  add_degrees(app, options);
  add_training(app, options);
  add_serving(app, options);
  add_output_options(app, options.output);
}

PlanQuestion question_of(const PlanOptions& options) {
  PlanQuestion question;
  question.model = load_model(options.model);
  question.query = options.query;
  const bool trains = options.query.purpose == Purpose::train;
  question.query.attention = options.attention.value_or(trains ? AttentionImplementation::eager
                                                               : AttentionImplementation::fused);
  question.query.kv_dtype = options.kv_dtype.value_or(options.query.dtype);
  question.query.weights = options.weights.value_or(format_of(options.query.dtype));
  question.rates = rates_of(options);
  question.devices = options.count;
  question.load.seq_len = options.seq_len.value_or(default_context(question.model.spec));
  question.load.batch_size = options.batch_size.value_or(default_batch(options));
  return question;
}

PlanRequest request_of(const PlanOptions& options) {
  const FixedDegrees& fixed = options.fixed;
  PlanRequest request;
  ParallelPlan& plan = request.choice.parallel;
  plan.tensor = fixed.tensor.value_or(1);
  plan.sequence = fixed.sequence.value_or(SequenceParallel::off);
  plan.pipeline = fixed.pipeline.value_or(1);
  plan.interleave = fixed.interleave.value_or(1);
  plan.context = fixed.context.value_or(1);
  plan.expert = fixed.expert.value_or(1);
  const std::int64_t used = plan.tensor * plan.pipeline * plan.context;
  plan.data = fixed.data.value_or(std::max<std::int64_t>(1, options.count / used));
  if (plan.devices() != options.count) {
    throw Error(
        ErrorCode::invalid_input,
        fmt::format("--tp {} × --pp {} × --dp {} × --cp {} are {} devices, and --count is {}",
                    plan.tensor, plan.pipeline, plan.data, plan.context, plan.devices(),
                    options.count),
        {}, fmt::format("use --count {}, or other degrees", plan.devices()));
  }
  request.choice.recompute = fixed.recompute.value_or(Recomputation{});
  request.choice.zero = fixed.zero.value_or(Zero::none);
  request.micro_batch = fixed.micro_batch;
  return request;
}

}  // namespace headroom::cli
