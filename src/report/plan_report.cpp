// PlanReport -> Document and JSON: the fastest plans, the Pareto front of memory and time, and the
// neighbours of the best plan.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "describe.h"
#include "plan_words.h"
#include "storage_report.h"
#include "units.h"
#include "with_noun.h"
#include "writers.h"

namespace headroom::detail {
namespace {

/// Slower plans than this multiple of the best time are listed in JSON only.
constexpr double kSlowestShown = 2;
/// Times that differ by less of the best one are equal on screen: 0.0 %.
constexpr double kEqualTimes = 0.0005;
constexpr Integer kGib = Integer{1} << 30U;

/// Iterations: milliseconds if the best one takes less than a second, as decode steps do.
Column time_column(const PlanReport& report) {
  if (!report.plans.empty() && report.plans.front().figures.time.iteration_s < 1) {
    return milliseconds_column("iteration_s", "Time");
  }
  return number_column("iteration_s", "Time", {"[s]", 4});
}

Table plan_table(const PlanReport& report) {
  Table table;
  // The longest column comes last: on a narrow terminal, the figures stay visible.
  table.columns = {
      time_column(report),
      number_column("total_bytes", "Memory", {"[GiB]", 2, kGib}),
      number_column("tokens_per_s", "Tokens", {"[1/s]", 0}),
      number_column("mfu_percent", "MFU", {"[%]", 1}, Importance::optional),
      number_column("communication_percent", "Comm.", {"[%]", 1}, Importance::optional),
      number_column("bubble_percent", "Bubble", {"[%]", 1}, Importance::optional),
      words_column("plan", "Plan")};
  for (const PlanResult& result : report.plans) {
    const PlanTime& time = result.figures.time;
    table.rows.push_back({time.iteration_s, result.figures.memory.total(), time.tokens_per_s,
                          time.mfu ? Cell{100 * *time.mfu} : Cell{},
                          100 * time.communication_s / time.iteration_s,
                          100 * time.bubble_s / time.iteration_s,
                          describe(result.choice, report.question.query.purpose)});
  }
  return table;
}

Table front_table(const PlanReport& report) {
  Table table;
  table.columns = {time_column(report), number_column("total_bytes", "Memory", {"[GiB]", 2, kGib}),
                   words_column("plan", "Plan")};
  for (const RankedPlan& plan : report.search.pareto) {
    if (plan.iteration_s > kSlowestShown * report.plans.front().figures.time.iteration_s) break;
    table.rows.push_back({plan.iteration_s, plan.memory_bytes,
                          describe(plan.choice, report.question.query.purpose)});
  }
  return table;
}

/// A part of an iteration, and by how much it takes longer than in the best plan.
struct PartGrowth {
  const char* part;
  double seconds;
};

std::array<PartGrowth, 5> growth_of(const PlanTime& now, const PlanTime& then) {
  return {{{"compute", now.compute_s - then.compute_s},
           {"communication", now.communication_s - then.communication_s},
           {"host copies", now.host_copies_s - then.host_copies_s},
           {"bubble", now.bubble_s - then.bubble_s},
           {"optimizer", now.optimizer_s - then.optimizer_s}}};
}

/// Why a neighbour is slower or faster than the best plan of the search, which varies no option
/// that is given: the part of its time that differs most that way. Or why it does not fit.
std::string reason_for(const Neighbour& neighbour, const PlanFigures& best, Integer capacity) {
  if (!neighbour.fits) {
    const Integer over = neighbour.figures.memory.total() - capacity;
    return fmt::format("does not fit: {} over", describe_bytes(over));
  }
  const PlanTime& now = neighbour.figures.time;
  const double slower_s = now.iteration_s - best.time.iteration_s;
  if (std::abs(slower_s) < kEqualTimes * best.time.iteration_s) return "equally fast";
  const auto parts = growth_of(now, best.time);
  const auto [least, most] = std::ranges::minmax(parts, {}, &PartGrowth::seconds);
  if (slower_s > 0) return fmt::format("{} more {}", duration(most.seconds), most.part);
  return fmt::format("faster: {} less {}", duration(-least.seconds), least.part);
}

Table neighbour_table(const PlanReport& report) {
  const PlanFigures& best = report.plans.front().figures;
  Table table;
  table.columns = {words_column("change", "Change"), time_column(report),
                   number_column("difference_percent", "Slower", {"[%]", 1}),
                   number_column("total_bytes", "Memory", {"[GiB]", 2, kGib}),
                   words_column("reason", "Reason")};
  for (const Neighbour& neighbour : report.neighbours) {
    const double time = neighbour.plan.iteration_s;
    const auto if_fits = [&](double figure) { return neighbour.fits ? Cell{figure} : Cell{}; };
    table.rows.push_back({neighbour.change, if_fits(time),
                          if_fits(100 * (time / best.time.iteration_s - 1)),
                          neighbour.plan.memory_bytes,
                          reason_for(neighbour, best, report.question.rates.memory_bytes)});
  }
  return table;
}

Json ranked_json(const RankedPlan& plan) {
  return {{"plan", plan_json(plan.choice)},
          {"total_bytes", json_integer(plan.memory_bytes)},
          {"iteration_s", plan.iteration_s}};
}

/// "4.745 s · MFU 57.0 % · 65.42 GiB of 80.00 GiB": the table drops the MFU on a narrow screen.
std::string summary_of(const PlanFigures& best, Integer capacity) {
  std::string text = duration(best.time.iteration_s);
  if (best.time.mfu) text += fmt::format(" · MFU {:.1f} %", 100 * *best.time.mfu);
  return text +
         fmt::format(" · {} of {}", describe_bytes(best.memory.total()), describe_bytes(capacity));
}

std::string verdict_of(const PlanReport& report) {
  const PlanQuestion& question = report.question;
  const Purpose purpose = question.query.purpose;
  if (!report.plans.empty()) {
    return fmt::format("FITS — best: {}", describe(report.plans.front().choice, purpose));
  }
  const PlanResult& least = *report.least;
  return fmt::format("NO PLAN FITS — the smallest needs {} of {}: {}",
                     describe_bytes(least.figures.memory.total()),
                     describe_bytes(question.rates.memory_bytes), describe(least.choice, purpose));
}

}  // namespace

Document to_plan_table(const PlanReport& report) { return {{plan_table(report)}}; }

Document to_document(const PlanReport& report) {
  const PlanQuestion& question = report.question;
  Document document = document_of(question);
  const auto add = [&](const char* label, std::string text) {
    document.blocks.push_back(Line{label, std::move(text)});
  };
  add_device(question, document);
  if (!report.plans.empty()) add_host_link(question, report.plans.front().choice, document);
  add("searched",
      fmt::format("{}, {} fit",
                  with_noun_grouped(static_cast<Integer>(report.search.evaluated), "legal plan"),
                  with_separators(static_cast<Integer>(report.search.fitting))));
  document.add_verdict("verdict", verdict_of(report), outcome_of(!report.plans.empty()));
  if (report.plans.empty()) return document;
  const PlanResult& best = report.plans.front();
  add(step_name(question.query.purpose, best.figures.time),
      summary_of(best.figures, question.rates.memory_bytes));
  add("range", fmt::format("{} to {}, for nine of ten runs", duration(best.figures.time.low_s),
                           duration(best.figures.time.high_s)));
  add_engine(report.engine_command, report.engine, document);
  document.blocks.push_back(plan_table(report));
  if (report.lists_front) {
    document.blocks.push_back(Heading{"Pareto front: no other plan is both smaller and faster"});
    document.blocks.push_back(front_table(report));
  }
  if (report.neighbours.empty()) return document;
  document.blocks.push_back(Heading{"The best plan with one change"});
  document.blocks.push_back(neighbour_table(report));
  return document;
}

Json to_json(const PlanReport& report) {
  Json json = question_json(report.question, "plan.schema.json");
  if (!report.plans.empty()) add_host_link(report.question, report.plans.front().choice, json);
  json["verdict"] = verdict_json(!report.plans.empty(), verdict_of(report));
  json["evaluated"] = report.search.evaluated;
  json["fitting"] = report.search.fitting;
  add_engine(report.engine_command, report.engine, json);
  json["plans"] = Json::array();
  for (const PlanResult& result : report.plans) {
    json["plans"].push_back(result_json(result, report.question));
  }
  json["pareto"] = Json::array();
  for (const RankedPlan& plan : report.search.pareto) json["pareto"].push_back(ranked_json(plan));
  json["neighbours"] = Json::array();
  for (const Neighbour& neighbour : report.neighbours) {
    Json one = ranked_json(neighbour.plan);
    if (!neighbour.fits) one["iteration_s"] = nullptr;
    one["change"] = neighbour.change;
    one["fits"] = neighbour.fits;
    one["because"] =
        reason_for(neighbour, report.plans.front().figures, report.question.rates.memory_bytes);
    json["neighbours"].push_back(one);
  }
  json["least"] = report.least ? result_json(*report.least, report.question) : Json(nullptr);
  return json;
}

}  // namespace headroom::detail
