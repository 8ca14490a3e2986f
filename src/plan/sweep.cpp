#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <utility>

#include "attention_ops.h"
#include "default_options.h"
#include "gemm_tiles.h"
#include "headroom/analysis.h"
#include "headroom/error.h"
#include "headroom/predict.h"
#include "headroom/report.h"
#include "headroom/storage.h"
#include "reached_rates.h"
#include "setting_format.h"

namespace headroom {
namespace {

/// f(b) = constant + slope·b: a formula in the batch size b with values for all other symbols.
struct Affine {
  Integer constant = 0;
  Integer slope = 0;
  [[nodiscard]] Integer at(std::int64_t batch) const {
    return checked_add(constant, checked_multiply(slope, batch));
  }
};

/// Affine in floating point, for times.
struct AffineReal {
  double constant = 0;
  double slope = 0;
  [[nodiscard]] double at(double batch) const { return constant + slope * batch; }
};

/// A compiled formula of degree at most 1 in the batch size.
class BatchFormula {
 public:
  BatchFormula(const Expr& expr, const Bindings& sizes) : compiled_(expr, sizes) {
    if (expr.degree(Symbol::batch_size) > 1) {
      throw Error(ErrorCode::internal, "a figure is not linear in the batch: " + format(expr));
    }
  }

  [[nodiscard]] Affine with(SymbolValues& values) const {
    values.set(Symbol::batch_size, 0);
    const Integer constant = compiled_.evaluate(values);
    values.set(Symbol::batch_size, 1);
    return {constant, checked_add(compiled_.evaluate(values), -constant)};
  }

  [[nodiscard]] AffineReal real_with(SymbolValues& values) const {
    const Affine exact = with(values);
    return {static_cast<double>(exact.constant), static_cast<double>(exact.slope)};
  }

 private:
  CompiledExpr compiled_;
};

/// Sizes of a GEMM by batch, and the processors that its tiles divide between.
struct GemmOfBatch {
  AffineReal rows;
  AffineReal in_features;
  AffineReal out_features;
  AffineReal count;
  std::int64_t processors = 0;

  [[nodiscard]] double tiled_share(double batch) const {
    return detail::tiled_share(
        {rows.at(batch), in_features.at(batch), out_features.at(batch), count.at(batch)},
        processors);
  }
};

/// As detail::GemmExprs.
class GemmFormulas {
 public:
  GemmFormulas(const detail::GemmExprs& gemm, const Bindings& sizes)
      : rows_(gemm.rows, sizes),
        in_features_(gemm.in_features, sizes),
        out_features_(gemm.out_features, sizes),
        count_(gemm.count, sizes) {}

  [[nodiscard]] GemmOfBatch with(SymbolValues& values, std::int64_t processors) const {
    return {rows_.real_with(values), in_features_.real_with(values),
            out_features_.real_with(values), count_.real_with(values), processors};
  }

 private:
  BatchFormula rows_;
  BatchFormula in_features_;
  BatchFormula out_features_;
  BatchFormula count_;
};

/// The compiled figures of a graph.
class SweepProgram {
 public:
  SweepProgram(const ModelSpec& spec, const GraphOptions& options, const AnalysisOptions& counting)
      : SweepProgram(build_stored_graph(spec, options), counting) {}

  [[nodiscard]] const Graph& graph() const { return graph_; }

  /// False with routed experts: the number of experts read is not affine in the batch size.
  [[nodiscard]] bool is_affine_in_batch() const { return traits_.num_experts == 0; }

  void start(const Workload& workload) {
    values_ = values_of(workload, traits_);
    for (std::size_t i = 0; i < kFigures; ++i) figures_[i] = formulas_[i].with(values_);
    peaks_.clear();
    for (const BatchFormula& peak : live_) peaks_.push_back(peak.with(values_));
    steps_.clear();
  }

  /// Takes the bytes of `cache`, one sequence's, where the graph's polynomials do not count them.
  void set_kv_cache(const KvCacheUse& cache) {
    if (!has_plain_values(cache)) figures_[kCache] = {0, cache.used_bytes};
  }

