// Copies of a token on the way to its experts, by the links that they take. Internal to src/plan.
#pragma once

#include <cstdint>

#include "headroom/op.h"
#include "headroom/parallel_plan.h"

namespace headroom::detail {

/// Ranks that the experts are spread over, and the links between them.
struct ExpertLinks {
  std::int64_t ranks = 1;
  std::int64_t ranks_of_node = 1;
  ExpertExchange exchange = ExpertExchange::direct;
  double inside_bytes_per_s = 1;
  double outside_bytes_per_s = 1;
};

/// Copies of a token that one rank sends, the forwarded ones included.
struct TokenCopies {
  double inside = 0;   ///< to other ranks of the node
  double outside = 0;  ///< to other nodes
};

/// The expected number of places that hold an expert of a token, of `places` with equally many
/// experts each. The router chooses groups, then experts in them, each choice as likely as any
/// other and none twice. A place counts as a whole number of groups, to the nearest, or as a part
/// of one.
[[nodiscard]] double places_of_token(const TokenRouting& routing, std::int64_t places);

/// Expected copies of a token.
[[nodiscard]] TokenCopies copies_of_token(const TokenRouting& routing, const ExpertLinks& links);

}  // namespace headroom::detail
