#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "attention_ops.h"
#include "headroom/analysis.h"
#include "headroom/error.h"
#include "headroom/predict.h"
#include "headroom/storage.h"
#include "operator_time.h"
#include "rank_graph.h"
#include "row_policy.h"
#include "setting_format.h"
#include "stored_reading.h"

namespace headroom {
namespace {

using detail::StepTime;

/// Each sequential step of a recurrence rereads the state's weights.
double bytes_read_again(const Node& node, const NodeAnalysis& cost, const Bindings& sizes,
                        double layers) {
  const auto* const recurrence = std::get_if<Recurrence>(&node.op);
  if (recurrence == nullptr) return 0;
  const Expr again = (recurrence->seq_len - Integer{1}) * cost.weight_bytes;
  return static_cast<double>(again.evaluate(sizes)) / layers;
}

/// The engine of measured curves; headroom for a datasheet.
MeasuredEngine engine_of(const MachineProfile& machine) {
  const auto* const measured = std::get_if<MeasuredRates>(&machine.rates);
  return measured == nullptr ? MeasuredEngine::headroom : measured->engine;
}

bool runs_behind_host(const MachineProfile& machine) {
  const auto* const measured = std::get_if<MeasuredRates>(&machine.rates);
  return measured != nullptr && measured->device && measured->device->runs_behind_host;
}

/// Throws the error that PyTorch's curves are of one type, that of the activations.
[[noreturn]] void throw_other_type(const MachineProfile& machine, std::string_view what,
                                   std::string_view type, const std::string& mend) {
  throw Error(
      ErrorCode::invalid_input,
      fmt::format("{} was measured with {} in the type of the activations, not {}", machine.name,
                  what, type),
      {}, fmt::format("{}, or choose a datasheet such as {} h100-80gb", mend, Setting::machine));
}

void require_one_type(const MachineProfile& machine, const ModelSpec& spec,
                      const Workload& workload) {
  if (engine_of(machine) != MeasuredEngine::pytorch) return;
  const std::string_view type = name_of(workload.dtype);
  const auto leave_out = [](Setting setting) { return fmt::format("leave out {}", setting); };
  const bool is_converted = workload.weights && name_of(*workload.weights) == type;
  if (workload.weights && !is_converted) {
    throw_other_type(machine, "weights", name_of(*workload.weights), leave_out(Setting::weights));
  }
  if (!is_converted && !spec.storage.origin.empty()) {
    throw_other_type(machine, "weights", fmt::format("packed ({})", spec.storage.origin),
                     fmt::format("add {} {}", Setting::weights, type));
  }
  if (workload.arithmetic_type() != workload.dtype) {
    throw_other_type(machine, "arithmetic", name_of(workload.arithmetic_type()),
                     leave_out(Setting::arithmetic));
  }
  if (workload.kv_dtype != workload.dtype) {
    throw_other_type(machine, "a KV-cache", name_of(workload.kv_dtype),
                     leave_out(Setting::kv_dtype));
  }
}

/// The calibration's share of the machine; other programs used the rest.
double own_share(const MachineContext& calibration) {
  if (!calibration.other_programs_cpus || calibration.logical_cpus == 0) return 1;
  return 1 - *calibration.other_programs_cpus / calibration.logical_cpus;
}

/// The time of an operator or of a step under `drift`: its part in cache scales with compute.
template <class Time>
double time_with(const Time& one, const Drift& drift) {
  const double cached = std::min(one.cached_s, one.time_s);
  return cached * drift.compute + (one.time_s - cached) * drift.memory;
}

StepTime slowed(StepTime step, const Drift& drift) {
  if (step.time_s <= 0) return step;
  const double time = time_with(step, drift);
  const double factor = time / step.time_s;
  step.cached_s = std::min(step.cached_s, step.time_s) * drift.compute;
  step.time_s = time;
  step.low_s *= factor;
  step.high_s *= factor;
  return step;
}

/// Sums operator times over passes, of the whole model or of one rank's part.
class Pass {
 public:
  Pass(const ModelSpec& spec, const MachineProfile& machine, const TimeRequest& request,
       const RankPart* part = nullptr)
      : spec_(spec),
        machine_(machine),
        request_(request),
        part_(part),
        profile_(nullptr),
        engine_(engine_of(machine)),
        own_share_(own_share(machine.context)) {}