  /// Makes fill() compute times at these rates.
  void start_times(const detail::ReachedRates& others, const detail::ReachedRates& layer_gemms) {
    for (const NodeFormulas& node : nodes_) {
      const detail::ReachedRates& reached = node.layer_gemm ? layer_gemms : others;
      const EffectiveRates& rates = reached.rates;
      AffineReal compute = node.flops.real_with(values_);
      AffineReal memory = node.bytes.real_with(values_);
      compute = {compute.constant / rates.flops_per_s, compute.slope / rates.flops_per_s};
      const double bytes_per_s = node.attends ? rates.cache_bytes_per_s : rates.bytes_per_s;
      memory = {memory.constant / bytes_per_s, memory.slope / bytes_per_s};
      const bool tiled = node.gemm && rates.processors > 0;
      steps_.push_back(
          {node.kernels * rates.kernel_s, compute, memory,
           tiled ? std::optional(node.gemm->with(values_, rates.processors)) : std::nullopt,
           reached.reached.range, rates.flops_per_s / rates.peak_flops_per_s,
           bytes_per_s / reached.memory_bytes_per_s});
    }
  }

  void fill(SweepRow& row) const {
    const std::int64_t batch = row.workload.batch_size;
    row.weight_bytes = figures_[kWeights].at(batch);
    row.matrix_flops = figures_[kMatrix].at(batch);
    row.elementwise_flops = figures_[kElementwise].at(batch);
    row.backward_matrix_flops = figures_[kBackward].at(batch);
    row.recompute_matrix_flops = figures_[kRecompute].at(batch);
    row.traffic_bytes = figures_[kTraffic].at(batch);
    row.kv_cache_bytes = figures_[kCache].at(batch);
    row.activation_bytes = figures_[kSaved].at(batch);
    for (const Affine& peak : peaks_) {
      row.activation_bytes = std::max(row.activation_bytes, peak.at(batch));
    }
    if (!steps_.empty()) fill_times(row);
  }

 private:
  /// As detail::assumed_time(), operator by operator.
  void fill_times(SweepRow& row) const {
    double seconds = 0;
    double low_s = 0;
    double high_s = 0;
    const auto batch = static_cast<double>(row.workload.batch_size);
    for (const Step& step : steps_) {
      const double share = step.gemm ? step.gemm->tiled_share(batch) : 1;
      const double arithmetic_s = share * step.compute.at(batch);
      const double memory_s = step.memory.at(batch);
      const double step_s = step.fixed_s + std::max(arithmetic_s, memory_s);
      const double bound_s = arithmetic_s > memory_s ? arithmetic_s : 0;
      const double factor = 1 + (step_s > 0 ? step.range.of(bound_s / step_s) : 0);
      seconds += step_s;
      low_s += std::max(step_s / factor, std::min(step_s, step.roofline_s(batch)));
      high_s += step_s * factor;
    }
    row.time_s = seconds;
    row.time_low_s = low_s;
    row.time_high_s = high_s;
  }

  enum Figure : std::size_t {
    kWeights,
    kMatrix,
    kElementwise,
    kBackward,
    kRecompute,
    kTraffic,
    kCache,
    kSaved,
    kFigures
  };
  struct NodeFormulas {
    bool layer_gemm;
    bool attends;
    double kernels;  ///< layers in which it reads weights
    BatchFormula flops;
    BatchFormula bytes;
    std::optional<GemmFormulas> gemm;
  };
  struct Step {
    double fixed_s;
    AffineReal compute;
    AffineReal memory;
    std::optional<GemmOfBatch> gemm;
    TimeRanges range;
    double compute_fraction;  ///< of the datasheet's rates
    double memory_fraction;

    [[nodiscard]] double roofline_s(double batch) const {
      return std::max(compute_fraction * compute.at(batch), memory_fraction * memory.at(batch));
    }
  };

  static std::optional<GemmFormulas> formulas_of(const Op& op, const Bindings& sizes) {
    const auto gemm = detail::gemm_of(op);
    return gemm ? std::optional(GemmFormulas(*gemm, sizes)) : std::nullopt;
  }

