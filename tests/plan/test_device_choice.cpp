// The fewest devices of each machine: against plans one by one, and against sizes worked out by
// hand.
#include <doctest/doctest.h>

#include <algorithm>

#include "headroom/device_choice.h"
#include "headroom/plan_report.h"

using namespace headroom;

namespace {

DeviceQuestion question_about(const char* model, std::vector<std::string> machines) {
  DeviceQuestion question;
  question.model = load_model(model);
  question.load = {1, 4096};
  question.weights = {std::nullopt, WeightType::float8, WeightType::int4};
  for (const std::string& name : machines) question.machines.push_back(find_machine(name));
  return question;
}

const DeviceRow& row_of(const DeviceChoiceReport& report, const std::string& machine) {
  const auto row = std::ranges::find(report.rows, machine, &DeviceRow::machine);
  REQUIRE(row != report.rows.end());
  return *row;
}

std::int64_t devices_of(const DeviceRow& row, std::size_t column) {
  REQUIRE(row.fewest[column].has_value());
  return row.fewest[column]->choice.parallel.devices();
}

/// True if a plan on `devices` devices holds the model of `plan`.
bool fits_on(const PlanQuestion& plan, std::int64_t devices) {
  const Planner planner(plan.model.spec, plan.query, plan.rates);
  SearchSpace space;
  space.devices = devices;
  space.load = plan.load;
  return !search_plans(planner, space).best.empty();
}

/// Fits plans of `report` one by one, and none on fewer devices.
void check_row(const DeviceChoiceReport& report, const DeviceRow& row, std::size_t column) {
  const FewestDevices& fewest = *row.fewest[column];
  PlanQuestion plan;
  plan.model = report.question.model;
  plan.query = report.question.query;
  plan.query.weights = report.question.weights[column];
  plan.load = report.question.load;
  plan.rates = device_rates(find_machine(row.machine), Purpose::serve, plan.query.dtype);
  plan.devices = fewest.choice.parallel.devices();
  for (std::int64_t fewer = 1; fewer < plan.devices; ++fewer) CHECK(!fits_on(plan, fewer));
  const FitReport fit = make_fit_report(plan, {fewest.choice, {}});
  CHECK(fit.result.fits);
  CHECK(fit.result.figures.memory.total() == fewest.memory_bytes);
  CHECK(fit.result.figures.time.tokens_per_s == doctest::Approx(fewest.time.tokens_per_s));
}

}  // namespace

TEST_CASE("the fewest devices of every machine hold the model, and fewer do not") {
  for (const char* const model : {"llama-3-70b", "mixtral-8x7b", "gpt2"}) {
    const DeviceChoiceReport report =
        make_device_choice_report(question_about(model, {"h100-80gb", "l40s", "rtx-3090"}));
    REQUIRE(report.rows.size() == 3);
    for (const DeviceRow& row : report.rows) {
      for (std::size_t column = 0; column < row.fewest.size(); ++column) {
        INFO(model, " ", row.machine, " column ", column);
        if (row.fewest[column]) check_row(report, row, column);
      }
    }
  }
}

// 70,553,706,496 parameters are 141.1 GB in bfloat16, 70.6 in float8, and under 40 GB in 4 bits
// with their scales. An H100 holds 85.5 GB, an H200 150.8, an RTX 4090 25.8. A layer is 1.711 GB,
// the embedding and the head 2.1 GB each: seven RTX 4090 take stages of 11 and 12 layers (20.5 GB),
// or 11 and one of the two (20.9 GB). Of six stages, one of 14 layers (24.0 GB) or 13 and one of
// the two (24.3 GB) leaves less than the 1.5 GB of cache, context and driver; tensor parallelism by
// 3 does not divide 64 heads.
TEST_CASE("Llama 3 70B takes two H100, or one in 8 bits, and seven RTX 4090, or two in 4 bits") {
  const DeviceChoiceReport report = make_device_choice_report(
      question_about("llama-3-70b", {"rtx-4090", "h100-80gb", "h200-141gb"}));
  const DeviceRow& h100 = row_of(report, "h100-80gb");
  CHECK(devices_of(h100, 0) == 2);
  CHECK(devices_of(h100, 1) == 1);
  CHECK(devices_of(h100, 2) == 1);
  CHECK(devices_of(row_of(report, "h200-141gb"), 0) == 1);
  CHECK(devices_of(row_of(report, "rtx-4090"), 0) == 7);
  CHECK(devices_of(row_of(report, "rtx-4090"), 2) == 2);
  CHECK(report.rows.front().machine == "h200-141gb");
}

// Without the layer of its multi-token prediction it stores 673 GB. Eight H100 have 684 GB, of
// which drivers, contexts and communication take 3.1 each.
TEST_CASE("DeepSeek-V3 takes nine H100, and eight do not hold it") {
  PlanQuestion plan;
  plan.model = load_model("deepseek-v3");
  plan.load = {1, 4096};
  plan.rates = device_rates(find_machine("h100-80gb"), Purpose::serve, plan.query.dtype);
  Planner planner(plan.model.spec, plan.query, plan.rates);
  const auto fewest = plan_on_fewest_devices(planner, plan.load, FixedDegrees{}, {1, 1024});
  REQUIRE(fewest);
  CHECK(fewest->choice.parallel.devices() == 9);
  CHECK(fits_on(plan, 9));
  CHECK(!fits_on(plan, 8));
}

