// Published figures of training runs: arXiv 2205.05198, Figures 1 and 7, Table 5.
#include <algorithm>
#include <iterator>

#include "gpt_models.h"
#include "headroom/plan.h"

namespace headroom::test {
namespace {

constexpr double kGib = 1024.0 * 1024.0 * 1024.0;

struct Case {
  const char* name;
  SequenceParallel sequence;
  Recompute recompute;
};
constexpr Case kCases[] = {{"none", SequenceParallel::off, Recompute::none},
                           {"seq", SequenceParallel::on, Recompute::none},
                           {"sel", SequenceParallel::off, Recompute::selective},
                           {"seqsel", SequenceParallel::on, Recompute::selective},
                           {"full", SequenceParallel::off, Recompute::full}};

const Case& case_named(const std::string& name) {
  return *std::find_if(std::begin(kCases), std::end(kCases),
                       [&](const Case& one) { return name == one.name; });
}

PlanFigures figures_of(const nlohmann::json& model, const Case& one) {
  PlanQuery query;
  query.purpose = Purpose::train;
  query.attention = AttentionImplementation::eager;
  const ModelSpec spec =
      gpt(model["hidden"], model["heads"], model["layers"], model["seq"], model["vocab"]);
  Planner planner(spec, query,
                  device_rates(find_machine("a100-80gb"), Purpose::train, DType::bfloat16));
  PlanChoice choice;
  choice.parallel.tensor = model["tp"];
  choice.parallel.pipeline = model["pp"];
  choice.parallel.interleave = model["interleave"];
  choice.parallel.sequence = one.sequence;
  choice.micro_batch = model["micro"];
  choice.recompute.kind = one.recompute;
  const Load load{model["batch"], model["seq"]};
  require_legal(choice, load, planner.limits(load.seq_len));
  return planner.evaluate(choice, load);
}

double gib(Integer bytes) { return static_cast<double>(bytes) / kGib; }

nlohmann::json models() { return read_json(data_folder() / "training/korthikanti.json")["models"]; }

}  // namespace

// Equations 1 to 4 and section 5 for the first stage, which stores the activations of all layers
// once, or 1 + (p − 1)/(p·m) times with m interleaved chunks (section 4.2.3).
TEST_CASE("activations per GPU follow the equations of Korthikanti et al.") {
  for (const auto& model : models()) {
    const double s = model["seq"];
    const double b = model["micro"];
    const double h = model["hidden"];
    const double a = model["heads"];
    const double t = model["tp"];
    const double p = model["pp"];
    const double m = model["interleave"];
    const double layers = model["layers"].get<double>() * (m > 1 ? 1 + (p - 1) / (p * m) : 1);
    const auto check = [&](const char* name, double bytes_of_layer) {
      CAPTURE(std::string(name));
      const double bytes = gib(figures_of(model, case_named(name)).memory.activations);
      CHECK(bytes == doctest::Approx(bytes_of_layer * layers / kGib).epsilon(0.0005));
    };
    CAPTURE(model["name"].get<std::string>());
    check("none", s * b * h * (10 + 24 / t + 5 * a * s / (h * t)));
    check("seq", s * b * h / t * (34 + 5 * a * s / h));
    check("sel", s * b * h * (10 + 24 / t));
    check("seqsel", 34 * s * b * h / t);
    check("full", 2 * s * b * h);
  }
}

TEST_CASE("activations per GPU match Korthikanti et al., Figure 1") {
  for (const auto& model : models()) {
    CAPTURE(model["name"].get<std::string>());
    const auto none = figures_of(model, case_named("none"));
    const auto best = figures_of(model, case_named("seqsel"));
    const auto& published = model["memory_gib"];
    CHECK(gib(none.memory.activations) ==
          doctest::Approx(published["act_none"].get<double>()).epsilon(0.002));
    CHECK(gib(best.memory.activations) ==
          doctest::Approx(published["act_seqsel"].get<double>()).epsilon(0.002));
  }
}

TEST_CASE("activations relative to no recompute match Korthikanti et al., Figure 7") {
  for (const auto& model : models()) {
    CAPTURE(model["name"].get<std::string>());
    const double none = gib(figures_of(model, case_named("none")).memory.activations);
    for (const auto& entry : model["percent_of_none"].items()) {
      const std::string& name = entry.key();
      const auto& percent = entry.value();
      CAPTURE(name);
      const double bytes = gib(figures_of(model, case_named(name)).memory.activations);
      CHECK(100 * bytes / none == doctest::Approx(percent.get<double>()).epsilon(0.012));
    }
  }
}

TEST_CASE("model states per GPU match Korthikanti et al., Figure 1") {
  for (const auto& model : models()) {
    const PlanMemory memory = figures_of(model, case_named("seqsel")).memory;
    const double states = gib(memory.weights + memory.gradients + memory.optimizer);
    CHECK(states == doctest::Approx(model["memory_gib"]["states"].get<double>()).epsilon(0.03));
  }
}

TEST_CASE("iteration times are within 8 % of Korthikanti et al., Table 5") {
  for (const auto& model : models()) {
    CAPTURE(model["name"].get<std::string>());
    for (const auto& entry : model["iteration_s"].items()) {
      const std::string& name = entry.key();
      const auto& seconds = entry.value();
      CAPTURE(name);
      const double predicted = figures_of(model, case_named(name)).time.iteration_s;
      CHECK(predicted == doctest::Approx(seconds.get<double>()).epsilon(0.08));
    }
  }
}

}  // namespace headroom::test
