#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "excluded_plans.h"
#include "headroom/error.h"
#include "headroom/expr.h"
#include "headroom/plan_report.h"
#include "kv_reservation.h"
#include "question_notes.h"
#include "setting_format.h"

namespace headroom {
namespace {

/// Context lengths of the concurrency table: from the first one, doubling, up to the trained
/// context, or the second one if that is unknown.
constexpr std::int64_t kFirstContext = 1024;
constexpr std::int64_t kDefaultLastContext = 32768;

std::optional<std::int64_t> trained_context(const ModelSpec& spec) {
  const PositionSpec& position = spec.position;
  if (position.max_position_embeddings == 0) return std::nullopt;
  return position.max_position_embeddings - position.offset;
}

PlanResult result_of(Planner& planner, const PlanRequest& request, const PlanChoice& choice,
                     const Load& load) {
  PlanResult result;
  result.choice = choice;
  result.figures = planner.evaluate(choice, load);
  result.fits = planner.fits(result.figures);
  result.largest_batch = largest_batch(planner, request, load);
  result.largest_context = largest_context(planner, request, load);
  return result;
}

/// `query` with a KV-cache of this type and no scales. Empty if the policy has no such type.
std::optional<PlanQuery> with_cache_type(PlanQuery query, DType type) {
  const KvPolicy policy = query.kv_cache.policy;
  const bool llama_cpp = policy == KvPolicy::llama_cpp || policy == KvPolicy::llama_cpp_swa_full ||
                         policy == KvPolicy::llama_cpp_b5331;
  if (llama_cpp && type == DType::float8) return std::nullopt;
  query.kv_dtype = type;
  query.kv_cache.scales = KvScales::none;
  set_type(query.kv_cache, kv_type(type));
  return query;
}

/// Every pair of formats, as stored and widest first; the KV-cache varies fastest.
std::vector<FormatFit> format_fits(const PlanQuestion& question, const PlanRequest& request) {
  const bool cached = question.model.spec.main_stack().causal();
  std::vector<FormatFit> fits;
  using Weights = std::optional<WeightForm>;
  for (const Weights& weights :
       {Weights{}, Weights{WeightType::bfloat16}, Weights{WeightType::float8},
        Weights{WeightType::int8}, Weights{WeightType::int4}}) {
    for (const DType kv_dtype : {DType::bfloat16, DType::float8}) {
      if (!cached && kv_dtype != DType::bfloat16) continue;
      std::optional<PlanQuery> query = with_cache_type(question.query, kv_dtype);
      if (!query) continue;
      query->weights = weights;
      Planner planner(question.model.spec, *query, question.rates);
      const PlanFigures figures = planner.evaluate(resolve(request, question.load), question.load);
      fits.push_back({weights, kv_dtype, figures.memory.total(), planner.fits(figures),
                      largest_batch(planner, request, question.load)});
    }
  }
  return fits;
}

/// Throws Error{invalid_input} for KV-cache settings of a model that has none.
void require_cache(const PlanQuestion& question, const Planner& planner) {
  const bool serves = question.query.purpose == Purpose::serve;
  if (!serves || planner.decodes() || !detail::needs_reservation(question.query.kv_cache)) return;
  throw_invalid_input(fmt::format("{} has no KV-cache", question.model.spec.name),
                      fmt::format("leave out {}, {} and the other settings of a KV-cache",
                                  Setting::kv_dtype, Setting::kv_policy));
}

void add_storage(const PlanQuestion& question, FitReport& report) {
  const ModelSpec spec = converted(question.model.spec, question.query.weights);
  const Graph graph = build_graph(spec, {Phase::prefill, question.query.attention});
  report.storage = stored_weights(spec, graph);
  report.parameters = count_parameters(graph).total.evaluate(graph.sizes);
}

std::vector<ConcurrencyPoint> concurrency_of(Planner& planner, const PlanRequest& request,
                                             const Load& load) {
  const std::int64_t last =
      std::max(load.seq_len, trained_context(planner.spec()).value_or(kDefaultLastContext));
  std::vector<std::int64_t> lengths;
  for (std::int64_t length = std::min(kFirstContext, load.seq_len); length < last; length *= 2) {
    lengths.push_back(length);
  }
  lengths.push_back(last);
  lengths.push_back(load.seq_len);
  std::erase_if(lengths, [&](std::int64_t length) { return length <= planner.tower_tokens(); });
  std::ranges::sort(lengths);
  lengths.erase(std::unique(lengths.begin(), lengths.end()), lengths.end());
  std::vector<ConcurrencyPoint> curve;
  curve.reserve(lengths.size());
  for (const std::int64_t length : lengths) {
    curve.push_back({length, largest_batch(planner, request, {load.batch_size, length})});
  }
  return curve;
}

}  // namespace

std::vector<std::string> detail::notes_of(const PlanQuestion& question) {
  std::vector<std::string> notes = question.notes;
  const auto context = trained_context(question.model.spec);
  if (context && question.load.seq_len > *context) {
    notes.push_back(fmt::format("{} tokens exceed the trained context of {}",
                                with_separators(question.load.seq_len), with_separators(*context)));
  }
  const DeviceRates& rates = question.rates;
  if (rates.conversion) notes.push_back(*rates.conversion);
  const bool across = question.devices > rates.link.devices_per_node;
  const bool assumed = rates.link_is_assumed || (across && rates.network_is_assumed);
  if (question.devices > 1 && assumed) {
    notes.push_back(fmt::format("the {} of {} is unknown; {}",
                                rates.link_is_assumed ? "interconnect" : "network between nodes",
                                rates.name, assumed_interconnect().source));
  }
  return notes;
}

namespace {

/// Range of `ttft_s`, by the part of a prompt that arithmetic bounds.
RunSeconds prompt_range(Planner& planner, const PlanChoice& choice, std::int64_t tokens,
                        double ttft_s) {
  const PassTime prompt = planner.prefill_time(choice, tokens, 0, 1);
  const BoundSeconds all = prompt.over_tokens() + prompt.head + prompt.sequences;
  const double factor = 1 + planner.time_range(choice, all.compute_bound / all.all);
  return {std::max(ttft_s / factor, std::min(ttft_s, all.roofline)), ttft_s * factor};
}

/// A note where recomputing the named modules drops nothing: the model lacks them, or its kernels
/// keep nothing there, as fused attention does.
void note_recomputation(Planner& planner, PlanChoice choice, const Load& load,
                        const PlanFigures& figures, std::vector<std::string>& notes) {
  if (choice.recompute.kind != Recompute::selective) return;
  const Recomputation recompute = std::exchange(choice.recompute, {});
  const Integer whole = planner.evaluate(choice, load).memory.activations;
  if (figures.memory.activations != whole) return;
  const bool fused = planner.query().attention == AttentionImplementation::fused;
  const bool of_scores = recompute.modules == RecomputeModules(RecomputeModule::core_attn);
  notes.push_back(
      fused && of_scores
          ? std::string("selective recomputation (core_attn) saves nothing with fused attention")
          : fmt::format("recomputing {} drops no tensor of this model",
                        name_of(recompute.modules)));
}

/// A note on a plan that leaves less memory than the error of the count. Counted memory and that of
/// published training steps differ by up to 0.7 % (docs/verification.md: eight steps on B200s), and
/// by more where the framework's version, the driver or the display take some.
void note_margin(const PlanFigures& figures, const DeviceRates& rates,
                 std::vector<std::string>& notes) {
  constexpr Integer kParts = 100;
  constexpr double kGib = 1U << 30U;
  const Integer free = rates.memory_bytes - figures.memory.total();
  if (free < 0 || kParts * free >= rates.memory_bytes) return;
  const Integer usable = rates.memory_bytes - rates.driver_bytes;
  const Integer kept_bytes = usable - rates.memory_bytes / kParts;
  const double kept = static_cast<double>(kept_bytes) / kGib;
  notes.push_back(
      fmt::format("the plan leaves {:.2f} % of the device's memory, less than the 1 % by which "
                  "counts may be off: "
                  "--memory {:.1f}GiB keeps that margin",
                  100 * static_cast<double>(free) / static_cast<double>(rates.memory_bytes),
                  std::floor(10 * kept) / 10));
}

/// A note where the largest batch of a training step is that of the largest micro-batch, which
/// grows with the batch (resolve).
void note_micro_batch(const PlanRequest& request, const PlanResult& result,
                      std::vector<std::string>& notes) {
  const bool grows = !request.micro_batch && request.choice.parallel.pipeline == 1;
  if (!grows || result.largest_batch.value_or(0) == 0) return;
  notes.emplace_back(
      "the micro-batch grows with the batch, as none is given; with a fixed one, gradients "
      "accumulate over a batch of any size");
}

/// A note where micro-batches have empty places, which take time and no tokens.
void note_empty_places(const PlanChoice& choice, const Load& load,
                       std::vector<std::string>& notes) {
  const std::int64_t run = sequences_run(choice, load);
  if (run == load.batch_size) return;
  notes.push_back(fmt::format(
      "a batch of {} takes as long as one of {}: sequences per micro-batch {} × replicas {} × "
      "micro-batches {}",
      load.batch_size, run, choice.micro_batch, choice.parallel.data, micro_batches(choice, load)));
}

}  // namespace

FitReport make_fit_report(PlanQuestion question, const PlanRequest& request) {
  Planner planner(question.model.spec, question.query, question.rates);
  require_cache(question, planner);
  const PlanChoice choice = resolve(request, question.load);
  require_legal(choice, question.load, planner.limits(question.load.seq_len));
  FitReport report;
  report.result = result_of(planner, request, choice, question.load);
  report.communication = planner.communication(choice, question.load);
  const bool serves = question.query.purpose == Purpose::serve;
  if (serves) {
    report.formats = format_fits(question, request);
    add_storage(question, report);
  }
  if (planner.decodes()) {
    if (question.rates.have_speed()) {
      report.ttft_range = prompt_range(planner, choice, question.load.seq_len,
                                       report.result.figures.time.ttft_s.value());
    }
    report.concurrency = concurrency_of(planner, request, question.load);
  }
  if (!report.result.fits) {
    report.remedies = remedies_for(planner, request, question.load, report.result, report.formats);
  }
  report.notes = detail::notes_of(question);
  note_margin(report.result.figures, question.rates, report.notes);
  note_recomputation(planner, choice, question.load, report.result.figures, report.notes);
  if (!serves) {
    note_micro_batch(request, report.result, report.notes);
    note_empty_places(choice, question.load, report.notes);
  }
  const auto& stored = report.storage.notes;
  report.notes.insert(report.notes.end(), stored.begin(), stored.end());
  report.question = std::move(question);
  return report;
}

PlanReport make_plan_report(PlanQuestion question, SearchSpace space, const PlanSearcher& search) {
  Planner planner(question.model.spec, question.query, question.rates);
  require_cache(question, planner);
  const ShardingLimits limits = planner.limits(question.load.seq_len);
  require_legal(space.fixed, question.load, limits);
  space.devices = question.devices;
  space.load = question.load;
  const auto start = std::chrono::steady_clock::now();
  PlanReport report;
  report.search = search(planner, space);
  report.search_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (report.search.evaluated == 0) {
    detail::throw_no_legal_plan(space, limits, question.model.spec.name);
  }
  const auto evaluated = [&](const RankedPlan& plan) {
    const PlanRequest request{plan.choice, plan.choice.micro_batch};
    return result_of(planner, request, plan.choice, question.load);
  };
  for (const RankedPlan& plan : report.search.best) report.plans.push_back(evaluated(plan));
  if (report.search.least) report.least = evaluated(*report.search.least);
  if (!report.plans.empty()) {
    report.neighbours = neighbours_of(planner, report.plans.front().choice, question.load);
  }
  report.notes = detail::notes_of(question);
  auto note = note_on_tensor(limits, space.fixed, question.devices);
  if (note) report.notes.push_back(std::move(*note));
  if (!report.plans.empty()) {
    note_margin(report.plans.front().figures, question.rates, report.notes);
  }
  const PlanResult* const shown = !report.plans.empty() ? &report.plans.front()
                                  : report.least        ? &*report.least
                                                        : nullptr;
  if (space.fixed.recompute && shown != nullptr) {
    note_recomputation(planner, shown->choice, question.load, shown->figures, report.notes);
  }
  report.question = std::move(question);
  return report;
}

}  // namespace headroom