  SweepProgram(Graph counted, const AnalysisOptions& counting)
      : graph_(std::move(counted)), traits_(graph_.traits) {
    const Graph& graph = graph_;
    const Analysis analysis = analyze(graph, counting);
    const Cost& forward = analysis.total.forward;
    const bool training = graph.options.phase == Phase::train;
    const Expr saved = training ? saved_bytes(analysis, counting.recompute) : Expr();
    for (const Expr& expr :
         {analysis.weight_bytes, forward.matrix_flops, forward.elementwise_flops,
          analysis.total.backward.matrix_flops, analysis.recompute.matrix_flops,
          forward.bytes_read + forward.bytes_written, kv_cache_bytes(analysis), saved}) {
      formulas_.emplace_back(expr, graph.sizes);
    }
    auto next = analysis.nodes.begin();
    for (const Block& block : graph.blocks) {
      for (const Node& node : block.nodes) {
        const NodeAnalysis& one = *next++;
        const Cost& cost = one.cost.forward;
        const double kernels =
            one.weights_read.empty() ? 0 : static_cast<double>(block.repeat.evaluate(graph.sizes));
        nodes_.push_back({is_layer_gemm(block, node), detail::attends(node.op), kernels,
                          BatchFormula(cost.matrix_flops, graph.sizes),
                          BatchFormula(cost.bytes_read + cost.bytes_written, graph.sizes),
                          formulas_of(node.op, graph.sizes)});
      }
    }
    if (training) return;
    std::vector<Expr> seen;
    for (const LiveBytes& live : analysis.live) {
      const Expr bytes = live.bytes.substitute(graph.sizes);
      if (std::ranges::find(seen, bytes) != seen.end()) continue;
      seen.push_back(bytes);
      live_.emplace_back(bytes, graph.sizes);
    }
  }

  Graph graph_;
  LayerTraits traits_;
  std::vector<BatchFormula> formulas_;  ///< by Figure
  std::vector<BatchFormula> live_;
  std::vector<NodeFormulas> nodes_;
  SymbolValues values_;
  std::array<Affine, kFigures> figures_;
  std::vector<Affine> peaks_;
  std::vector<Step> steps_;
};

/// The values of an axis; nullopt alone stands for the default.
template <class Value>
std::vector<std::optional<Value>> axis(const std::vector<Value>& values) {
  if (values.empty()) return {std::nullopt};
  return {values.begin(), values.end()};
}

/// Number of images or clips, and the size of each.
template <class Size>
struct TowerChoice {
  std::int64_t count = 0;
  std::optional<Size> size;
};

/// The images or clips of the grid's rows. A row with a stated 0 of them has no size; sizes of a
/// grid that states no number are refused.
template <class Size>
std::vector<TowerChoice<Size>> tower_choices(const std::vector<std::int64_t>& counts,
                                             const std::vector<Size>& sizes) {
  std::vector<TowerChoice<Size>> choices;
  for (const auto& count : axis(counts)) {
    for (const auto& size : axis(sizes)) {
      choices.push_back({count.value_or(0), size});
      if (count != 0) continue;
      choices.back().size.reset();
      break;
    }
  }
  return choices;
}

class Sweep {
 public:
  Sweep(const ModelSpec& spec, const SweepGrid& grid, const std::optional<MachineProfile>& machine,
        const SweepSink& sink)
      : stored_spec_(spec), spec_(spec), grid_(grid), machine_(machine), sink_(sink) {
    if (machine && grid.phase == Phase::train) {
      throw_invalid_input("a sweep does not predict the time of training steps",
                          fmt::format("leave out {}, or fit a plan with {} train", Setting::machine,
                                      Setting::phase));
    }
  }

  void run() {
    for (const auto& images : tower_choices(grid_.images, grid_.image_size)) {
      request_.images = images.count;
      request_.image_size = images.size;
      for (const auto& audio : tower_choices(grid_.audio, grid_.audio_seconds)) {
        request_.audio = audio.count;
        request_.audio_seconds = audio.size;
        if (!run_programs()) return;
      }
    }
  }

 private:
  bool run_programs() {
    for (const auto& attention : axis(grid_.attention)) {
      for (const auto& recompute : axis(grid_.recompute)) {
        request_.phase = grid_.phase;
        request_.kernels = grid_.kernels;
        request_.attention = attention.value_or(AttentionImplementation::eager);
        request_.recompute = recompute.value_or(WorkloadRequest{}.recompute);
        AnalysisOptions counting;
        counting.recompute = request_.recompute;
        counting.kernels = request_.kernels;
        for (const auto& weights : axis(grid_.weights)) {
          request_.weights = weights;
          spec_ = converted(stored_spec_, weights);
          GraphOptions options =
              detail::default_options(spec_, request_.phase, *request_.attention);
          if (request_.images > 0) options.images = ImageInputs::present;
          if (request_.audio > 0) options.audio = AudioInputs::present;
          SweepProgram program(spec_, options, counting);
          if (!run_types(program)) return false;
        }
      }
    }
    return true;
  }

