// Remedies of a plan that does not fit: each, asked for, does fit.
#include <doctest/doctest.h>

#include <algorithm>

#include "headroom/plan_report.h"
#include "headroom/report.h"
#include "visit.h"

using namespace headroom;

namespace {

PlanQuestion question_about(const char* model, Purpose purpose, Load load) {
  PlanQuestion question;
  question.model = load_model(model);
  question.query.purpose = purpose;
  question.rates = device_rates(find_machine("h100-80gb"), purpose, question.query.dtype);
  question.load = load;
  return question;
}

/// The report for the question that `remedy` changes.
FitReport report_with(const Remedy& remedy, PlanQuestion question, PlanRequest request) {
  std::visit(
      Overloaded{
          [&](const OtherPlan& other) {
            request.choice = other.choice;
            request.micro_batch = other.micro_batch;
            question.devices = other.choice.parallel.devices();
            question.load.batch_size = other.batch_size;
          },
          [&](const OtherFormats& other) {
            question.query.weights = other.weights;
            question.query.kv_dtype = other.kv_dtype;
          },
          [&](const OtherRecomputation& other) { request.choice.recompute = other.recompute; },
          [&](const ShorterContext& shorter) { question.load.seq_len = shorter.seq_len; },
          [&](const SmallerBatch& smaller) { question.load.batch_size = smaller.batch_size; }},
      remedy);
  return make_fit_report(std::move(question), request);
}

template <class Alternative>
bool offers(const FitReport& report) {
  return std::ranges::any_of(report.remedies, [](const Remedy& remedy) {
    return std::holds_alternative<Alternative>(remedy);
  });
}

}  // namespace

TEST_CASE("every remedy that fit offers does fit") {
  const PlanQuestion questions[] = {
      question_about("llama-3-70b", Purpose::serve, {1, 4096}),
      question_about("llama-3-8b", Purpose::serve, {256, 8192}),
      question_about("llama-3-8b", Purpose::train, {1, 4096}),
      question_about("gpt2-xl", Purpose::train, {64, 1024}),
      question_about("mixtral-8x7b", Purpose::serve, {4, 4096}),
  };
  for (const PlanQuestion& question : questions) {
    const FitReport report = make_fit_report(question, {});
    REQUIRE_FALSE(report.result.fits);
    CHECK_FALSE(report.remedies.empty());
    for (const Remedy& remedy : report.remedies) {
      CHECK_MESSAGE(report_with(remedy, question, {}).result.fits,
                    question.model.spec.name << ", remedy " << remedy.index());
    }
  }
}

TEST_CASE("a model too large for one device is offered more devices and smaller weights") {
  const auto report = make_fit_report(question_about("llama-3-70b", Purpose::serve, {1, 4096}), {});
  CHECK(offers<OtherPlan>(report));
  CHECK(offers<OtherFormats>(report));
  CHECK_FALSE(offers<ShorterContext>(report));
}

TEST_CASE("too many sequences are offered a smaller batch and a shorter context") {
  const auto report =
      make_fit_report(question_about("llama-3-8b", Purpose::serve, {256, 8192}), {});
  CHECK(offers<SmallerBatch>(report));
  CHECK(offers<ShorterContext>(report));
}

TEST_CASE("a smaller batch keeps the micro-batches that interleaving needs") {
  const PlanQuestion question = question_about("llama-3.1-405b", Purpose::train, {2048, 8192});
  PlanRequest request;
  request.choice.parallel.tensor = 8;
  request.choice.parallel.sequence = SequenceParallel::on;
  request.choice.parallel.pipeline = 16;
  request.choice.parallel.interleave = 8;
  request.choice.parallel.data = 64;
  request.choice.zero = Zero::optimizer;
  PlanQuestion asked = question;
  asked.devices = 8192;
  asked.query.attention = AttentionImplementation::fused;
  const FitReport report = make_fit_report(asked, request);
  REQUIRE_FALSE(report.result.fits);
  for (const Remedy& remedy : report.remedies) {
    CHECK_MESSAGE(report_with(remedy, asked, request).result.fits, "remedy " << remedy.index());
  }
}

TEST_CASE("a plan that fits has no remedies") {
  CHECK(make_fit_report(question_about("gpt2", Purpose::serve, {1, 1024}), {}).remedies.empty());
}

