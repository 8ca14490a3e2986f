#include "expert_exchange.h"

#include <algorithm>
#include <cmath>

#include "headroom/expr.h"

namespace headroom::detail {
namespace {

/// The probability that `draws` without replacement of `all` hit none of `marked`.
double misses_all(double all, double marked, std::int64_t draws) {
  double probability = 1;
  for (std::int64_t i = 0; i < draws; ++i) {
    const auto drawn = static_cast<double>(i);
    probability *= std::max(0.0, all - marked - drawn) / (all - drawn);
  }
  return probability;
}

double binomial(std::int64_t n, std::int64_t k) {
  if (k < 0 || k > n) return 0;
  double result = 1;
  for (std::int64_t i = 1; i <= k; ++i) {
    result *= static_cast<double>(n - k + i) / static_cast<double>(i);
  }
  return result;
}

}  // namespace

double places_of_token(const TokenRouting& routing, std::int64_t places) {
  const auto experts_of_place = static_cast<double>(routing.experts) / static_cast<double>(places);
  const auto experts_of_group =
      static_cast<double>(routing.experts) / static_cast<double>(routing.groups);
  const std::int64_t groups_of_place =
      std::max<std::int64_t>(1, std::llround(experts_of_place / experts_of_group));
  const double marked = std::min(experts_of_place, experts_of_group);
  const double eligible = experts_of_group * static_cast<double>(routing.chosen_groups);
  // A token of fewer eligible experts takes all of them.
  const std::int64_t draws = std::min(routing.per_token, static_cast<std::int64_t>(eligible));
  double misses = 0;
  for (std::int64_t chosen = 0; chosen <= groups_of_place; ++chosen) {
    const double ways = binomial(groups_of_place, chosen) *
                        binomial(routing.groups - groups_of_place, routing.chosen_groups - chosen);
    misses += ways * misses_all(eligible, marked * static_cast<double>(chosen), draws);
  }
  misses /= binomial(routing.groups, routing.chosen_groups);
  return static_cast<double>(places) * (1 - misses);
}

TokenCopies copies_of_token(const TokenRouting& routing, const ExpertLinks& links) {
  const auto ranks = static_cast<double>(links.ranks);
  const auto of_node = static_cast<double>(links.ranks_of_node);
  switch (links.exchange) {
    case ExpertExchange::direct: {
      const auto copies = static_cast<double>(routing.per_token);
      return {copies * (of_node - 1) / ranks, copies * (ranks - of_node) / ranks};
    }
    case ExpertExchange::by_node:
      break;
  }
  const std::int64_t nodes = ceil_div(links.ranks, links.ranks_of_node);
  const auto others = static_cast<double>(nodes - 1) / static_cast<double>(nodes);
  // A copy enters a node at the rank with its sender's place.
  return {places_of_token(routing, links.ranks) * (of_node - 1) / of_node,
          places_of_token(routing, nodes) * others};
}

}  // namespace headroom::detail
