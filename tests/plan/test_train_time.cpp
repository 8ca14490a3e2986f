// Runs of every length: the units that their report shows, and the rule of thumb beside them.
#include <fmt/format.h>

#include <string>

#include "headroom/no_plan_fits.h"
#include "headroom/report.h"
#include "support/data.h"

namespace headroom::test {
namespace {

PlanQuestion llama_question(AdapterKind kind) {
  PlanQuestion question;
  question.model = load_model("llama-3-8b");
  question.query.purpose = Purpose::train;
  question.query.attention = AttentionImplementation::fused;
  question.query.adapter.kind = kind;
  question.rates = device_rates(find_machine("h100-80gb"), Purpose::train, DType::bfloat16);
  question.devices = 8;
  question.load = {16, 2048};
  return question;
}

TrainTimeReport run_of(AdapterKind kind, double tokens) {
  FixedDegrees fixed;
  fixed.tensor = 1;
  fixed.pipeline = 1;
  fixed.context = 1;
  fixed.zero = Zero::weights;
  fixed.micro_batch = 1;
  TrainingBudget budget;
  budget.tokens = tokens;
  budget.power_w = 700;
  budget.price_per_hour = 2.5;
  return make_train_time_report(llama_question(kind), fixed, budget);
}

/// As if the run took `seconds` on one device of 700 W at 2.50 an hour.
std::string shown_run(double seconds) {
  static const TrainTimeReport run = run_of(AdapterKind::lora, 1e6);
  TrainTimeReport report = run;
  report.seconds = seconds;
  report.low_s = seconds / 1.25;
  report.high_s = seconds * 1.25;
  report.device_hours = seconds / 3600;
  report.energy_j = 700 * seconds;
  report.price = 2.5 * seconds / 3600;
  return render(report, {});
}

/// True if a line starts with `label` and goes on with `text` behind blanks.
bool has_line(const std::string& report, const std::string& label, const std::string& text) {
  std::size_t at = report.find("\n" + label + " ");
  if (at == std::string::npos) return false;
  at = report.find_first_not_of(' ', at + 1 + label.size());
  return report.compare(at, text.size(), text) == 0;
}

}  // namespace

TEST_CASE("a run of minutes is shown in minutes, kilowatt-hours and hundredths of the price") {
  const std::string text = shown_run(884);
  CHECK(has_line(text, "time", "14.7 min — "));
  CHECK(has_line(text, "range", "11.8 min to 18.4 min, "));
  CHECK(has_line(text, "device-hours", "0.246\n"));
  CHECK(has_line(text, "energy", "0.172 kWh at 700 W"));
  CHECK(has_line(text, "price", "0.61 at 2.50"));
}

TEST_CASE("a run of seconds, hours or days is shown in that unit") {
  CHECK(has_line(shown_run(50), "time", "50.000 s — "));
  CHECK(has_line(shown_run(50), "energy", "0.00972 kWh"));
  CHECK(has_line(shown_run(7200), "time", "2.0 h — "));
  CHECK(has_line(shown_run(7200), "price", "5.00 at"));
  const std::string days = shown_run(60.0 * 86400);
  CHECK(has_line(days, "time", "60.0 days — "));
  CHECK(has_line(days, "range", "48.0 days to 75.0 days, "));
  CHECK(has_line(days, "device-hours", "1,440\n"));
  CHECK(has_line(days, "energy", "1.01 MWh"));
  CHECK(has_line(days, "price", "3,600 at"));
}

// 8,030,261,248 parameters (Llama 3 8B's checkpoint), 10 million tokens.
TEST_CASE("the rule of thumb of a run with adapters leaves out the gradients of weights") {
  const TrainTimeReport adapters = run_of(AdapterKind::lora, 1e7);
  CHECK(adapters.flops_per_parameter == 4);
  const std::string text = render(adapters, {});
  CHECK(text.find("4·N·D, no recomputation    321.2 ") != std::string::npos);
  CHECK(text.find("6·N·D, all recomputed      481.8 ") != std::string::npos);
  CHECK(text.find("[PFLOP]") != std::string::npos);
  CHECK(text.find("8·N·D") == std::string::npos);
  const TrainTimeReport all = run_of(AdapterKind::none, 1e7);
  CHECK(all.flops_per_parameter == 6);
  CHECK(render(all, {}).find("8·N·D, all recomputed") != std::string::npos);
}

// 8.03e9 parameters of 18 B with Adam need 134.6 GiB; one device has 79.65.
TEST_CASE("a run that no plan fits names the memory that the smallest plan needs") {
  PlanQuestion question = llama_question(AdapterKind::none);
  question.devices = 1;
  TrainingBudget budget;
  budget.tokens = 1e9;
  try {
    (void)make_train_time_report(std::move(question), {}, budget);
    FAIL("eighteen bytes for each of 8 billion parameters fit in 80 GB");
  } catch (const NoPlanFits& error) {
    const std::string message = error.message();
    const std::string start = "no plan on 1 × h100-80gb fits a training step: the smallest needs ";
    REQUIRE(message.starts_with(start));
    CHECK(std::stod(message.substr(start.size())) > 134.6);
    CHECK(message.ends_with(" of 79.65 on each device"));
  }
}

// The table drops the MFU there.
TEST_CASE("the summary of the best plan has its MFU on a screen of 80 columns") {
  SearchSpace space;
  space.fixed.tensor = 1;
  space.fixed.pipeline = 1;
  space.fixed.context = 1;
  space.fixed.zero = Zero::weights;
  space.threads = 1;
  const PlanReport report = make_plan_report(llama_question(AdapterKind::none), space);
  const double mfu = report.plans.front().figures.time.mfu.value();
  const std::string text = render(report, {.width = 80});
  CHECK(text.find(fmt::format(" · MFU {:.1f} % · ", 100 * mfu)) != std::string::npos);
  // Terms of columns that it drops need no explanation.
  for (const char* const term : {"Comm.: ", "Bubble: "}) {
    CHECK(text.find(term) == std::string::npos);
    CHECK(render(report, {.width = 200}).find(term) != std::string::npos);
  }
}

}  // namespace headroom::test
