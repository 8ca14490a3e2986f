// Seconds of one operator of a compiled rank.
#include <algorithm>
#include <cmath>

#include "gemm_tiles.h"
#include "rank_program.h"

namespace headroom::detail {
namespace {

/// FLOPs that the model needs of an operator: forward, and a gradient of each operand that has one.
/// The scores that fused attention computes again in its backward pass are recomputation.
double model_flops(double forward, double backward) {
  return forward + std::min(backward, 2 * forward);
}

}  // namespace

double as_double(const CompiledExpr& expr, const SymbolValues& values) {
  return static_cast<double>(expr.evaluate(values));
}

double RankProgram::CompiledRead::bytes(const SymbolValues& values, std::int64_t used) const {
  const double all = as_double(elements, values) * bytes_per_element;
  if (adapters == 0) return all;
  return all * static_cast<double>(std::min(used, adapters)) / static_cast<double>(adapters);
}

double RankProgram::CompiledGemm::tiled_share(const SymbolValues& values,
                                              std::int64_t processors) const {
  const GemmSizes sizes{as_double(rows, values), as_double(in_features, values),
                        as_double(out_features, values), as_double(count, values)};
  return detail::tiled_share(sizes, processors);
}

// TensorRT-LLM of 2024 without multi-block mode (decoderXQAImplPrecompiled.cpp, mayHavePerfGain): a
// block of threads for each query head of a sequence, or one for all query heads of a key head
// where key heads are at least a quarter of the multiprocessors. NIM's steps show the latter with
// eight query heads and not with four (docs/device-time.md).
double RankProgram::CompiledHeads::seconds(const SymbolValues& values,
                                           const RankSpeed& speed) const {
  constexpr double kGrouped = 8;
  constexpr double kFewestBlocks = 0.25;
  if (speed.head_elements_per_s == 0) return 0;
  const auto processors = static_cast<double>(speed.processors);
  const double all_keys = as_double(sequences, values) * as_double(key_heads, values);
  const double all_queries = as_double(sequences, values) * as_double(query_heads, values);
  const bool grouped = all_queries == kGrouped * all_keys && all_keys >= kFewestBlocks * processors;
  const double waves = std::ceil((grouped ? all_keys : all_queries) / processors);
  return waves * as_double(elements, values) / speed.head_elements_per_s;
}

double RankProgram::CompiledNode::memory_seconds(double work_bytes, const SymbolValues& values,
                                                 const RankSpeed& speed) const {
  if (!attends) return work_bytes / speed.memory_bytes_per_s;
  const double divided_s = work_bytes / speed.cache_bytes_per_s;
  if (!heads) return divided_s;
  return std::max(divided_s, as_double(layers, values) * heads->seconds(values, speed));
}

double RankProgram::CompiledNode::all_bytes(const SymbolValues& values, double load,
                                            std::int64_t adapters) const {
  double sum = load * as_double(bytes, values);
  for (const CompiledRead& read : reads) {
    sum += read.bytes(values, adapters);
  }
  return sum;
}

double RankProgram::CompiledNode::fixed_seconds(const SymbolValues& values,
                                                const RankSpeed& speed) const {
  if (!reads_weights) return 0;
  return as_double(layers, values) * (layer_gemm ? speed.layer_gemm_kernel_s : speed.kernel_s);
}

OperatorSeconds RankProgram::CompiledNode::serving_seconds(const SymbolValues& values,
                                                           const RankSpeed& speed,
                                                           std::int64_t adapters) const {
  const bool tiled = gemm && processors(speed) > 0;
  const double share = tiled ? gemm->tiled_share(values, processors(speed)) : 1;
  const double work_flops = load(speed) * as_double(flops, values);
  const double work_bytes = all_bytes(values, load(speed), adapters);
  const double arithmetic_s = share * work_flops / flops_per_s(speed);
  const double memory_s = memory_seconds(work_bytes, values, speed);
  return {
      fixed_seconds(values, speed) + std::max(arithmetic_s, memory_s), 0,
      arithmetic_s > memory_s ? arithmetic_s : 0,
      std::max(work_flops / peak_flops_per_s(speed), work_bytes / speed.whole_memory_bytes_per_s)};
}

OperatorSeconds RankProgram::CompiledNode::training_seconds(const SymbolValues& values,
                                                            const RankSpeed& speed) const {
  TrainingWork work;
  work.kind = kind;
  work.layers = as_double(layers, values);
  work.flops = load(speed) * as_double(flops, values);
  work.backward_flops = load(speed) * as_double(backward_flops, values);
  work.weights = as_double(weights, values);
  work.trained_weights = as_double(trained, values);
  const auto weight_bytes = static_cast<double>(bytes_of(DType::bfloat16));
  work.bytes = load(speed) * std::max(0.0, as_double(bytes, values) - weight_bytes * work.weights);
  work.permuted_bytes = load(speed) * as_double(permuted_bytes, values);
  work.permutations = permutations;
  const PassSeconds seconds = detail::training_seconds(
      work, {flops_per_s(speed), speed.memory_bytes_per_s, speed.whole_memory_bytes_per_s,
             speed.gradient_bytes, speed.kernel_s});
  return {seconds.forward_s, seconds.backward_s, 0, 0};
}

void RankProgram::CompiledNode::add_to(SectionCosts& costs, const OperatorSeconds& seconds,
                                       const SymbolValues& values) const {
  costs.forward_s += seconds.forward_s;
  costs.backward_s += seconds.backward_s;
  costs.compute_bound_s += seconds.compute_bound_s;
  costs.roofline_s += seconds.roofline_s;
  costs.model_flops += model_flops(as_double(flops, values), as_double(backward_flops, values));
  costs.part_s.at(static_cast<std::size_t>(part)) += seconds.forward_s;
  if (reads_weights) {
    costs.weights_s += seconds.forward_s;
    costs.weights_bound_s += seconds.compute_bound_s;
    costs.weights_roofline_s += seconds.roofline_s;
  }
  if (on_exchanged_tokens) costs.experts_s += seconds.forward_s;
}

}  // namespace headroom::detail
