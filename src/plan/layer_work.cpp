#include "layer_work.h"

#include <fmt/format.h>

#include <algorithm>

#include "attention_ops.h"
#include "default_options.h"
#include "gemm_tiles.h"
#include "headroom/analysis.h"
#include "headroom/error.h"
#include "kv_reservation.h"
#include "op_kind.h"
#include "planner.h"
#include "stage_layout.h"

namespace headroom::detail {
namespace {

/// Rates of one place.
struct PlaceRates {
  double flops_per_s = 0;             ///< 0: never the bottleneck
  double layer_gemm_flops_per_s = 0;  ///< of is_layer_gemm; 0: likewise
  double bytes_per_s = 0;
  double cache_bytes_per_s = 0;            ///< by attention
  std::int64_t processors = 0;             ///< as EffectiveRates::processors
  std::int64_t layer_gemm_processors = 0;  ///< likewise, of is_layer_gemm
  double kernel_s = 0;                     ///< as DeviceRates::kernel_s
  double layer_gemm_kernel_s = 0;          ///< likewise
  // By the datasheet; 0: not known, as of a host.
  double peak_flops_per_s = 0;
  double layer_gemm_peak_flops_per_s = 0;
  double whole_bytes_per_s = 0;
};

PlaceRates place_rates(const DeviceRates& rates) {
  const double matrix = rates.efficiency.matrix;
  return {rates.flops_per_s * matrix,
          rates.layer_gemm_flops_per_s.value_or(rates.flops_per_s) * matrix,
          rates.memory_bytes_per_s * rates.efficiency.memory,
          rates.memory_bytes_per_s * rates.efficiency.memory * rates.efficiency.cache,
          rates.processors,
          rates.layer_gemm_processors,
          rates.kernel_s,
          rates.layer_gemm_kernel_s,
          rates.flops_per_s,
          rates.layer_gemm_flops_per_s.value_or(rates.flops_per_s),
          rates.memory_bytes_per_s};
}

PlaceRates place_rates(const HostRates& host) {
  PlaceRates rates;
  rates.flops_per_s = rates.layer_gemm_flops_per_s = host.flops_per_s.value_or(0);
  rates.bytes_per_s = rates.cache_bytes_per_s = host.memory_bytes_per_s;
  return rates;
}

/// An operator's work in one layer.
struct OperatorWork {
  double flops = 0;
  double bytes = 0;
  bool is_layer_gemm = false;
  bool reads_weights = false;
  bool attends = false;
  std::optional<GemmSizes> gemm;
};

/// Seconds of `work` at `rate`; a rate of 0 is never the bottleneck.
double seconds_at(double rate, double work) { return rate > 0 ? work / rate : 0; }

BoundSeconds seconds_on(const PlaceRates& rates, const OperatorWork& work) {
  const double flops_per_s = work.is_layer_gemm ? rates.layer_gemm_flops_per_s : rates.flops_per_s;
  const std::int64_t processors =
      work.is_layer_gemm ? rates.layer_gemm_processors : rates.processors;
  const double tiled = work.gemm ? tiled_share(*work.gemm, processors) : 1;
  const double compute = seconds_at(flops_per_s, tiled * work.flops);
  const double kernel_s = work.is_layer_gemm ? rates.layer_gemm_kernel_s : rates.kernel_s;
  const double fixed = work.reads_weights ? kernel_s : 0;
  const double memory = work.bytes / (work.attends ? rates.cache_bytes_per_s : rates.bytes_per_s);
  const double peak =
      work.is_layer_gemm ? rates.layer_gemm_peak_flops_per_s : rates.peak_flops_per_s;
  return {fixed + std::max(compute, memory), compute > memory ? compute : 0,
          std::max(seconds_at(peak, work.flops), seconds_at(rates.whole_bytes_per_s, work.bytes))};
}

struct BothRates {
  PlaceRates device;
  PlaceRates host;
};

void add(const BothRates& rates, const OperatorWork& work, PlaceSeconds& seconds) {
  const BoundSeconds on_device = seconds_on(rates.device, work);
  const BoundSeconds on_host = seconds_on(rates.host, work);
  seconds.on_device += on_device;
  seconds.on_host += on_host;
  seconds.copied += work.reads_weights ? on_device : on_host;
}

bool has_routed_experts(const Node& node) { return kind_of(node.op) == OpKind::expert_linear; }

PartWork& part_of_layer(LayerWork& layer, const Node& node) {
  return has_routed_experts(node) ? layer.experts : layer.others;
}

/// The parts that a node belongs to, one for each of its runs.
std::vector<PartWork*> parts_of(ModelWork& work, const SectionMap& sections, std::size_t index,
                                const Block& block, const Node& node, const Bindings& sizes) {
  if (!block.is_layers()) {
    const bool last = sections.of(index, node).kind == Section::Kind::main_last;
    return {last ? &work.output : &work.input};
  }
  const auto runs = block.repeat.evaluate_int64(sizes);
  std::vector<PartWork*> parts;
  for (std::int64_t run = 0; run < runs; ++run) {
    LayerWork& layer = work.layers.at(static_cast<std::size_t>(block.layer_of(node, run)));
    parts.push_back(&part_of_layer(layer, node));
  }
  return parts;
}

/// Adds the seconds of one pass to all parts, in the member that `pass` names.
void add_pass(const Graph& graph, const Workload& workload, const BothRates& rates,
              PlaceSeconds PartWork::*pass, ModelWork& work) {
  const Analysis analysis = analyze(graph);
  const Bindings sizes = bindings_of(workload, graph);
  const SectionMap sections(graph);
  std::size_t next = 0;
  for (std::size_t i = 0; i < graph.blocks.size(); ++i) {
    const Block& block = graph.blocks[i];
    const auto runs = static_cast<double>(block.repeat.evaluate(sizes));
    for (const Node& node : block.nodes) {
      const NodeAnalysis& cost = analysis.nodes.at(next++);
      const Cost& forward = cost.cost.forward;
      const auto of_layer = [&](const Expr& expr) {
        return static_cast<double>(expr.evaluate(sizes)) / runs;
      };
      const OperatorWork one{of_layer(forward.matrix_flops),
                             of_layer(forward.bytes_read) + of_layer(forward.bytes_written),
                             is_layer_gemm(block, node),
                             !cost.weights_read.empty(),
                             attends(node.op),
                             gemm_sizes(node.op, sizes)};
      for (PartWork* const part : parts_of(work, sections, i, block, node, sizes)) {
        add(rates, one, part->*pass);
      }
    }
  }
}

Integer bytes_of_copy(const Weight& weight, std::size_t copy, Integer copies) {
  if (weight.stored_bytes_of_copy.empty()) return *weight.stored_bytes / copies;
  return weight.stored_bytes_of_copy.at(copy);
}

/// Adds the bytes of a weight that the operator of `parts` is the first to use, one copy to each.
void place_weight(const Weight& weight, const std::vector<PartWork*>& parts,
                  const Bindings& sizes) {
  const Integer copies = weight.repeat.evaluate(sizes);
  if (copies != std::ssize(parts)) {
    throw_invalid_input(fmt::format("layers share the weight {}", weight.path),
                        "a split between two memories needs layers with weights of their own");
  }
  for (std::size_t copy = 0; copy < parts.size(); ++copy) {
    parts[copy]->weight_bytes += bytes_of_copy(weight, copy, copies);
  }
}

/// Uses of a weight outside the layers.
struct OuterUse {
  bool input = false;
  bool output = false;
};

void place_weights(const Graph& graph, ModelWork& work) {
  const SectionMap sections(graph);
  std::vector<bool> placed(graph.weights.size());
  std::vector<OuterUse> outer(graph.weights.size());
  for (std::size_t i = 0; i < graph.blocks.size(); ++i) {
    const Block& block = graph.blocks[i];
    for (const Node& node : block.nodes) {
      const auto parts = parts_of(work, sections, i, block, node, graph.sizes);
      for (const WeightId id : node.weights) {
        if (!block.is_layers()) {
          (parts.front() == &work.input ? outer[id].input : outer[id].output) = true;
        } else if (!placed[id]) {
          place_weight(graph.weights[id], parts, graph.sizes);
        }
        placed[id] = placed[id] || block.is_layers();
      }
    }
  }
  for (WeightId id = 0; id < graph.weights.size(); ++id) {
    if (placed[id]) continue;
    const Integer bytes = *graph.weights[id].stored_bytes;
    const auto [input, output] = outer[id];
    Integer& sum = input && output ? work.tied_bytes
                   : input         ? work.input.weight_bytes
                   : output        ? work.output.weight_bytes
                                   : work.unused_bytes;
    sum += bytes;
  }
}

void place_cache(const ModelSpec& spec, const Graph& decode, const Workload& step,
                 const KvCacheRequest& request, ModelWork& work) {
  const std::vector<LayerKind> kinds = layer_kinds(decode);
  const KvReservation cache = kv_reservation(spec, decode, step, request, kinds.size());
  for (std::size_t kind = 0; kind < kinds.size(); ++kind) {
    const LayerKind& layers = kinds[kind];
    for (std::int64_t i = 0; i < layers.count; ++i) {
      const auto layer = static_cast<std::size_t>(layers.first_layer + i * layers.stride);
      work.layers.at(layer).kv_cache_bytes += ceil_div(cache.reserved[kind], layers.count);
    }
  }
}

}  // namespace

ModelWork model_work(const PlanQuestion& question, const HostRates& host) {
  const PlanQuery& query = question.query;
  const Load& load = question.load;
  const ModelSpec spec = converted(question.model.spec, query.weights);
  const Graph prompt = with_last_token_head(
      build_stored_graph(spec, default_options(spec, Phase::prefill, query.attention)));
  const Graph decode = build_stored_graph(spec, {Phase::decode, query.attention});
  const BothRates rates{place_rates(question.rates), place_rates(host)};
  Workload step = workload_of(query, Phase::decode);
  step.batch_size = load.batch_size;
  step.seq_len = 1;
  step.past_len = load.seq_len - 1;
  Workload prefill = workload_of(query, Phase::prefill);
  prefill.seq_len = load.seq_len;

  ModelWork work;
  work.layers.resize(static_cast<std::size_t>(layers_of(prompt).main));
  place_weights(prompt, work);
  place_cache(spec, decode, step, query.kv_cache, work);
  add_pass(decode, step, rates, &PartWork::decode, work);
  add_pass(prompt, prefill, rates, &PartWork::prompt, work);
  work.hidden_bytes = Integer{spec.hidden_size} * headroom::bytes_of(query.dtype);
  work.has_experts = std::ranges::any_of(
      work.layers, [](const LayerWork& layer) { return layer.experts.weight_bytes > 0; });
  return work;
}

}  // namespace headroom::detail
