// From options to the planner's question; defaults are set here.
#include <fmt/format.h>

#include <algorithm>

#include "efficiency_options.h"
#include "headroom/engine_rates.h"
#include "headroom/error.h"
#include "headroom/microscaling.h"
#include "headroom/report.h"
#include "headroom/storage.h"
#include "own_machine.h"
#include "plan_options.h"
#include "with_noun.h"

namespace headroom::cli {
namespace {

/// Default context in tokens, if the model has as many positions.
constexpr std::int64_t kDefaultContext = 4096;

/// Options that describe the speed of a machine.
bool describe_speed(const PlanOptions& options) {
  const GivenEfficiency& efficiency = options.efficiency;
  return efficiency.matrix || efficiency.memory || efficiency.network ||
         options.intra_node_bytes_per_s || options.inter_node_bytes_per_s;
}

/// True for this machine without a calibration.
bool lacks_speed(const PlanOptions& options) {
  return options.machine == "here" && !describe_speed(options) &&
         !valid_profile(default_backend()).has_value();
}

/// MXFP8 needs GEMMs with a scale per 32 values.
void require_mxfp8(const MachineProfile& machine, const PlanQuery& query) {
  const bool trains_in_mxfp8 =
      query.purpose == Purpose::train && query.states.recipe == Recipe::mxfp8_transformer_engine;
  if (!trains_in_mxfp8 || multiplies_mxfp8(machine)) return;
  throw_invalid_input(
      fmt::format("{} multiplies no MXFP8, whose scales stand for 32 values each", machine.name),
      "choose --recipe fp8-transformer-engine, or a device such as b200");
}

/// Rates by the engine whose kernels run; a note says which, where the weights alone tell.
DeviceRates known_rates(const PlanOptions& options, PlanQuestion& question) {
  MachineProfile machine = machine_named(options.machine, default_backend());
  replace_efficiencies(options.efficiency, machine);
  require_mxfp8(machine, question.query);
  const ModelSpec& spec = question.model.spec;
  auto note = note_on_engine(machine, spec, question.query, options.engine);
  if (note) question.notes.push_back(*std::move(note));
  const PlanQuery& query = question.query;
  auto mxfp8 = note_on_mxfp8(machine, converted(spec, query.weights),
                             query.arithmetic.value_or(query.dtype));
  if (mxfp8) question.notes.push_back(*std::move(mxfp8));
  return engine_rates(machine, spec, question.query, options.engine);
}

DeviceRates rates_of(const PlanOptions& options, PlanQuestion& question, SpeedNeed need) {
  const bool memory_only = need == SpeedNeed::optional && lacks_speed(options);
  DeviceRates rates =
      memory_only ? rates_without_speed(options.machine, 0) : known_rates(options, question);
  if (options.machine == "here") rates.memory_bytes = own_memory();
  if (options.memory_bytes) {
    rates.memory_bytes = *options.memory_bytes;
    rates.driver_bytes = 0;
  }
  if (rates.memory_bytes == 0) {
    throw Error(ErrorCode::invalid_input, "the memory of this machine is unknown", options.machine,
                "add --memory, such as --memory 64GiB");
  }
  const auto replace = [](auto& target, const auto& value) {
    if (value) target = *value;
  };
  replace(rates.link.devices_per_node, options.devices_per_node);
  replace(rates.link.intra_node_bytes_per_s, options.intra_node_bytes_per_s);
  replace(rates.link.inter_node_bytes_per_s, options.inter_node_bytes_per_s);
  if (options.intra_node_bytes_per_s) rates.link_is_assumed = false;
  if (options.inter_node_bytes_per_s) rates.network_is_assumed = false;
  replace(rates.efficiency.matrix, options.efficiency.matrix);
  replace(rates.efficiency.memory, options.efficiency.memory);
  replace(rates.efficiency.network, options.efficiency.network);
  return rates;
}

std::int64_t default_context(const ModelSpec& spec) {
  if (const auto& image = spec.embedding.image) return image->num_tokens();
  if (spec.denoiser) return resolve(WorkloadRequest{}, spec).seq_len;
  const PositionSpec& position = spec.position;
  if (position.max_position_embeddings == 0) return kDefaultContext;
  return std::clamp<std::int64_t>(position.max_position_embeddings - position.offset, 1,
                                  kDefaultContext);
}

/// Sets images, sound and context: tokens of text and of both. Throws Error{invalid_input} for
/// those that the model does not read, or for which the context is too short.
void set_lengths(const PlanOptions& options, PlanQuestion& question) {
  const ModelSpec& spec = question.model.spec;
  question.load.seq_len = options.seq_len.value_or(default_context(spec));
  const PlanQuery& query = options.query;
  const bool sees = query.images != 0 || query.image_size;
  const bool hears = query.audio != 0 || query.audio_seconds;
  if (!sees && !hears) return;
  WorkloadRequest request;
  request.images = query.images;
  request.image_size = query.image_size;
  request.audio = query.audio;
  request.audio_seconds = query.audio_seconds;
  request.seq_len = options.seq_len;
  const Workload workload = resolve(request, spec);
  question.images = workload.images;
  question.audio = workload.audio;
  question.notes.push_back(
      sees && hears
          ? std::string("every rank of the first stage runs both whole towers and their projectors")
          : fmt::format("every rank of the first stage runs the whole {} tower and its projector",
                        sees ? "image" : "audio"));
  for (std::string note : {note_on_images(workload, spec), note_on_audio(workload, spec)}) {
    if (!note.empty()) question.notes.push_back(std::move(note));
  }
  if (options.seq_len) return;
  const std::int64_t inserted = workload.images.totals.tokens + workload.audio.totals.placeholders;
  const std::int64_t positions = spec.position.max_position_embeddings - spec.position.offset;
  const std::int64_t most = positions > 0 ? positions : inserted + kDefaultContext;
  question.load.seq_len =
      std::max(workload.seq_len, std::min(default_context(spec) + inserted, most));
}

/// Of the first kind of layers that has them; 0 without.
std::int64_t routed_experts(const ModelSpec& spec) {
  const StackSpec& stack = spec.main_stack();
  for (std::size_t variant = 0; variant <= stack.variants.size(); ++variant) {
    const auto& experts = stack.ffn_of(variant).experts;
    if (experts) return experts->num_experts;
  }
  return 0;
}

/// Throws Error{invalid_input} for an imbalance among ranks of experts that the plan does not have.
void require_expert_ranks(const PlanOptions& options, std::int64_t ranks) {
  if (options.query.expert_imbalance == 1 || ranks > 1) return;
  throw_invalid_input("--expert-imbalance requires --ep > 1",
                      "add --ep, or leave out --expert-imbalance");
}

/// Throws Error{invalid_input} for an imbalance that no plan with these options can have.
void require_possible_imbalance(const PlanOptions& options, const ModelSpec& spec) {
  const double imbalance = options.query.expert_imbalance;
  if (imbalance == 1) return;
  const std::int64_t experts = routed_experts(spec);
  if (experts == 0) {
    throw_invalid_input("--expert-imbalance requires routed experts, and this model has none",
                        "leave out --expert-imbalance");
  }
  const std::int64_t ranks = options.fixed.expert.value_or(experts);
  require_expert_ranks(options, ranks);
  const double most = most_expert_imbalance(spec, ranks);
  if (imbalance <= most) return;
  throw_invalid_input(fmt::format("--expert-imbalance {} exceeds {}: all tokens on one of {} ranks",
                                  imbalance, most, ranks),
                      fmt::format("choose at most {}", most));
}

/// Serving: a sequence per replica. Training: a micro-batch per replica and pipeline stage.
std::int64_t default_batch(const PlanOptions& options) {
  if (options.query.purpose == Purpose::serve) return options.fixed.data.value_or(1);
  const FixedDegrees& fixed = options.fixed;
  const std::int64_t shards = fixed.tensor.value_or(1) * fixed.context.value_or(1);
  return std::max<std::int64_t>(1, options.count.value() / shards) * fixed.micro_batch.value_or(1);
}

void serve_with(InferenceRecipe recipe, PlanQuery& query) {
  query.weights = info(recipe).weights;
  query.arithmetic = info(recipe).arithmetic;
}

void apply_dtype_recipe(InferenceRecipe recipe, PlanQuery& query) {
  if (query.purpose == Purpose::train) {
    throw_invalid_input(fmt::format("--dtype: a type of 8 bits stands for --recipe {}, an "
                                    "inference recipe",
                                    info(recipe).name),
                        "choose a training recipe, such as --recipe fp8-transformer-engine");
  }
  serve_with(recipe, query);
}

/// A recipe in float8 also stores weights and activations in that type.
void apply_arithmetic_of(Recipe recipe, std::optional<DType> stated, PlanQuery& query) {
  query.arithmetic = info(recipe).arithmetic;
  if (!query.arithmetic || stated.value_or(*query.arithmetic) == *query.arithmetic) return;
  throw_invalid_input(fmt::format("--recipe {} multiplies in {}, not in --arithmetic {}",
                                  info(recipe).name, name_of(*query.arithmetic), name_of(*stated)),
                      "leave out --arithmetic, or choose --recipe megatron");
}

void apply_recipe(const PlanOptions& options, PlanQuery& query) {
  const bool trains = query.purpose == Purpose::train;
  if (options.dtype_recipe) apply_dtype_recipe(*options.dtype_recipe, query);
  if (const auto* recipe = std::get_if<Recipe>(&options.recipe)) {
    if (!trains) {
      throw_invalid_input(fmt::format("--recipe {} is a training recipe", info(*recipe).name),
                          "add --phase train, or choose w8a8, w8a8-fp8, w8a16 or w4a16");
    }
    query.states.recipe = *recipe;
  }
  if (const auto* recipe = std::get_if<InferenceRecipe>(&options.recipe)) {
    if (trains) {
      throw_invalid_input(fmt::format("--recipe {} is an inference recipe", info(*recipe).name),
                          "choose a training recipe, such as fp8-transformer-engine");
    }
    serve_with(*recipe, query);
  }
  if (trains) apply_arithmetic_of(query.states.recipe, options.arithmetic, query);
}

/// Notes stated types that replace those of the inference recipe; remedies of `fit` are written so.
void note_replaced_types(const PlanOptions& options, std::vector<std::string>& notes) {
  const auto* const recipe = std::get_if<InferenceRecipe>(&options.recipe);
  if (recipe == nullptr) return;
  const InferenceRecipeInfo& own = info(*recipe);
  const auto note = [&](const char* option, std::string_view stated, std::string_view replaced) {
    if (stated == replaced) return;
    notes.push_back(
        fmt::format("{} {} replaces --recipe {}'s {}", option, stated, own.name, replaced));
  };
  if (options.weights) note("--weights", name_of(*options.weights), name_of(own.weights));
  if (!options.arithmetic) return;
  note("--arithmetic", name_of(*options.arithmetic),
       own.arithmetic ? name_of(*own.arithmetic) : "16 bits");
}

void apply_types(const PlanOptions& options, const ModelSpec& spec, PlanQuery& query) {
  const bool trains = query.purpose == Purpose::train;
  apply_recipe(options, query);
  if (options.weights) query.weights = options.weights;
  if (!trains && !query.weights) query.arithmetic = stated_arithmetic(spec);
  if (options.arithmetic) query.arithmetic = options.arithmetic;
  query.dtype = options.dtype.value_or(stored_16_bit_type(spec).value_or(DType::bfloat16));
  query.kv_cache = options.kv_cache;
  const DType kv_dtype = stated_kv_dtype(spec).value_or(query.dtype);
  query.kv_dtype = counted_type(options.kv_cache, kv_dtype).value_or(kv_dtype);
}

/// Throws Error{invalid_input} for a cache that is reserved for fewer tokens than a sequence has;
/// searches over lengths raise it.
void require_reservation(const PlanQuestion& question) {
  const std::optional<std::int64_t>& reserved = question.query.kv_cache.capacity;
  const std::int64_t tokens = question.load.seq_len;
  if (!reserved || *reserved >= tokens) return;
  throw_invalid_input(fmt::format("--kv-capacity {} is smaller than the {} tokens of a sequence",
                                  *reserved, tokens),
                      fmt::format("give it {} or more, or take shorter sequences", tokens));
}

}  // namespace

PlanQuestion question_without_machine(const PlanOptions& options) {
  PlanQuestion question;
  question.model = with_stored_types(options.reading.load(options.model), question.notes);
  const auto more = notes_on_config(question.model.spec);
  question.notes.insert(question.notes.end(), more.begin(), more.end());
  if (question.model.spec.denoiser && options.query.image_size) {
    throw_invalid_input("--image-size has no effect on the plan of a diffusion transformer",
                        "give its latent tokens with --seq");
  }
  require_possible_imbalance(options, question.model.spec);
  question.query = options.query;
  if (serves_adapters(options)) question.query.adapter.kind = AdapterKind::lora;
  // Longformer's has no fused kernel.
  const bool eager = question.model.spec.main_stack().self_attention.global.has_value();
  question.query.attention = options.attention.value_or(eager ? AttentionImplementation::eager
                                                              : AttentionImplementation::fused);
  apply_types(options, question.model.spec, question.query);
  note_replaced_types(options, question.notes);
  question.devices = options.count.value();
  set_lengths(options, question);
  require_reservation(question);
  question.load.batch_size = options.batch_size.value_or(default_batch(options));
  return question;
}

namespace {

/// Throws Error{invalid_input} for copies to the host of a device that computes in its memory.
void require_own_memory(const DeviceRates& rates, const FixedDegrees& fixed) {
  const bool offloads_optimizer = fixed.step.offload == Offload::optimizer;
  if (!rates.in_host_memory || (fixed.step.offload_layers == 0 && !offloads_optimizer)) return;
  throw_invalid_input(fmt::format("{} shares its memory with the host", rates.name),
                      fixed.step.offload_layers > 0 ? "leave out --cpu-offloading-num-layers"
                                                    : "leave out --offload");
}

/// Throws Error{invalid_input} for heads that one multiprocessor reads, where none is known to.
void require_multiprocessors(const PlanQuestion& question) {
  if (question.query.decode_attention == DecodeAttention::split) return;
  const bool is_fused = question.query.attention == AttentionImplementation::fused;
  if (is_fused && question.rates.processors > 0) return;
  throw_invalid_input(
      is_fused ? fmt::format("--decode-attention whole requires a device whose number of "
                             "multiprocessors is known, and that of {} is not",
                             question.rates.name)
               : "--decode-attention whole requires fused attention",
      "leave out --decode-attention");
}

}  // namespace

PlanQuestion question_of(const PlanOptions& options, SpeedNeed need) {
  PlanQuestion question = question_without_machine(options);
  question.rates = rates_of(options, question, need);
  require_own_memory(question.rates, options.fixed);
  require_multiprocessors(question);
  if (!question.rates.have_speed()) {
    question.notes.emplace_back(
        "this machine is not calibrated, so the plan has no time: `headroom calibrate` takes under "
        "a minute");
  }
  return question;
}

std::string engine_command_of(const PlanOptions& options, const PlanQuestion& question,
                              const PlanChoice& choice, std::vector<std::string>& notes) {
  if (!options.engine) return {};
  EngineCommand command = engine_command(*options.engine, question, choice);
  for (std::string& note : command.notes) {
    notes.push_back(fmt::format("{}: {}", info(*options.engine).name, note));
  }
  return std::move(command.text);
}

std::vector<std::string> notes_on_unused(const PlanOptions& options, const ModelSpec& spec,
                                         const PlanChoice& choice) {
  std::vector<std::string> notes;
  const bool overlaps = options.fixed.step.tensor_overlap == TensorOverlap::on;
  if (overlaps && choice.parallel.sequence == SequenceParallel::off) {
    notes.emplace_back(
        "--tp-comm-overlap has no effect: the fastest plan has no sequence parallelism");
  }
  const double imbalance = options.query.expert_imbalance;
  if (imbalance == 1) return notes;
  const std::int64_t ranks = choice.parallel.expert;
  const double most = most_expert_imbalance(spec, ranks);
  if (ranks == 1) {
    notes.emplace_back("--expert-imbalance has no effect: the fastest plan has no --ep");
  } else if (imbalance > most) {
    notes.push_back(fmt::format("--expert-imbalance {} counts as {}: all tokens on one of {} ranks",
                                imbalance, most, ranks));
  }
  return notes;
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
  plan.expert_tensor = fixed.expert_tensor;
  plan.expert_exchange = fixed.expert_exchange;
  plan.batch_overlap = fixed.batch_overlap;
  const std::int64_t used = plan.tensor * plan.pipeline * plan.context;
  require_expert_ranks(options, plan.expert);
  plan.data = fixed.data.value_or(std::max<std::int64_t>(1, options.count.value() / used));
  if (plan.devices() != options.count.value()) {
    throw_invalid_input(
        fmt::format("--tp {} × --pp {} × --dp {} × --cp {} is {}, but --count is {}", plan.tensor,
                    plan.pipeline, plan.data, plan.context,
                    detail::with_noun(plan.devices(), "device"), options.count.value()),
        fmt::format("use --count {}, or other degrees", plan.devices()));
  }
  request.choice.recompute = fixed.recompute.value_or(Recomputation{});
  request.choice.zero = fixed.zero.value_or(Zero::none);
  request.choice.step = fixed.step;
  request.micro_batch = fixed.micro_batch;
  return request;
}

}  // namespace headroom::cli
