#include "remedy_options.h"

#include "visit.h"

namespace headroom::cli {
namespace {

std::vector<OptionValue> options_of(const OtherPlan& other) {
  const ParallelPlan& plan = other.choice.parallel;
  std::vector<OptionValue> options{{"--count", std::to_string(plan.devices())},
                                   {"--batch", std::to_string(other.batch_size)},
                                   {"--interleave", {}},
                                   {"--micro-batch", {}}};
  if (other.micro_batch) options.back().value = std::to_string(*other.micro_batch);
  const auto add = [&](const char* name, std::int64_t degree) {
    options.push_back({name, degree > 1 ? std::to_string(degree) : std::string()});
  };
  add("--tp", plan.tensor);
  options.push_back({"--sp", plan.sequence == SequenceParallel::on ? "on" : ""});
  add("--pp", plan.pipeline);
  add("--dp", plan.data);
  add("--ep", plan.expert);
  add("--cp", plan.context);
  return options;
}

}  // namespace

std::vector<OptionValue> options_of(const Remedy& remedy) {
  using Options = std::vector<OptionValue>;
  return std::visit(Overloaded{[](const OtherPlan& other) { return options_of(other); },
                               [](const OtherFormats& other) {
                                 return Options{
                                     {"--weights", other.weights ? name_of(*other.weights) : ""},
                                     {"--kv-dtype", std::string(name_of(other.kv_dtype))}};
                               },
                               [](const OtherRecomputation& other) {
                                 return Options{{"--recompute", name_of(other.recompute)}};
                               },
                               [](const ShorterContext& shorter) {
                                 return Options{{"--seq", std::to_string(shorter.seq_len)}};
                               },
                               [](const SmallerBatch& smaller) {
                                 return Options{{"--batch", std::to_string(smaller.batch_size)}};
                               }},
                    remedy);
}

}  // namespace headroom::cli
