#include "experts.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>

#include "parallel.h"
#include "scalar_math.h"
#include "softmax.h"
#include "tile_multiply.h"

namespace headroom::measured {
namespace {

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }

/// Index of the largest value; of equal ones the first.
std::int64_t index_of_best(std::span<const float> values) {
  return std::max_element(values.begin(), values.end()) - values.begin();
}

/// Score of a group of experts.
float score_of_group(std::span<const float> group, GroupScore kind) {
  const float best = *std::ranges::max_element(group);
  if (kind == GroupScore::best || group.size() < 2) return best;
  const std::int64_t at = index_of_best(group);
  float second = kMinusInfinity;
  for (std::int64_t i = 0; i < std::ssize(group); ++i) {
    if (i != at) second = std::max(second, group[index(i)]);
  }
  return best + second;
}

/// Masks the experts outside the chosen groups.
void mask_groups(const ExpertsSpec& spec, std::vector<float>& choice) {
  if (spec.chosen_groups >= spec.num_groups) return;
  const std::size_t size = choice.size() / index(spec.num_groups);
  std::vector<float> group_scores;
  for (std::size_t group = 0; group < index(spec.num_groups); ++group) {
    group_scores.push_back(
        score_of_group(std::span(choice).subspan(group * size, size), spec.group_score));
  }
  std::vector<bool> is_chosen(group_scores.size(), false);
  for (std::int64_t i = 0; i < spec.chosen_groups; ++i) {
    const std::int64_t best = index_of_best(group_scores);
    is_chosen[index(best)] = true;
    group_scores[index(best)] = kMinusInfinity;
  }
  for (std::size_t i = 0; i < choice.size(); ++i) {
    if (!is_chosen[i / size]) choice[i] = kMinusInfinity;
  }
}

/// SparseMixer in inference: selects the best remaining expert and weighs it against those whose
/// scores are within the jitter of the best (arXiv 2409.12136, appendix).
float sparse_mixer_weight(std::vector<float>& remaining, std::span<const float> scores,
                          float jitter, std::int64_t& expert) {
  expert = index_of_best(remaining);
  const float maximum = remaining[index(expert)];
  float total = 0;
  for (std::size_t i = 0; i < remaining.size(); ++i) {
    const float scale = std::max(std::abs(scores[i]), maximum);
    const bool near = (maximum - scores[i]) / scale <= 2 * jitter;
    if (near && remaining[i] != kMinusInfinity) total += std::exp(remaining[i] - maximum);
  }
  remaining[index(expert)] = kMinusInfinity;
  return 1.0F / total;
}

/// Routing of one row.
class RowRouter {
 public:
  RowRouter(const RouterArguments& args, const ExpertsSpec& spec) : args_(args), spec_(spec) {}

  void route(std::int64_t row, const float* scores, float* experts, float* weights) {
    probabilities_.assign(scores, scores + args_.num_experts);
    if (spec_.scoring == RouterScoring::sparse_mixer) return mix(scores, experts, weights);
    score();
    if (args_.token_experts != nullptr) return look_up(args_.ids[row], experts, weights);
    choice_ = probabilities_;
    if (args_.correction_bias != nullptr) {
      for (std::size_t i = 0; i < choice_.size(); ++i) choice_[i] += args_.correction_bias[i];
    }
    mask_groups(spec_, choice_);
    for (std::int64_t k = 0; k < args_.per_token; ++k) {
      const std::int64_t best = index_of_best(choice_);
      experts[k] = static_cast<float>(best);
      weights[k] = probabilities_[index(best)];
      choice_[index(best)] = kMinusInfinity;
    }
    normalize(weights);
    if (args_.expert_scale == nullptr) return;
    for (std::int64_t k = 0; k < args_.per_token; ++k) {
      weights[k] *= args_.expert_scale[static_cast<std::int64_t>(experts[k])];
    }
  }

 private:
  /// The experts of a token id, with their own scores as weights.
  void look_up(std::int64_t id, float* experts, float* weights) const {
    for (std::int64_t k = 0; k < args_.per_token; ++k) {
      const float stored = args_.token_experts[id * args_.per_token + k];
      const std::int64_t expert = static_cast<std::int64_t>(stored) % args_.num_experts;
      experts[k] = static_cast<float>(expert);
      weights[k] = probabilities_[index(expert)];
    }
    normalize(weights);
  }

  void score() {
    switch (spec_.scoring) {
      case RouterScoring::softmax:
        softmax({.keys = args_.num_experts, .visible = args_.num_experts}, probabilities_.data());
        break;
      case RouterScoring::sigmoid:
        for (float& value : probabilities_) value = sigmoid(value);
        break;
      case RouterScoring::sqrt_softplus:
        for (float& value : probabilities_) value = std::sqrt(softplus(value));
        break;
      case RouterScoring::softmax_of_chosen:
      case RouterScoring::sigmoid_of_chosen:
      case RouterScoring::sparse_mixer:
        break;
    }
  }

