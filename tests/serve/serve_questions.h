// Questions for the simulation of continuous batching.
#pragma once

#include <string>

#include "headroom/predict.h"
#include "headroom/serve.h"
#include "support/data.h"

namespace headroom::test {

inline ServeQuestion question_for(const std::string& model, const std::string& machine,
                                  const ServeTraffic& traffic) {
  ServeQuestion question;
  question.plan.model = load_model(model);
  question.plan.rates = device_rates(find_machine(machine), Purpose::serve, DType::bfloat16);
  question.traffic = traffic;
  return question;
}

inline ServeTraffic poisson(double rate, std::int64_t requests, std::int64_t input,
                            std::int64_t output) {
  return {PoissonArrivals{rate}, input, output, requests, 1};
}

inline ServeTraffic users(std::int64_t count, std::int64_t requests, std::int64_t input,
                          std::int64_t output) {
  return {UserArrivals{count}, input, output, requests, 1};
}

inline PlanChoice degrees(std::int64_t tensor, std::int64_t pipeline = 1, std::int64_t data = 1) {
  PlanChoice choice;
  choice.parallel.tensor = tensor;
  choice.parallel.pipeline = pipeline;
  choice.parallel.data = data;
  return choice;
}

inline Planner planner_of(const ServeQuestion& question) {
  return {question.plan.model.spec, question.plan.query, question.plan.rates};
}

}  // namespace headroom::test