  /// Adds `times` passes of `workload`.
  void add(const Workload& workload, double times) {
    require_one_type(machine_, spec_, workload);
    profile_ = curves_of(machine_, request_.threads, workload.dtype);
    dtype_ = workload.arithmetic_type();
    activation_type_ = workload.dtype;
    if (profile_ == nullptr) set_rates(workload);
    ++passes_;
    const Graph plain = build_graph(spec_, graph_options(workload));
    // Several processes read plain weights.
    const bool may_be_stored = own_kernels() && part_ == nullptr;
    const auto stored =
        may_be_stored ? detail::stored_reading(spec_, plain, workload) : std::nullopt;
    const bool counts_stored = stored || profile_ == nullptr;
    const Graph graph = detail::graph_of(
        counts_stored ? build_stored_graph(spec_, graph_options(workload)) : plain, part_);
    const Analysis analysis = analyze(graph);
    const Bindings sizes = sizes_of(workload, graph);
    const detail::MachineState state{
        static_cast<double>(weight_bytes(graph, sizes, workload)),
        static_cast<double>(std::max<std::int64_t>(1, machine_.last_level_cache_bytes)),
        runs_behind_host(machine_)};
    std::size_t next = 0;
    for (const Block& block : graph.blocks) {
      const auto layers = static_cast<double>(block.repeat.evaluate(sizes));
      for (const Node& node : block.nodes) {
        const NodeAnalysis& cost = analysis.nodes.at(next++);
        if (const auto* const collective = std::get_if<Collective>(&node.op)) {
          communication_s_ += times * layers * collective_seconds(*collective, sizes);
          continue;
        }
        const StepTime step =
            step_time({graph, block, node}, cost, sizes, {workload, layers, state, stored});
        store(block.path + "." + node.path, step, layers * times);
      }
    }
  }

  [[nodiscard]] double total() const {
    double total = 0;
    for (const OperatorTime& one : operators_) total += one.time_s;
    return total;
  }

  [[nodiscard]] double communication() const { return communication_s_; }

  [[nodiscard]] TimePrediction finish() && {
    TimePrediction prediction;
    prediction.machine = machine_.name;
    prediction.basis = profile_ == nullptr ? TimeBasis::assumed : TimeBasis::modelled;
    prediction.threads = profile_ == nullptr ? 0 : profile_->threads;
    if (profile_ == nullptr) add_rates(prediction);
    double roofline = 0;
    for (const OperatorTime& one : operators_) {
      prediction.total_s += one.time_s;
      prediction.low_s += one.low_s;
      prediction.high_s += one.high_s;
      roofline += one.roofline_share * one.time_s;
    }
    prediction.first_bound = largest(first_by_bound_);
    if (passes_ > 1) prediction.decode_bound = largest(decode_by_bound_);
    ByBound all = first_by_bound_;
    for (std::size_t i = 0; i < all.size(); ++i) all[i] += decode_by_bound_[i];
    prediction.bound = largest(all);
    prediction.roofline_share = roofline / prediction.total_s;
    prediction.operators = std::move(operators_);
    return prediction;
  }

 private:
  using ByBound = std::array<double, 4>;  ///< seconds by Bound

  /// Those of the datasheet, for operators in either type.
  void set_rates(const Workload& workload) {
    const auto& sheet = std::get<DatasheetRates>(machine_.rates);
    const auto llama_cpp = detail::llama_cpp_efficiency_of(sheet, spec_, workload, request_.engine);
    is_llama_cpp_ = llama_cpp.has_value();
    rates_ = detail::reached_rates(sheet, activation_type_, llama_cpp);
    layer_gemm_rates_ = detail::reached_rates(sheet, dtype_, llama_cpp);
  }

  void add_rates(TimePrediction& prediction) const {
    const auto& sheet = std::get<DatasheetRates>(machine_.rates);
    prediction.efficiency = layer_gemm_rates_.reached;
    prediction.efficiency_source = is_llama_cpp_
                                       ? std::string(layer_gemm_rates_.reached.source)
                                       : efficiency_source_of(sheet, Purpose::serve, dtype_);
    prediction.kernel_s = rates_.rates.kernel_s;
    prediction.layer_gemm_kernel_s = layer_gemm_rates_.rates.kernel_s;
    if (dtype_ != activation_type_) prediction.layer_gemm_type = dtype_;
  }

  static Bound largest(const ByBound& seconds) {
    return static_cast<Bound>(std::ranges::max_element(seconds) - seconds.begin());
  }

