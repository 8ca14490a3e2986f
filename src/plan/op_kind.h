// Kinds of operators that parallelism treats differently. Internal to src/plan.
#pragma once

#include "headroom/graph.h"

namespace headroom::detail {

enum class OpKind {
  word_embedding,          ///< tensor parallelism divides its table by words
  relative_position_bias,  ///< every pipeline stage computes its own table
  linear,                  ///< GEMM with one weight for all rows
  expert_linear,           ///< GEMM with the weights of each row's routed experts
  expert_combine,
  eager_attention,  ///< stores [heads, queries, keys]
  fused_attention,
  indexer,           ///< every rank scores and chooses all keys
  linear_attention,  ///< attention through a running state
  activation,
  loss,
  collective,
  other,  ///< divided if one of its sizes is, otherwise equal on every rank
};

/// The kind of `op`; a new operator does not compile without one.
[[nodiscard]] OpKind kind_of(const Op& op);

/// True if an operator of `graph` has this kind.
[[nodiscard]] bool has_kind(const Graph& graph, OpKind kind);

}  // namespace headroom::detail
