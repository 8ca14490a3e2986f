// Predicts and measures a plan on the processes that mpirun started, and compares.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "calibrate/drift_watch.h"
#include "collective_calibration.h"
#include "compare_command.h"
#include "headroom/error.h"
#include "interruption.h"
#include "own_machine.h"
#include "rank_runs.h"
#include "replicas.h"
#include "run_options.h"
#include "user_settings.h"
#include "with_noun.h"

namespace headroom::cli {
namespace {

using nlohmann::json;

/// A comparison whose model and machine are read, on one rank.
struct PreparedRanks {
  Model model;
  Workload workload;
  MachineProfile machine;
  measured::MeasureOptions run;
  distributed::Hosts hosts;
  std::vector<std::string> notes;
};

/// Predicted seconds of one rank for one micro-batch, and its counts of all, as ranks send them to
/// each other.
struct RankForecast {
  double computation_s = 0;
  double communication_s = 0;
  double ttft_s = 0;  ///< of a generation, with its communication
  RunFigures counts;
  DriftReport drift;

  [[nodiscard]] double total_s() const { return computation_s + communication_s; }
};

json to_json(const Drift& drift) { return {drift.compute, drift.memory}; }

Drift drift_of(const json& text) { return {text.at(0), text.at(1)}; }

json to_json(const RankForecast& forecast) {
  const RunFigures& counts = forecast.counts;
  const auto number = [](Integer value) { return static_cast<std::int64_t>(value); };
  return {{"seconds", {forecast.computation_s, forecast.communication_s, forecast.ttft_s}},
          {"counts",
           {number(counts.parameters), number(counts.matrix_flops), number(counts.weight_bytes),
            number(counts.kv_cache_bytes.value_or(0)), number(counts.peak_activation_bytes)}},
          {"drift", {to_json(forecast.drift.before), to_json(forecast.drift.after)}}};
}

RankForecast forecast_of(const json& text) {
  RankForecast forecast;
  const json& seconds = text.at("seconds");
  forecast.computation_s = seconds.at(0);
  forecast.communication_s = seconds.at(1);
  forecast.ttft_s = seconds.at(2);
  const json& counts = text.at("counts");
  const auto number = [&](std::size_t i) { return Integer{counts.at(i).get<std::int64_t>()}; };
  forecast.counts.parameters = number(0);
  forecast.counts.matrix_flops = number(1);
  forecast.counts.weight_bytes = number(2);
  forecast.counts.kv_cache_bytes = number(3);
  forecast.counts.peak_activation_bytes = number(4);
  forecast.drift = {drift_of(text.at("drift").at(0)), drift_of(text.at("drift").at(1))};
  return forecast;
}

/// The largest calibrated number of threads that gives every process of this host processors of its
/// own; 1 if there is none.
int threads_per_rank(const MachineProfile& machine, const distributed::Hosts& hosts) {
  const std::int64_t share = machine.context.logical_cpus / hosts.processes_here;
  int most = 1;
  for (const ThreadProfile& profile : std::get<MeasuredRates>(machine.rates).by_threads) {
    if (profile.threads <= share) most = std::max(most, profile.threads);
  }
  return most;
}

PreparedRanks prepare(const CompareCommand& command) {
  PreparedRanks prepared;
  prepared.run = command.run;
  fill_in_threads(prepared.run.threads);
  prepared.model = command.reading.load(command.model);
  const ModelSpec& spec = prepared.model.spec;
  prepared.notes = notes_on_config(spec);
  require_plain(command.request.weights);
  prepared.workload = workload_of_run(command.request, command.run.phase, spec);
  prepared.run.storage = storage_of(prepared.workload);
  measured::require_runnable(spec);
  require_plan_runs(command.plan, command.run, spec, prepared.workload);
  prepared.machine = own_machine(command.run.backend);
  return prepared;
}

/// Gives every rank the collectives that the first rank's profile has: they were stored there.
void share_collectives(RankRun& ranks, MachineProfile& machine) {
  const std::string own = ranks.reports() ? profile_to_json(machine) : std::string();
  const std::string first = ranks.processes().world().exchange(own).front();
  machine.collectives = profile_from_json(first, "the profile of rank 0").collectives;
}

/// The table of this collective. Throws Error{invalid_input} with the command that measures it.
const CollectiveTable& calibrated(const CollectiveRates& rates, CollectiveKind kind,
                                  const CollectiveGroups& groups) {
  try {
    return table_of(rates, kind, groups);
  } catch (const Error& error) {
    throw Error(
        error.code(), error.message(), error.where(),
        fmt::format("run `mpirun -n {} headroom calibrate --collectives`, on the same hosts",
                    groups.processes));
  }
}

/// Ranks of a group of a plan.
std::int64_t ranks_of(const ParallelPlan& plan, RankGroup group) {
  switch (group) {
    case RankGroup::tensor:
      return plan.tensor;
    case RankGroup::pipeline:
      return plan.pipeline;
    case RankGroup::expert:
      return plan.expert;
    case RankGroup::context:
      return plan.context;
    case RankGroup::data:
      break;
  }
  return plan.data;
}

/// This rank's part of the model. Throws Error{invalid_input} for a collective without a table.
RankPart part_of(const RankRun& ranks, const ParallelPlan& plan, const MachineProfile& machine,
                 std::int64_t hosts) {
  const CollectiveRates rates = machine.collectives.value_or(CollectiveRates{});
  const auto seconds = [rates, plan, hosts](const Collective& op, double bytes) {
    const std::int64_t group = ranks_of(plan, op.group);
    return seconds_of(calibrated(rates, op.forward, {plan.devices(), group, hosts}), bytes);
  };
  const auto bindings = [plan](const Workload& workload, const Graph& sharded) {
    ParallelPlan pass = plan;
    // A decode step has one token per sequence, which no rank can share.
    if (sharded.options.phase == Phase::decode) pass.sequence = SequenceParallel::off;
    Bindings values = rank_bindings(workload, sharded.traits, pass);
    for (const SymbolInfo& symbol : symbols()) {
      if (const auto size = sharded.sizes.get(symbol.symbol)) values.set(symbol.symbol, *size);
    }
    return values;
  };
  return {ranks.context().shard, bindings, seconds};
}

/// A measurement, and this rank's drift during its runs.
struct WatchedRanks {
  Measurement measurement;
  std::vector<Drift> drifts;
  DriftReport report;
};

/// All ranks read the machine's speed at the same time, as they run: what they take from each other
/// is part of the drift.
WatchedRanks run_watched(const PreparedRanks& prepared, RankRun& ranks) {
  measured::Coordinator& world = ranks.processes().world();
  const ThreadProfile& curves = *curves_of(prepared.machine, prepared.run.threads);
  measured::DriftWatch watch(curves, prepared.run.backend);
  measured::MeasureOptions options = prepared.run;
  options.rank = &ranks.context();
  const auto observer = [&](int /*done*/, int /*at_most*/) {
    watch.count_run();
    std::int64_t due = watch.is_due() ? 1 : 0;
    world.broadcast({&due, 1}, 0);
    if (due == 1) {
      world.barrier();
      watch.read();
    }
    return true;
  };
  const auto source = measured::random_weights(options.seed);
  WatchedRanks run;
  run.measurement = measured::measure(prepared.model, prepared.workload, *source, std::nullopt,
                                      options, observer);
  world.barrier();
  run.drifts = watch.finish();
  run.report = {watch.first(), watch.last()};
  return run;
}

/// The counts of a run from those of one micro-batch: all run on the same weights, in one arena.
RunFigures of_all(RunFigures counts, std::int64_t micro_batches) {
  counts.matrix_flops = checked_multiply(counts.matrix_flops, micro_batches);
  if (counts.kv_cache_bytes) {
    counts.kv_cache_bytes = checked_multiply(*counts.kv_cache_bytes, micro_batches);
  }
  return counts;
}

RankForecast forecast_of(const PreparedRanks& prepared, const RankTime& time,
                         const RunFigures& counts, const WatchedRanks& watched) {
  const TimePrediction corrected =
      corrected_for_drift(time.computation, watched.measurement.time.samples_s, watched.drifts);
  RankForecast forecast;
  forecast.computation_s = corrected.total_s;
  forecast.communication_s = time.communication_s;
  if (prepared.run.phase == MeasuredPhase::generate) {
    forecast.ttft_s = corrected.ttft_s.value() + time.ttft_communication_s;
  }
  forecast.counts = counts;
  forecast.drift = watched.report;
  return forecast;
}

/// The whole run by the forecasts of its ranks. Ranks of a stage wait for the slowest of them. A
/// micro-batch goes through the stages one after the other, and the next one follows as soon as the
/// slowest stage is free.
class PlanForecast {
 public:
  PlanForecast(std::vector<RankForecast> ranks, const RanksMeasurement& measured,
               std::int64_t micro_batches)
      : ranks_(std::move(ranks)), measured_(measured), micro_batches_(micro_batches) {
    for (std::size_t i = 0; i < ranks_.size(); ++i) {
      double& stage = stages_[measured_.ranks[i].stage];
      stage = std::max(stage, ranks_[i].total_s());
      double& ttft = ttft_[measured_.ranks[i].stage];
      ttft = std::max(ttft, ranks_[i].ttft_s);
    }
  }