  /// Weights as the engine stores them.
  [[nodiscard]] Integer weight_bytes(const Graph& graph, const Bindings& sizes,
                                     const Workload& workload) const {
    if (own_kernels()) {
      TimeRequest own = request_;
      own.computes_in_float32 = true;
      return detail::held_weight_bytes(spec_, workload, own, part_);
    }
    Integer elements = 0;
    for (const Weight& weight : graph.weights) {
      elements = checked_add(elements, (weight.repeat * weight.elements()).evaluate(sizes));
    }
    return checked_multiply(elements, bytes_of(workload.dtype));
  }

  [[nodiscard]] bool own_kernels() const {
    return profile_ != nullptr && engine_ == MeasuredEngine::headroom;
  }

  /// Headroom's own kernels compute in float32.
  [[nodiscard]] Bindings sizes_of(const Workload& workload, const Graph& graph) const {
    if (!own_kernels()) return detail::bindings_of_part(workload, graph, part_);
    Workload run = workload;
    run.dtype = run.kv_dtype = DType::float32;
    Bindings sizes = detail::bindings_of_part(run, graph, part_);
    if (has_narrow_weights(workload)) sizes.set(Symbol::weight_bytes, bytes_of(DType::bfloat16));
    return sizes;
  }

  [[nodiscard]] double collective_seconds(const Collective& op, const Bindings& sizes) const {
    if (part_ == nullptr) {
      throw Error(ErrorCode::internal, "the graph of a whole model has no collectives");
    }
    if (op.forward == CollectiveKind::none) return 0;
    return part_->collective_s(op, static_cast<double>(op.bytes.evaluate(sizes)));
  }

  /// A pass of the model.
  struct PassState {
    const Workload& workload;
    double layers = 1;  ///< of the node's block
    const detail::MachineState& machine;
    const std::optional<detail::StoredReading>& stored;
  };

  [[nodiscard]] StepTime step_time(const detail::NodePlace& place, const NodeAnalysis& cost,
                                   const Bindings& sizes, const PassState& pass) const {
    const auto& [workload, layers, state, stored] = pass;
    const auto number = [&](const Expr& expr) {
      return static_cast<double>(expr.evaluate(sizes)) / pass.layers;
    };
    const Cost& forward = cost.cost.forward;
    detail::StepWork work{number(forward.matrix_flops), number(forward.elementwise_flops),
                          number(forward.bytes_read) + number(forward.bytes_written)};
    if (profile_ == nullptr) {
      work.gemm = detail::gemm_sizes(place.node.op, sizes);
      work.bytes += bytes_read_again(place.node, cost, sizes, layers);
      work.reads_weights = !cost.weights_read.empty();
      work.attends = detail::attends(place.node.op);
      const bool low = is_layer_gemm(place.block, place.node);
      return detail::assumed_time(low ? layer_gemm_rates_ : rates_, work);
    }
    std::vector<detail::KernelCall> calls =
        detail::kernel_calls(place, sizes, linear_policy(workload));
    if (stored) calls = stored->stored_calls(place, calls, *profile_);
    return slowed(detail::measured_time(*profile_, calls, work, state, own_share_),
                  usual_drift(*profile_));
  }

  /// PyTorch has one layout of weights for any number of rows.
  [[nodiscard]] detail::LinearPolicy linear_policy(const Workload& workload) const {
    if (engine_ == MeasuredEngine::pytorch) {
      const detail::RowPolicy one{.few = false, .many = true};
      return {one, one, false, engine_};
    }
    return {detail::row_policy(workload, request_), detail::head_row_policy(workload, request_),
            has_narrow_weights(workload), engine_};
  }

  void store(std::string path, const StepTime& step, double times) {
    const Bound bound = detail::bound_of(step);
    auto found = std::ranges::find(operators_, path, &OperatorTime::path);
    if (found == operators_.end()) {
      found = operators_.insert(found, {.path = std::move(path), .bound = bound});
    }
    if (passes_ > 1) found->decode_bound = bound;
    ByBound& by_bound = passes_ > 1 ? decode_by_bound_ : first_by_bound_;
    by_bound[static_cast<std::size_t>(bound)] += times * step.time_s;
    const double roofline =
        found->roofline_share * found->time_s + times * std::max(step.compute_s, step.memory_s);
    found->time_s += times * step.time_s;
    found->roofline_share = found->time_s > 0 ? roofline / found->time_s : 0;
    found->cached_s += times * step.cached_s;
    found->low_s += times * step.low_s;
    found->high_s += times * step.high_s;
  }

