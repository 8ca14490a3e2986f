// Models of papers on training, written as config.json.
#pragma once

#include <cstdint>

#include "headroom/plan.h"
#include "support/data.h"

namespace headroom::test {

/// A GPT of arXiv 2205.05198, Table 3: intermediate size 4·d, dropout everywhere, sequence 2048,
/// vocabulary 51200.
inline ModelSpec gpt(std::int64_t hidden, std::int64_t heads, std::int64_t layers,
                     std::int64_t seq_len = 2048, std::int64_t vocab = 51200) {
  return spec_of({{"model_type", "gpt2"},
                  {"architectures", {"GPT2LMHeadModel"}},
                  {"n_embd", hidden},
                  {"n_head", heads},
                  {"n_layer", layers},
                  {"n_positions", seq_len},
                  {"vocab_size", vocab},
                  {"activation_function", "gelu_new"}},
                 "gpt");
}

/// Training in 16 bit with one kernel per operator.
inline Workload training(std::int64_t batch, std::int64_t seq_len,
                         AttentionImplementation attention = AttentionImplementation::eager) {
  Workload workload;
  workload.phase = Phase::train;
  workload.batch_size = batch;
  workload.seq_len = seq_len;
  workload.dtype = DType::bfloat16;
  workload.kv_dtype = DType::bfloat16;
  workload.attention = attention;
  workload.kernels = Kernels::fused;
  return workload;
}

inline Graph training_graph(const ModelSpec& spec,
                            AttentionImplementation attention = AttentionImplementation::eager) {
  return build_graph(spec, {Phase::train, attention});
}

inline AnalysisOptions fused_kernels() {
  AnalysisOptions options;
  options.kernels = Kernels::fused;
  return options;
}

/// Values of all symbols on one rank.
inline Bindings values_on(const Graph& rank, const Workload& workload, const ParallelPlan& plan) {
  Bindings values = rank_bindings(workload, rank.traits, plan);
  for (const SymbolInfo& symbol : symbols()) {
    if (const auto size = rank.sizes.get(symbol.symbol)) values.set(symbol.symbol, *size);
  }
  return values;
}

/// Matrix FLOPs of a forward pass on one rank.
inline Integer forward_flops(const Graph& rank, const Workload& workload,
                             const ParallelPlan& plan) {
  return analyze(rank, fused_kernels())
      .total.forward.matrix_flops.evaluate(values_on(rank, workload, plan));
}

inline ParallelPlan tensor_plan(std::int64_t ranks, SequenceParallel sequence) {
  ParallelPlan plan;
  plan.tensor = ranks;
  plan.sequence = sequence;
  return plan;
}

/// Parameters of the weights that tensor parallelism does not divide.
inline Integer replicated_parameters(const Graph& rank) {
  Integer count = 0;
  for (const Weight& weight : rank.weights) {
    if (!is_divided(weight)) count += (weight.repeat * weight.elements()).evaluate(rank.sizes);
  }
  return count;
}

/// A planner of training with fused attention on an H100.
inline Planner h100_trainer(const ModelSpec& spec) {
  PlanQuery query;
  query.purpose = Purpose::train;
  return {spec, query, device_rates(find_machine("h100-80gb"), query.purpose, DType::bfloat16)};
}

}  // namespace headroom::test
