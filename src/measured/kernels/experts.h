// Routed experts: selection of experts per row, and the order of the work by expert.
#pragma once

#include <cstdint>
#include <vector>

#include "headroom/model_spec.h"

namespace headroom::measured {

/// Sizes of a router, and its correction bias.
struct RouterArguments {
  std::int64_t rows = 0;
  std::int64_t num_experts = 0;
  std::int64_t per_token = 0;
  const float* correction_bias = nullptr;  ///< [num_experts], affects selection only; null for none
  const float* expert_scale = nullptr;     ///< [num_experts], times the weights; null for none
  /// [vocab, per_token] experts by token id, of which the remainders by `num_experts` count; null
  /// for a choice by scores.
  const float* token_experts = nullptr;
  const std::int64_t* ids = nullptr;  ///< [rows], of the tokens
};

/// Selected (row, expert) pairs ordered by expert. Slot p is one pair; the slots of expert e are
/// [first[e], first[e + 1]).
struct ExpertPlan {
  ExpertPlan(std::int64_t rows, std::int64_t num_experts, std::int64_t per_token);

  std::int64_t rows;
  std::int64_t per_token;
  std::vector<std::int64_t> first;  ///< [num_experts + 1]
  std::vector<std::int64_t> row;    ///< [slots], row of the slot
  std::vector<float> weight;        ///< [slots], routing weight
  std::vector<std::int64_t> slot;   ///< [rows, per_token], slots of a row
};

/// Selects the experts of every row from scores [rows, num_experts]. routing [rows, 2, per_token] =
/// expert indices, best first, then their weights.
void select_experts(const RouterArguments& args, const ExpertsSpec& spec, const float* scores,
                    float* routing);

/// Orders the selections of `routing` by expert.
void plan_experts(const float* routing, ExpertPlan& plan);

/// out [slots, width] = the rows of x [rows, width] in the order of `plan`, times their weights if
/// `weighting` is input.
void gather_rows(const ExpertPlan& plan, ExpertWeighting weighting, const float* x,
                 std::int64_t width, float* out);

/// out [rows, width] = Σ over a row's slots of x [slots, width], times their weights if `weighting`
/// is output.
void combine_experts(const ExpertPlan& plan, ExpertWeighting weighting, const float* x,
                     std::int64_t width, float* out);

}  // namespace headroom::measured