  const ModelSpec& spec_;
  const MachineProfile& machine_;
  TimeRequest request_;
  const RankPart* part_;          ///< null: the whole model
  const ThreadProfile* profile_;  ///< null: a datasheet
  MeasuredEngine engine_;
  double own_share_;
  DType dtype_ = DType::float32;  ///< of the passes' GEMMs
  DType activation_type_ = DType::float32;
  detail::ReachedRates rates_;             ///< of a datasheet, in the activations' type
  detail::ReachedRates layer_gemm_rates_;  ///< likewise, in `dtype_`
  bool is_llama_cpp_ = false;              ///< both are llama.cpp's
  int passes_ = 0;                         ///< kinds of passes added: the first, then decode steps
  ByBound first_by_bound_{};
  ByBound decode_by_bound_{};
  std::vector<OperatorTime> operators_;
  double communication_s_ = 0;
};

/// The middle decode step of a generation, which has the average cost: costs are linear in the
/// keys.
Workload middle_step(const Workload& prompt, std::int64_t new_tokens) {
  return decode_step(prompt, 1 + (new_tokens - 2) / 2);
}

}  // namespace

Phase first_pass(MeasuredPhase phase) noexcept {
  return phase == MeasuredPhase::decode ? Phase::decode : Phase::prefill;
}

void require_generates(const ModelSpec& spec) {
  if (can_generate(spec)) return;
  throw Error(ErrorCode::invalid_input,
              fmt::format("{} is not a decoder with a language-model head, so it cannot generate",
                          spec.name),
              {}, "leave out the generation, or use a decoder, such as gpt2");
}

namespace {

RankTime predict_part(const ModelSpec& spec, const Workload& workload,
                      const MachineProfile& machine, const TimeRequest& request,
                      const RankPart* part) {
  if (workload.phase == Phase::train) {
    throw Error(
        ErrorCode::invalid_input, "the time of a training step is not predicted", {},
        fmt::format("use {} prefill or decode, or leave out {}", Setting::phase, Setting::machine));
  }
  if (request.phase == MeasuredPhase::generate) require_generates(spec);
  Pass pass(spec, machine, request, part);
  pass.add(workload, 1);
  const double first_communication_s = pass.communication();
  std::optional<double> ttft;
  std::optional<double> tpot;
  const auto sequences = static_cast<double>(workload.batch_size);
  double tokens = sequences * static_cast<double>(workload.seq_len);
  if (request.phase == MeasuredPhase::generate) {
    ttft = pass.total();
    const auto steps = static_cast<double>(request.new_tokens - 1);
    if (request.new_tokens > 1) {
      pass.add(middle_step(workload, request.new_tokens), steps);
      tpot = (pass.total() - *ttft) / steps;
    }
    tokens = sequences * static_cast<double>(request.new_tokens);
  }
  const double communication_s = pass.communication();
  TimePrediction prediction = std::move(pass).finish();
  prediction.ttft_s = ttft;
  prediction.tpot_s = tpot;
  prediction.tokens_per_s = tokens / prediction.total_s;
  return {std::move(prediction), communication_s, first_communication_s};
}

}  // namespace

TimePrediction predict_time(const ModelSpec& spec, const Workload& workload,
                            const MachineProfile& machine, const TimeRequest& request) {
  return predict_part(spec, workload, machine, request, nullptr).computation;
}

RankTime predict_rank_time(const ModelSpec& spec, const Workload& workload,
                           const MachineProfile& machine, const TimeRequest& request,
                           const RankPart& part) {
  if (!has_own_kernels(machine)) {
    throw Error(ErrorCode::invalid_input,
                "ranks are predicted by curves of headroom's kernels, which this machine lacks", {},
                "calibrate this machine");
  }
  return predict_part(spec, workload, machine, request, &part);
}

double total_with(const TimePrediction& prediction, const Drift& drift) {
  double total = 0;
  for (const OperatorTime& one : prediction.operators) {
    total += time_with(one, drift);
  }
  return total;
}

TimePrediction with_drift(TimePrediction prediction, const Drift& drift, double total_s) {
  const double before = prediction.total_s;
  const double rest = total_s / total_with(prediction, drift);
  prediction.total_s = prediction.low_s = prediction.high_s = 0;
  for (OperatorTime& one : prediction.operators) {
    const double factor = rest * time_with(one, drift) / one.time_s;
    one.time_s *= factor;
    one.low_s *= factor;
    one.high_s *= factor;
    prediction.total_s += one.time_s;
    prediction.low_s += one.low_s;
    prediction.high_s += one.high_s;
  }
  const double factor = prediction.total_s / before;
  prediction.tokens_per_s /= factor;
  if (prediction.ttft_s) *prediction.ttft_s *= factor;
  if (prediction.tpot_s) *prediction.tpot_s *= factor;
  return prediction;
}

}  // namespace headroom