TEST_CASE("given degrees that are no power of two are kept on the fewest devices") {
  const DeviceQuestion question = question_about("llama-3-70b", {"h100-80gb"});
  Planner planner(question.model.spec, question.query,
                  device_rates(question.machines.front(), Purpose::serve, question.query.dtype));
  FixedDegrees fixed;
  fixed.pipeline = 3;
  const auto fewest = plan_on_fewest_devices(planner, question.load, fixed, {1, 64});
  REQUIRE(fewest);
  CHECK(fewest->choice.parallel.pipeline == 3);
  CHECK(fewest->choice.parallel.devices() == 3);
}

TEST_CASE("a machine that holds no type of weights is named, and is no row") {
  DeviceQuestion question = question_about("llama-3-70b", {"t4", "h100-80gb"});
  question.most_devices = 1;
  const DeviceChoiceReport report = make_device_choice_report(std::move(question));
  REQUIRE(report.rows.size() == 1);
  CHECK(report.rows.front().machine == "h100-80gb");
  CHECK(!report.rows.front().fewest.front());
  CHECK(report.too_small == std::vector<std::string>{"t4"});
}

TEST_CASE("a table of machines says where no plan has tensor parallelism") {
  const auto is_noted = [](const char* model, std::int64_t most_devices) {
    DeviceQuestion question = question_about(model, {"h200-141gb"});
    question.most_devices = most_devices;
    const DeviceChoiceReport report = make_device_choice_report(std::move(question));
    return std::ranges::any_of(report.notes, [](const std::string& note) {
      return note.starts_with("tensor parallelism is not modelled for this model");
    });
  };
  CHECK(is_noted("deepseek-v4-flash", 8));
  CHECK(!is_noted("deepseek-v4-flash", 1));
  CHECK(!is_noted("llama-3-8b", 8));
}

// 10 GB hold Llama 3 70B in no type but 4 bits, which nobody asked for.
TEST_CASE("the verdict counts machines that hold the weights as stored") {
  const DeviceChoiceReport report =
      make_device_choice_report(question_about("llama-3-70b", {"rtx-3080"}));
  REQUIRE(report.rows.size() == 1);
  CHECK_FALSE(holds_first_type(report.rows.front()));
  CHECK_FALSE(any_holds_first_type(report));
}

TEST_CASE("a note names machines whose devices an assumed link joins") {
  const auto notes_of = [](const char* machine) {
    return make_device_choice_report(question_about("llama-3-70b", {machine})).notes;
  };
  CHECK(std::ranges::count_if(notes_of("apple-m3-max"), [](const std::string& note) {
          return note.starts_with("the interconnect of apple-m3-max is unknown: ");
        }) == 1);
  CHECK(notes_of("h100-80gb").empty());
}

TEST_CASE("DeepSeek-V3, published in 8 bits, has no column of 8 bits") {
  const DeviceChoiceReport report =
      make_device_choice_report(question_about("deepseek-v3", {"h200-141gb"}));
  CHECK(report.question.weights ==
        std::vector<std::optional<WeightForm>>{std::nullopt, WeightType::int4});
}

TEST_CASE("prices are those of all devices, per hour and per token at the decode rate") {
  DeviceQuestion question = question_about("llama-3-70b", {"h100-80gb", "l40s"});
  question.hour_prices = {{"h100-80gb", 2.5}};
  const DeviceChoiceReport report = make_device_choice_report(std::move(question));
  const FewestDevices& h100 = *row_of(report, "h100-80gb").fewest.front();
  CHECK(h100.price_per_hour == doctest::Approx(5.0));
  const double hours_per_million = 1e6 / h100.time.tokens_per_s / 3600;
  CHECK(h100.price_per_million_tokens == doctest::Approx(5.0 * hours_per_million));
  CHECK(!row_of(report, "l40s").fewest.front()->price_per_hour);
}

TEST_CASE("training, no machine, and a price of another machine are refused") {
  DeviceQuestion training = question_about("gpt2", {"h100-80gb"});
  training.query.purpose = Purpose::train;
  CHECK_THROWS_AS((void)make_device_choice_report(training), Error);
  CHECK_THROWS_AS((void)make_device_choice_report(question_about("gpt2", {})), Error);
  DeviceQuestion priced = question_about("gpt2", {"h100-80gb"});
  priced.hour_prices = {{"h100", 2.5}};
  CHECK_THROWS_AS((void)make_device_choice_report(priced), Error);
}

TEST_CASE("a search on one thread finds what several threads find") {
  const DeviceQuestion question = question_about("mixtral-8x7b", {"h100-80gb"});
  const DeviceRates rates =
      device_rates(question.machines.front(), Purpose::serve, question.query.dtype);
  Planner planner(question.model.spec, question.query, rates);
  SearchSpace space;
  space.devices = 8;
  space.load = {16, 4096};
  const PlanSearch alone = search_plans_alone(planner, space);
  const PlanSearch all = search_plans(planner, space);
  CHECK(alone.evaluated == all.evaluated);
  REQUIRE(alone.best.size() == all.best.size());
  for (std::size_t i = 0; i < all.best.size(); ++i) {
    CHECK(alone.best[i].choice == all.best[i].choice);
  }
}
