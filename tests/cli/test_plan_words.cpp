// Rules of plans in the words of the command line. Rules that options can break have golden cases,
// too; no option takes a value below 1.
#include <doctest/doctest.h>

#include <set>
#include <string>
#include <string_view>

#include "headroom/plan.h"
#include "plan_violations.h"

using namespace headroom;

namespace {

PlanViolation violation_of(PlanRule rule) {
  PlanViolation violation{rule, {}, {}, {}};
  violation.choice.parallel.tensor = 3;
  violation.choice.parallel.pipeline = 5;
  violation.choice.micro_batch = 1;
  violation.load.batch_size = 8;
  violation.limits.state_groups = 8;
  violation.limits.delta_key_heads = 16;
  violation.limits.joined_layers = {1};
  return violation;
}

Error worded(const PlanViolation& violation) { return cli::with_options(IllegalPlan(violation)); }

std::string message_of(PlanRule rule) { return worded(violation_of(rule)).message(); }

}  // namespace

TEST_CASE("every rule of plans has words of its own, with options and without fields") {
  std::set<std::string> messages;
  const int last = static_cast<int>(PlanRule::loss_chunks_tokens);
  for (int rule = 0; rule <= last; ++rule) {
    const Error error = worded(violation_of(static_cast<PlanRule>(rule)));
    CAPTURE(error.message());
    CHECK(error.code() == ErrorCode::invalid_input);
    CHECK(messages.insert(error.message()).second);
    CHECK(error.message().find('_') == std::string::npos);
    const bool names_option = error.message().find("--") != std::string::npos;
    CHECK((names_option || rule == static_cast<int>(PlanRule::degrees_positive)));
  }
}

TEST_CASE("sizes below 1 are named by their option") {
  PlanViolation violation = violation_of(PlanRule::batch_size_positive);
  violation.load.batch_size = 0;
  CHECK(worded(violation).message() == "--batch must be at least 1, not 0");
  violation.rule = PlanRule::seq_len_positive;
  violation.load.seq_len = -1;
  CHECK(worded(violation).message() == "--seq must be at least 1, not -1");
  violation.rule = PlanRule::micro_batch_positive;
  violation.choice.micro_batch = 0;
  CHECK(worded(violation).message() == "--micro-batch must be at least 1, not 0");
  violation.rule = PlanRule::recompute_interval_positive;
  violation.choice.recompute.every = 0;
  CHECK(worded(violation).message() == "--recompute every must be at least 1, not 0");
  violation.rule = PlanRule::loss_chunks_positive;
  violation.choice.step.loss_chunks = 0;
  CHECK(worded(violation).message() == "--loss-chunks must be at least 1, not 0");
  CHECK(message_of(PlanRule::degrees_positive) == "every degree of parallelism must be at least 1");
}

TEST_CASE("what tensor parallelism does not divide is counted") {
  CHECK(message_of(PlanRule::tensor_state_groups) ==
        "--tp 3 neither divides 8 groups of state-space heads nor is a multiple of them");
  CHECK(message_of(PlanRule::tensor_delta_key_heads) ==
        "--tp 3 does not divide 16 key heads of gated delta layers");
}

TEST_CASE("layers without attention in one piece are left to data parallelism") {
  PlanViolation violation = violation_of(PlanRule::layers_with_attention);
  CHECK(worded(violation).hint() == "use --dp or --pp, which leave layers whole");
  violation.limits.separable_layers = false;
  CHECK(worded(violation).hint() == "use --dp, which leaves layers whole");
}

TEST_CASE("the two-batch overlap of training names the schedule that hides the exchange") {
  const Error error = worded(violation_of(PlanRule::overlap_serves));
  CHECK(error.message() == "--two-batch-overlap applies only to serving");
  CHECK(error.hint() == "in training, --schedule dual-pipe hides the exchange with experts");
}
