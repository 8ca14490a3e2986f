// Megatron-LM and torchtitan: degrees, batches, ZeRO and recomputation of a training plan as their
// options. Data, tokenizer and learning rate are no part of a plan.
#include <algorithm>

#include "command_words.h"
#include "engine_commands.h"
#include "headroom/error.h"

namespace headroom::detail {
namespace {

/// "torchrun --nnodes 2 --nproc-per-node 8 " for all devices.
std::string launcher(const PlanQuestion& question) {
  const std::int64_t node = std::min(question.devices, question.rates.link.devices_per_node);
  const std::int64_t nodes = (question.devices + node - 1) / node;
  return nodes == 1 ? fmt::format("torchrun --nproc-per-node {}", node)
                    : fmt::format("torchrun --nnodes {} --nproc-per-node {}", nodes, node);
}

/// Layers of every chunk of the pipeline. Megatron-LM divides them evenly, perhaps with the
/// embedding and the loss as a layer each (megatron/training/arguments.py).
void add_megatron_layers(const PlanQuestion& question, const ParallelPlan& plan,
                         CommandWords& words, EngineCommand& command) {
  const std::int64_t layers = question.model.spec.main_stack().num_layers;
  const std::int64_t chunks = plan.pipeline * plan.interleave;
  const bool counts_ends = layers % chunks != 0 && (layers + 2) % chunks == 0;
  if (counts_ends) {
    words.add("--account-for-embedding-in-pipeline-split --account-for-loss-in-pipeline-split");
  }
  const std::int64_t counted = layers + (counts_ends ? 2 : 0);
  if (counted % chunks != 0) {
    command.notes.push_back(
        fmt::format("{} layers do not divide evenly into {} chunks: state them by "
                    "--pipeline-model-parallel-layout",
                    layers, chunks));
  } else if (plan.interleave > 1) {
    words.add("--num-layers-per-virtual-pipeline-stage", counted / chunks);
  }
}

void add_megatron_degrees(const PlanQuestion& question, const PlanChoice& choice,
                          CommandWords& words, EngineCommand& command) {
  const ParallelPlan& plan = choice.parallel;
  words.add_degree("--tensor-model-parallel-size", plan.tensor);
  if (plan.sequence == SequenceParallel::on) words.add("--sequence-parallel");
  if (choice.step.tensor_overlap == TensorOverlap::on) words.add("--tp-comm-overlap");
  words.add_degree("--pipeline-model-parallel-size", plan.pipeline);
  add_megatron_layers(question, plan, words, command);
  words.add_degree("--context-parallel-size", plan.context);
  words.add_degree("--expert-model-parallel-size", plan.expert);
  if (plan.expert_tensor == ExpertTensor::whole) words.add("--expert-tensor-parallel-size", 1);
  if (plan.expert > 1 && plan.expert_exchange == ExpertExchange::by_node) {
    words.add("--moe-token-dispatcher-type flex --moe-flex-dispatcher-backend deepep");
  }
}

/// Collectives of data parallelism beside the passes.
void add_megatron_overlap(const PlanChoice& choice, CommandWords& words) {
  const bool by_zero = choice.step.overlap == DataOverlap::by_zero;
  const bool overlaps =
      by_zero ? choice.zero != Zero::optimizer : choice.step.overlap == DataOverlap::on;
  if (!overlaps || choice.parallel.replicas() == 1) return;
  words.add("--overlap-grad-reduce");
  if (choice.zero != Zero::none) words.add("--overlap-param-gather");
}

void add_megatron_zero(const PlanChoice& choice, CommandWords& words) {
  constexpr std::string_view kSharding = "--use-megatron-fsdp --data-parallel-sharding-strategy";
  if (choice.step.zero_ranks > 0 && choice.zero != Zero::none) {
    const std::int64_t groups = choice.parallel.replicas() / choice.step.zero_ranks;
    words.add_degree("--num-distributed-optimizer-instances", groups);
  }
  switch (choice.zero) {
    case Zero::none:
      break;
    case Zero::optimizer:
      words.add("--use-distributed-optimizer");
      break;
    case Zero::gradients:
      words.add(kSharding, "optim_grads");
      words.add("--ckpt-format", "fsdp_dtensor");  // the only one that FSDP saves (arguments.py)
      break;
    case Zero::weights:
      words.add(kSharding, "optim_grads_params");
      words.add("--ckpt-format", "fsdp_dtensor");
      break;
  }
}

/// Megatron-LM asserts one connection where it overlaps the communication of --tp or --cp, on
/// devices before Blackwell and without FSDP (training/arguments.py).
void note_connections(const PlanChoice& choice, EngineCommand& command) {
  const bool shards_by_fsdp = choice.zero == Zero::gradients || choice.zero == Zero::weights;
  const bool communicates = choice.parallel.tensor > 1 || choice.parallel.context > 1;
  if (!communicates || shards_by_fsdp) return;
  command.notes.emplace_back("set CUDA_DEVICE_MAX_CONNECTIONS=1 on devices before Blackwell");
}

/// Notes a recipe whose states the command does not keep.
void note_megatron_states(Recipe recipe, EngineCommand& command) {
  switch (recipe) {
    case Recipe::megatron:
    case Recipe::fp8_transformer_engine:
    case Recipe::mxfp8_transformer_engine:
      return;
    case Recipe::fp8_deepseek_v3:
    case Recipe::float32:
    case Recipe::bfloat16:
    case Recipe::mixed:
      break;
  }
  command.notes.push_back(
      fmt::format("weights, gradients and optimizer states are those of --recipe megatron, not {}: "
                  "see --grad-reduce-in-bf16 and --use-precision-aware-optimizer",
                  info(recipe).name));
}

void add_megatron_recomputation(const Recomputation& recompute, CommandWords& words) {
  switch (recompute.kind) {
    case Recompute::none:
      break;
    case Recompute::selective:
      words.add("--recompute-granularity selective");
      if (recompute.modules == Recomputation{}.modules) break;
      words.add("--recompute-modules", name_of(recompute.modules, ' '));
      break;
    case Recompute::full:
      words.add("--recompute-granularity full --recompute-method uniform");
      words.add("--recompute-num-layers", recompute.every);
      break;
  }
}

void add_megatron_recipe(Recipe recipe, CommandWords& words) {
  switch (recipe) {
    case Recipe::fp8_transformer_engine:
      words.add("--fp8-format", "hybrid");
      break;
    case Recipe::mxfp8_transformer_engine:
      words.add("--fp8-format e4m3 --fp8-recipe mxfp8");
      break;
    case Recipe::fp8_deepseek_v3:
      words.add("--fp8-format e4m3 --fp8-recipe blockwise");
      break;
    case Recipe::float32:
    case Recipe::bfloat16:
    case Recipe::mixed:
    case Recipe::megatron:
      break;
  }
}

/// Notes the optimizer and the adapters that a plan assumes; the command has no option for them.
void note_states(const PlanQuery& query, EngineCommand& command) {
  const Optimizer optimizer = query.states.optimizer;
  if (optimizer != Optimizer::adam) {
    command.notes.push_back(
        fmt::format("the optimizer {} is not in the command", info(optimizer).name));
  }
  if (query.adapter.kind != AdapterKind::none) {
    command.notes.emplace_back("adapters are not in the command, which trains all weights");
  }
}

/// The schedules that a pipeline of this engine has another name for, or lacks.
void note_schedule(PipelineSchedule schedule, EngineCommand& command) {
  if (schedule == PipelineSchedule::one_forward_one_backward) return;
  command.notes.push_back(fmt::format("no option chooses the schedule {}", name_of(schedule)));
}

void note_offload(Offload offload, std::string_view option, EngineCommand& command) {
  if (offload == Offload::none) return;
  command.notes.push_back(fmt::format("the optimizer in the host's memory: see {}", option));
}

void note_megatron_loss(const PlanChoice& choice, EngineCommand& command) {
  if (choice.step.loss_chunks == 1) return;
  command.notes.push_back(
      fmt::format("no option computes the loss in {} chunks, as Liger Kernel's "
                  "fused linear cross-entropy does",
                  choice.step.loss_chunks));
}

/// The command's options are those of torchtitan 0.2. Later versions read them from a model's
/// configuration in Python (torchtitan/config/configs.py, components/loss.py).
void note_torchtitan_version(const PlanChoice& choice, EngineCommand& command) {
  command.notes.emplace_back("the command is for torchtitan 0.2");
  if (choice.step.loss_chunks > 1) {
    command.notes.push_back(fmt::format(
        "version 0.2 computes the loss on all logits; later ones have --loss.num_chunks "
        "{}",
        choice.step.loss_chunks));
  }
  if (choice.step.offload_layers > 0) {
    command.notes.emplace_back("no option keeps layers' activations on the host");
  }
}

std::string_view torchtitan_schedule(const PlanChoice& choice) {
  switch (choice.step.schedule) {
    case PipelineSchedule::one_forward_one_backward:
      return choice.parallel.interleave > 1 ? "Interleaved1F1B" : "1F1B";
    case PipelineSchedule::zero_bubble:
      return "InterleavedZeroBubble";
    case PipelineSchedule::dual_pipe:
      break;
  }
  return "DualPipeV";
}

void add_torchtitan_degrees(const PlanChoice& choice, CommandWords& words) {
  const ParallelPlan& plan = choice.parallel;
  const bool shards = choice.zero != Zero::none;
  const std::int64_t group = choice.step.zero_ranks > 0 ? choice.step.zero_ranks : plan.data;
  const std::int64_t sharded = shards ? group : 1;
  words.add("--parallelism.data_parallel_shard_degree", sharded);
  words.add_degree("--parallelism.data_parallel_replicate_degree", plan.data / sharded);
  words.add_degree("--parallelism.tensor_parallel_degree", plan.tensor);
  if (choice.step.tensor_overlap == TensorOverlap::on) {
    words.add("--compile.enable --parallelism.enable_async_tensor_parallel");
  }
  words.add_degree("--parallelism.context_parallel_degree", plan.context);
  words.add_degree("--parallelism.expert_parallel_degree", plan.expert);
  if (plan.pipeline == 1) return;
  words.add("--parallelism.pipeline_parallel_degree", plan.pipeline);
  words.add("--parallelism.pipeline_parallel_schedule", torchtitan_schedule(choice));
  words.add("--parallelism.pipeline_parallel_microbatch_size", choice.micro_batch);
}

void add_torchtitan_zero(Zero zero, CommandWords& words, EngineCommand& command) {
  switch (zero) {
    case Zero::none:
    case Zero::weights:
      break;
    case Zero::gradients:
      words.add("--parallelism.fsdp_reshard_after_forward", "never");
      break;
    case Zero::optimizer:
      words.add("--parallelism.fsdp_reshard_after_forward", "never");
      command.notes.emplace_back("gradients are sharded as well: there is no ZeRO 1");
      break;
  }
}

void add_torchtitan_recomputation(const Recomputation& recompute, CommandWords& words,
                                  EngineCommand& command) {
  const bool names_modules = recompute.modules != Recomputation{}.modules;
  if (recompute.kind == Recompute::selective && names_modules) {
    command.notes.push_back(
        fmt::format("no option recomputes {} alone", name_of(recompute.modules)));
  }
  words.add("--activation_checkpoint.mode",
            recompute.kind == Recompute::none                           ? "none"
            : recompute.kind == Recompute::full && recompute.every == 1 ? "full"
                                                                        : "selective");
  if (recompute.kind == Recompute::full && recompute.every > 1) {
    words.add("--activation_checkpoint.selective_ac_option", recompute.every);
  }
}

}  // namespace

EngineCommand megatron_command(const PlanQuestion& question, const PlanChoice& choice) {
  if (!question.model.spec.decoder || question.model.spec.encoder) {
    throw_invalid_input("megatron's command is for decoders only", "choose torchtitan");
  }
  EngineCommand command{Engine::megatron, {}, {}};
  CommandWords words(launcher(question) + " pretrain_gpt.py");
  add_megatron_model(question.model.spec, question.load.seq_len, choice.parallel, words, command);
  words.add("--micro-batch-size", choice.micro_batch);
  words.add("--global-batch-size", question.load.batch_size);
  add_megatron_degrees(question, choice, words, command);
  add_megatron_zero(choice, words);
  add_megatron_overlap(choice, words);
  add_megatron_recomputation(choice.recompute, words);
  if (choice.step.offload_layers > 0)
    words.add("--cpu-offloading-num-layers", choice.step.offload_layers);
  // Otherwise Transformer Engine chooses a kernel that keeps no scores.
  const bool fused = question.query.attention == AttentionImplementation::fused;
  if (!fused) words.add("--attention-backend", "unfused");
  if (question.query.dtype == DType::bfloat16) words.add("--bf16");
  if (question.query.dtype == DType::float16) words.add("--fp16");
  add_megatron_recipe(question.query.states.recipe, words);
  note_megatron_states(question.query.states.recipe, command);
  note_connections(choice, command);
  note_states(question.query, command);
  note_schedule(choice.step.schedule, command);
  note_offload(choice.step.offload, "its guide to the optimizer's CPU offload", command);
  note_megatron_loss(choice, command);
  command.notes.emplace_back(
      "data, tokenizer, initialisation and learning rate are not in the command");
  command.text = words.text();
  return command;
}

EngineCommand torchtitan_command(const PlanQuestion& question, const PlanChoice& choice) {
  EngineCommand command{Engine::torchtitan, {}, {}};
  CommandWords words(launcher(question) + " -m torchtitan.train");
  const std::int64_t replicas = choice.parallel.data;
  const bool is_pipeline = choice.parallel.pipeline > 1;
  const std::int64_t local =
      is_pipeline ? sequences_per_replica(question, choice) : choice.micro_batch;
  words.add("--training.seq_len", question.load.seq_len);
  words.add("--training.local_batch_size", local);
  if (local * replicas < question.load.batch_size) {
    words.add("--training.global_batch_size", question.load.batch_size);
  }
  add_torchtitan_degrees(choice, words);
  add_torchtitan_zero(choice.zero, words, command);
  add_torchtitan_recomputation(choice.recompute, words, command);
  // Otherwise weights, gradients and states are float32, whatever the GEMMs take.
  if (question.query.states.recipe == Recipe::bfloat16) words.add("--training.dtype", "bfloat16");
  if (info(question.query.states.recipe).arithmetic) {
    command.notes.push_back(
        fmt::format("the recipe {} is not in the command: float8 is one of the "
                    "model's converters",
                    info(question.query.states.recipe).name));
  }
  note_states(question.query, command);
  note_offload(choice.step.offload, "training.enable_cpu_offload, which takes weights as well",
               command);
  note_torchtitan_version(choice, command);
  command.notes.emplace_back(
      "model, data and learning rate are those of the file of --job.config_file");
  command.text = words.text();
  return command;
}

}  // namespace headroom::detail