  void mix(const float* scores, float* experts, float* weights) {
    const std::span<const float> all(scores, index(args_.num_experts));
    for (std::int64_t k = 0; k < args_.per_token; ++k) {
      std::int64_t expert = 0;
      weights[k] =
          sparse_mixer_weight(probabilities_, all, static_cast<float>(spec_.jitter_eps), expert);
      experts[k] = static_cast<float>(expert);
    }
  }

  void normalize(float* weights) const {
    if (spec_.scoring == RouterScoring::softmax_of_chosen) {
      softmax({.keys = args_.per_token, .visible = args_.per_token}, weights);
    }
    if (spec_.scoring == RouterScoring::sigmoid_of_chosen) {
      std::transform(weights, weights + args_.per_token, weights, sigmoid);
    }
    float factor = static_cast<float>(spec_.scaling_factor);
    if (spec_.normalise) factor /= std::accumulate(weights, weights + args_.per_token, 0.0F);
    for (std::int64_t k = 0; k < args_.per_token; ++k) weights[k] *= factor;
  }

  const RouterArguments& args_;
  const ExpertsSpec& spec_;
  std::vector<float> probabilities_;
  std::vector<float> choice_;
};

}  // namespace

ExpertPlan::ExpertPlan(std::int64_t row_count, std::int64_t num_experts,
                       std::int64_t experts_per_row)
    : rows(row_count),
      per_token(experts_per_row),
      first(index(num_experts + 1)),
      row(index(rows * per_token)),
      weight(index(rows * per_token)),
      slot(index(rows * per_token)) {}

void select_experts(const RouterArguments& args, const ExpertsSpec& spec, const float* scores,
                    float* routing) {
#pragma omp parallel if (args.rows * args.num_experts >= kSerialElements)
  {
    RowRouter router(args, spec);
#pragma omp for schedule(static)
    for (std::int64_t row = 0; row < args.rows; ++row) {
      float* const experts = routing + row * 2 * args.per_token;
      router.route(row, scores + row * args.num_experts, experts, experts + args.per_token);
    }
  }
}

void plan_experts(const float* routing, ExpertPlan& plan) {
  std::ranges::fill(plan.first, 0);
  const auto expert_of = [&](std::int64_t row, std::int64_t k) {
    return static_cast<std::size_t>(routing[row * 2 * plan.per_token + k]);
  };
  for (std::int64_t row = 0; row < plan.rows; ++row) {
    for (std::int64_t k = 0; k < plan.per_token; ++k) ++plan.first[expert_of(row, k) + 1];
  }
  std::partial_sum(plan.first.begin(), plan.first.end(), plan.first.begin());
  std::vector<std::int64_t> next(plan.first.begin(), plan.first.end() - 1);
  for (std::int64_t row = 0; row < plan.rows; ++row) {
    for (std::int64_t k = 0; k < plan.per_token; ++k) {
      const std::int64_t slot = next[expert_of(row, k)]++;
      plan.row[index(slot)] = row;
      plan.weight[index(slot)] = routing[row * 2 * plan.per_token + plan.per_token + k];
      plan.slot[index(row * plan.per_token + k)] = slot;
    }
  }
}

void gather_rows(const ExpertPlan& plan, ExpertWeighting weighting, const float* x,
                 std::int64_t width, float* out) {
  const auto slots = std::ssize(plan.row);
#pragma omp parallel for if (slots * width >= kSerialElements) schedule(static)
  for (std::int64_t slot = 0; slot < slots; ++slot) {
    const float* const from = x + plan.row[index(slot)] * width;
    float* const to = out + slot * width;
    std::copy_n(from, width, to);
    if (weighting == ExpertWeighting::output) continue;
    for (std::int64_t i = 0; i < width; ++i) to[i] *= plan.weight[index(slot)];
  }
}

void combine_experts(const ExpertPlan& plan, ExpertWeighting weighting, const float* x,
                     std::int64_t width, float* out) {
#pragma omp parallel for if (plan.rows * width >= kSerialElements) schedule(static)
  for (std::int64_t row = 0; row < plan.rows; ++row) {
    float* const to = out + row * width;
    std::fill_n(to, width, 0.0F);
    for (std::int64_t k = 0; k < plan.per_token; ++k) {
      const std::int64_t slot = plan.slot[index(row * plan.per_token + k)];
      const float weight = weighting == ExpertWeighting::output ? plan.weight[index(slot)] : 1.0F;
      add_scaled(weight, x + slot * width, width, to);
    }
  }
}

}  // namespace headroom::measured