  [[nodiscard]] double total_s() const { return end_of(stages_, std::ssize(stages_) - 1); }
  [[nodiscard]] double ttft_s() const { return end_of(ttft_, std::ssize(ttft_) - 1); }

  [[nodiscard]] ComparedRanks compared(MeasuredPhase phase) const {
    ComparedRanks compared{measured_.plan, {}};
    for (std::size_t i = 0; i < ranks_.size(); ++i) {
      const RankMeasurement& rank = measured_.ranks[i];
      const double end = end_of(stages_, rank.stage);
      const double computation = static_cast<double>(micro_batches_) * ranks_[i].computation_s;
      // The last stage sends the tokens of a generation to all.
      const double whole = phase == MeasuredPhase::generate ? total_s() : end;
      compared.ranks.push_back({rank.rank, rank.stage, rank.tensor_rank, whole, end - computation,
                                rank.time_s, rank.communication_s});
    }
    return compared;
  }

  /// Counts of all ranks together; the peak of the one that has most.
  [[nodiscard]] ComparedRun run(const ComparedRun& measured, MeasuredPhase phase,
                                std::int64_t new_tokens) const {
    ComparedRun side;
    side.identity = measured.identity;
    RunFigures sum;
    Integer cache = 0;
    for (const RankForecast& rank : ranks_) {
      sum.parameters += rank.counts.parameters;
      sum.matrix_flops += rank.counts.matrix_flops;
      sum.weight_bytes += rank.counts.weight_bytes;
      cache += rank.counts.kv_cache_bytes.value_or(0);
      sum.peak_activation_bytes =
          std::max(sum.peak_activation_bytes, rank.counts.peak_activation_bytes);
    }
    auto& amounts = side.amounts;
    amounts[Quantity::parameters] = sum.parameters;
    amounts[Quantity::matrix_flops] = sum.matrix_flops;
    amounts[Quantity::weight_bytes] = sum.weight_bytes;
    amounts[Quantity::peak_activation_bytes] = sum.peak_activation_bytes;
    if (cache > 0) amounts[Quantity::kv_cache_bytes] = cache;
    amounts[Quantity::time_s] = total_s();
    if (phase != MeasuredPhase::generate) return side;
    amounts[Quantity::ttft_s] = ttft_s();
    if (new_tokens > 1) {
      amounts[Quantity::tpot_s] = (total_s() - ttft_s()) / static_cast<double>(new_tokens - 1);
    }
    return side;
  }