  bool run_types(SweepProgram& program) {
    for (const auto& dtype : axis(grid_.dtype)) {
      request_.dtype = dtype;
      for (const auto& arithmetic : axis(grid_.arithmetic)) {
        request_.arithmetic = arithmetic;
        for (const auto& kv_types : axis(grid_.kv_types)) {
          kv_cache_ = {};
          if (kv_types) set_types(kv_cache_, *kv_types);
          request_.kv_dtype.reset();
          request_.kv_dtype = counted_type(kv_cache_, resolve(request_, stored_spec_).dtype);
          if (!run_lengths(program)) return false;
        }
      }
    }
    return true;
  }

  bool run_lengths(SweepProgram& program) {
    for (const auto& enc_seq_len : axis(grid_.enc_seq_len)) {
      request_.enc_seq_len = enc_seq_len;
      for (const auto& past_len : axis(grid_.past_len)) {
        request_.past_len = past_len;
        for (const auto& seq_len : axis(grid_.seq_len)) {
          request_.seq_len = seq_len;
          if (!run_batches(program)) return false;
        }
      }
    }
    return true;
  }

  bool run_batches(SweepProgram& program) {
    SweepRow row;
    if (!grid_.batch_size.empty()) request_.batch_size = std::ranges::min(grid_.batch_size);
    row.workload = resolve(request_, stored_spec_);
    const DatasheetRates* const sheet =
        machine_ ? std::get_if<DatasheetRates>(&machine_->rates) : nullptr;
    const auto start = [&] {
      program.start(row.workload);
      set_kv_cache(program, row);
      if (sheet != nullptr) start_times(*sheet, row.workload, program);
    };
    start();
    for (const auto& batch : axis(grid_.batch_size)) {
      request_.batch_size = batch.value_or(WorkloadRequest{}.batch_size);
      row.workload.batch_size = request_.batch_size;
      const bool has_towers = request_.images > 0 || request_.audio > 0;
      if (has_towers) row.workload = resolve(request_, stored_spec_);
      if (has_towers || !program.is_affine_in_batch()) start();
      program.fill(row);
      if (machine_ && sheet == nullptr) {
        const TimePrediction time = predict_time(spec_, row.workload, *machine_, {});
        row.time_s = time.total_s;
        row.time_low_s = time.low_s;
        row.time_high_s = time.high_s;
      }
      if (!sink_(row)) return false;
    }
    return true;
  }

  void start_times(const DatasheetRates& sheet, const Workload& workload,
                   SweepProgram& program) const {
    const auto llama_cpp = detail::llama_cpp_efficiency_of(sheet, spec_, workload);
    program.start_times(detail::reached_rates(sheet, workload.dtype, llama_cpp),
                        detail::reached_rates(sheet, workload.arithmetic_type(), llama_cpp));
  }

  /// Fills in the row's types and the bytes that they take.
  void set_kv_cache(SweepProgram& program, SweepRow& row) const {
    if (row.workload.phase == Phase::train) return;
    Workload one_sequence = row.workload;
    one_sequence.batch_size = 1;
    const auto cache = kv_cache_use(spec_, program.graph(), one_sequence, kv_cache_);
    if (!cache) return;
    row.key_type = cache->key_type;
    row.value_type = cache->value_type;
    program.set_kv_cache(*cache);
  }

  const ModelSpec& stored_spec_;
  ModelSpec spec_;  ///< with the weights of the current rows
  const SweepGrid& grid_;
  const std::optional<MachineProfile>& machine_;
  const SweepSink& sink_;
  WorkloadRequest request_;
  KvCacheRequest kv_cache_;  ///< types only
};

}  // namespace

Integer size_of(const SweepGrid& grid) {
  Integer size = 1;
  for (const std::size_t values :
       {tower_choices(grid.images, grid.image_size).size(),
        tower_choices(grid.audio, grid.audio_seconds).size(), grid.attention.size(),
        grid.recompute.size(), grid.weights.size(), grid.dtype.size(), grid.arithmetic.size(),
        grid.kv_types.size(), grid.enc_seq_len.size(), grid.past_len.size(), grid.seq_len.size(),
        grid.batch_size.size()}) {
    size = checked_multiply(size, static_cast<Integer>(std::max<std::size_t>(1, values)));
  }
  return size;
}

void sweep(const ModelSpec& spec, const SweepGrid& grid,
           const std::optional<MachineProfile>& machine, const SweepSink& sink) {
  Sweep(spec, grid, machine, sink).run();
}

}  // namespace headroom
