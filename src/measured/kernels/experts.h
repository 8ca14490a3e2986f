// Routed experts: which rows take which, and in what order they are worked on.
#pragma once

#include <cstdint>
#include <vector>

#include "headroom/model_spec.h"

namespace headroom::measured {

/// Scores of a router, and what of its spec decides the choice.
struct RouterArguments {
  std::int64_t rows = 0;
  std::int64_t num_experts = 0;
  std::int64_t per_token = 0;
  const float* correction_bias = nullptr;  ///< [num_experts], for the choice alone; null for none
};

/// The choices of all rows, ordered by expert: place p is a row's work for one expert, and the
/// places of expert e go from first[e] to first[e + 1].
struct ExpertPlan {
  ExpertPlan(std::int64_t rows, std::int64_t num_experts, std::int64_t per_token);

  std::int64_t rows;
  std::int64_t per_token;
  std::vector<std::int64_t> first;  ///< [num_experts + 1]
  std::vector<std::int64_t> row;    ///< [places]: whose work it is
  std::vector<float> weight;        ///< [places]
  std::vector<std::int64_t> place;  ///< [rows, per_token]: where a row's choices are
};

/// routing [rows, 2, per_token] = the chosen experts of every row, best first, and their weights,
/// from scores [rows, num_experts].
void select_experts(const RouterArguments& args, const ExpertsSpec& spec, const float* scores,
                    float* routing);

/// Orders the choices of `routing` by expert.
void plan_experts(const float* routing, ExpertPlan& plan);

/// out [places, width] = the rows x [rows, width] in the order of `plan`, times their weights where
/// `weighting` is of the input.
void gather_rows(const ExpertPlan& plan, ExpertWeighting weighting, const float* x,
                 std::int64_t width, float* out);

/// out [rows, width] = Σ over a row's places of x [places, width], times their weights where
/// `weighting` is of the output.
void combine_experts(const ExpertPlan& plan, ExpertWeighting weighting, const float* x,
                     std::int64_t width, float* out);

}  // namespace headroom::measured