  /// Why the times of the runs are not judged; empty if they are.
  [[nodiscard]] std::string disturbance() const {
    for (std::size_t i = 0; i < ranks_.size(); ++i) {
      const std::string why = disturbance_of(ranks_[i].drift);
      if (!why.empty()) return fmt::format("rank {}: {}", i, why);
    }
    return {};
  }

  [[nodiscard]] const DriftReport& drift_of_first() const { return ranks_.front().drift; }

 private:
  using ByStage = std::map<std::int64_t, double>;

  /// When the last of equal micro-batches leaves stage `last`: the first one's time through all
  /// stages, and the slowest stage's for each further one (arXiv 2104.04473, section 2.2.1).
  [[nodiscard]] double end_of(const ByStage& seconds, std::int64_t last) const {
    double sum = 0;
    double slowest = 0;
    for (const auto& [stage, of_stage] : seconds) {
      if (stage > last) break;
      sum += of_stage;
      slowest = std::max(slowest, of_stage);
    }
    return sum + static_cast<double>(micro_batches_ - 1) * slowest;
  }

  std::vector<RankForecast> ranks_;
  const RanksMeasurement& measured_;
  std::int64_t micro_batches_;
  ByStage stages_;
  ByStage ttft_;
};

/// The forecasts of all ranks on rank 0; none on the others.
std::vector<RankForecast> gathered(RankRun& ranks, const RankForecast& own) {
  std::vector<RankForecast> all;
  for (const std::string& text : ranks.processes().world().gather(to_json(own).dump())) {
    all.push_back(forecast_of(json::parse(text)));
  }
  return all;
}

RankIdentity identity_of(const CompareCommand& command, const PreparedRanks& prepared) {
  const Workload& workload = prepared.workload;
  return {prepared.model.spec.name, fmt::format("seed {}", command.run.seed),
          fmt::format("{} · batch {} seq {} past {} new {} phase {} threads {}",
                      describe(command.plan, command.run), workload.batch_size, workload.seq_len,
                      workload.past_len, command.run.new_tokens, name_of(command.run.phase),
                      prepared.run.threads)};
}

Comparison comparison_of(const CompareCommand& command, const PreparedRanks& prepared,
                         const WatchedRanks& watched, const PlanForecast& forecast,
                         const TimePrediction& own) {
  const Measurement& measurement = watched.measurement;
  const MeasuredPhase phase = prepared.run.phase;
  ComparedRun measured = measured_run(measurement);
  measured.time_spread = spread_without_drift(own, measurement.time.samples_s, watched.drifts);
  if (measured.disturbance.empty()) measured.disturbance = forecast.disturbance();
  const ComparedRun predicted = forecast.run(measured, phase, prepared.run.new_tokens);
  CompareOptions options = command.options;
  options.detail = Detail::summary;  // operators are those of one rank
  Comparison comparison = compare(predicted, measured, options);
  comparison.ranks = forecast.compared(phase);
  const int threads = prepared.run.threads;
  comparison.machine =
      fmt::format("{} · {} processes · {} each · {}", prepared.machine.name, command.plan.devices(),
                  detail::with_noun(threads, "thread"), prepared.machine.context.backend);
  comparison.drift = forecast.drift_of_first();
  comparison.context = measurement.context;
  comparison.notes.insert(comparison.notes.end(), prepared.notes.begin(), prepared.notes.end());
  comparison.notes.insert(comparison.notes.end(), measurement.warnings.begin(),
                          measurement.warnings.end());
  return comparison;
}

}  // namespace

Comparison compare_ranks(const CompareCommand& command, RankRun& ranks) {
  PreparedRanks prepared;
  RankTime time;
  RunFigures counts;
  std::int64_t micro_batches = 1;
  ranks.together([&] { prepared = prepare(command); });
  prepared.hosts = distributed::hosts_of(ranks.processes());
  if (prepared.run.threads == 0) {
    prepared.run.threads = threads_per_rank(prepared.machine, prepared.hosts);
  }
  ranks.require_equal(identity_of(command, prepared));
  share_collectives(ranks, prepared.machine);
  ranks.together([&] {
    const RankPart part = part_of(ranks, command.plan, prepared.machine, prepared.hosts.count);
    TimeRequest request = time_request(prepared.run);
    request.computes_in_float32 = true;
    const ModelSpec& spec = prepared.model.spec;
    const Workload own = measured::workload_of_replica(prepared.workload, ranks.context().data);
    micro_batches = measured::micro_batches_of(own, prepared.run);
    const Workload pass = measured::workload_of_replica(own, {micro_batches, 0});
    time = predict_rank_time(spec, pass, prepared.machine, request, part);
    counts = of_all(predict_rank_run(spec, pass, request, part), micro_batches);
  });
  WatchedRanks watched = run_watched(prepared, ranks);
  const RankForecast own = forecast_of(prepared, time, counts, watched);
  ranks.gather(watched.measurement);
  std::vector<RankForecast> forecasts = gathered(ranks, own);
  if (!ranks.reports()) return {};
  const PlanForecast forecast(std::move(forecasts), *watched.measurement.ranks, micro_batches);
  return comparison_of(command, prepared, watched, forecast, time.computation);
}

}  // namespace headroom::cli
