// From options to the planner's question; defaults are set here.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "headroom/error.h"
#include "own_machine.h"
#include "plan_options.h"

namespace headroom::cli {
namespace {

/// Default context in tokens, if the model has as many positions.
constexpr std::int64_t kDefaultContext = 4096;

/// Physical memory of this machine, which its profile does not state; 0 if unknown.
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

/// Serving: a sequence per replica. Training: a micro-batch per replica and pipeline stage.
std::int64_t default_batch(const PlanOptions& options) {
  if (options.query.purpose == Purpose::serve) return options.fixed.data.value_or(1);
  const FixedDegrees& fixed = options.fixed;
  const std::int64_t shards = fixed.tensor.value_or(1) * fixed.context.value_or(1);
  return std::max<std::int64_t>(1, options.count / shards) * fixed.micro_batch.value_or(1);
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
    throw_invalid_input(
        fmt::format("--tp {} × --pp {} × --dp {} × --cp {} is {} devices, but --count is {}",
                    plan.tensor, plan.pipeline, plan.data, plan.context, plan.devices(),
                    options.count),
        fmt::format("use --count {}, or other degrees", plan.devices()));
  }
  request.choice.recompute = fixed.recompute.value_or(Recomputation{});
  request.choice.zero = fixed.zero.value_or(Zero::none);
  request.micro_batch = fixed.micro_batch;
  return request;
}

}  // namespace headroom::cli