TEST_CASE("other plans keep the options of the step that was asked about") {
  const PlanQuestion question = question_about("llama-3-70b", Purpose::train, {64, 4096});
  PlanRequest request;
  request.choice.parallel.tensor = 8;
  request.choice.parallel.sequence = SequenceParallel::on;
  request.choice.step.tensor_overlap = TensorOverlap::on;
  request.choice.step.offload_layers = 8;
  request.choice.step.loss_chunks = 16;
  PlanQuestion on_eight = question;
  on_eight.devices = 8;
  const FitReport report = make_fit_report(on_eight, request);
  REQUIRE_FALSE(report.result.fits);
  REQUIRE(offers<OtherPlan>(report));
  for (const Remedy& remedy : report.remedies) {
    const auto* const other = std::get_if<OtherPlan>(&remedy);
    if (other == nullptr) continue;
    CHECK(other->choice.step.tensor_overlap == TensorOverlap::on);
    CHECK(other->choice.parallel.sequence == SequenceParallel::on);
    CHECK(other->choice.step.offload_layers == 8);
    CHECK(other->choice.step.loss_chunks == 16);
    CHECK(report_with(remedy, on_eight, request).result.fits);
  }
}

// Megatron-LM offloads no layers that are computed again.
TEST_CASE("no remedy recomputes layers whose activations are on the host") {
  PlanQuestion question = question_about("llama-3-70b", Purpose::train, {32, 4096});
  question.devices = 32;
  PlanRequest request;
  request.choice.parallel.data = 32;
  request.choice.zero = Zero::weights;
  request.choice.step.loss_chunks = 16;
  REQUIRE(offers<OtherRecomputation>(make_fit_report(question, request)));
  request.choice.step.offload_layers = 40;
  const FitReport report = make_fit_report(question, request);
  REQUIRE_FALSE(report.result.fits);
  CHECK_FALSE(offers<OtherRecomputation>(report));
}

TEST_CASE("no context is offered that has fewer tokens than the loss has chunks") {
  PlanQuestion question = question_about("llama-3-8b", Purpose::train, {8, 131072});
  question.devices = 8;
  PlanRequest request;
  request.choice.parallel.data = 8;
  request.choice.zero = Zero::weights;
  request.choice.step.loss_chunks = 16;
  const FitReport report = make_fit_report(question, request);
  REQUIRE_FALSE(report.result.fits);
  REQUIRE(report.result.largest_context.value() < 100'000);
  CHECK(offers<ShorterContext>(report));
  request.choice.step.loss_chunks = 100'000;
  CHECK_FALSE(offers<ShorterContext>(make_fit_report(question, request)));
}

TEST_CASE("a verdict on replicas that do not fit names them, and the plan that does fit") {
  PlanQuestion question = question_about("llama-3-70b", Purpose::serve, {8, 4096});
  question.devices = 8;
  PlanRequest request;
  request.choice.parallel.data = 8;
  const std::string page =
      render(make_fit_report(question, request), {Format::table, Detail::summary, 0, Colour::off});
  CHECK(page.find("DOES NOT FIT as 8 replicas — ") != std::string::npos);
  request.choice.parallel.data = 1;
  request.choice.parallel.tensor = 8;
  const std::string fits =
      render(make_fit_report(question, request), {Format::table, Detail::summary, 0, Colour::off});
  CHECK(fits.find("FITS — ") != std::string::npos);
}

TEST_CASE("a largest context beyond the model's positions names these") {
  const PlanQuestion question = question_about("llama-3-8b", Purpose::serve, {1, 4096});
  const std::string page =
      render(make_fit_report(question, {}), {Format::table, Detail::summary, 0, Colour::off});
  CHECK(page.find("by memory · the model has 8,192 positions") != std::string::npos);
}

TEST_CASE("other plans keep the schedule, the ranks of ZeRO and what the host holds") {
  PlanQuestion question = question_about("llama-3-70b", Purpose::train, {64, 4096});
  question.devices = 8;
  PlanRequest request;
  request.choice.parallel.pipeline = 4;
  request.choice.parallel.data = 2;
  request.choice.step.schedule = PipelineSchedule::zero_bubble;
  request.choice.zero = Zero::optimizer;
  request.choice.step.zero_ranks = 2;
  request.choice.step.offload = Offload::optimizer;
  request.choice.step.overlap = DataOverlap::on;
  const FitReport report = make_fit_report(question, request);
  REQUIRE_FALSE(report.result.fits);
  REQUIRE(offers<OtherPlan>(report));
  for (const Remedy& remedy : report.remedies) {
    const auto* const other = std::get_if<OtherPlan>(&remedy);
    if (other == nullptr) continue;
    CHECK(other->choice.step.schedule == PipelineSchedule::zero_bubble);
    CHECK(other->choice.step.zero_ranks == 2);
    CHECK(other->choice.step.offload == Offload::optimizer);
    CHECK(other->choice.step.overlap == DataOverlap::on);
    CHECK(report_with(remedy, question, request).result.fits);
  }
}
