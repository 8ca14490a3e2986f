// The symbolic sizes inside an operator. Internal to src/graph and src/plan.
#pragma once

#include <array>
#include <functional>

#include "headroom/op.h"

namespace headroom::detail {

/// Sizes that tensor parallelism divides (arXiv 1909.08053, section 3; groups of state-space heads:
/// arXiv 2405.21060, section 8.2; heads of gated delta layers: vLLM's QwenGatedDeltaNetAttention).
inline constexpr std::array kDividedSizes{
    Symbol::num_attention_heads,      Symbol::num_key_value_heads, Symbol::n_groups,
    Symbol::linear_num_key_heads,     Symbol::intermediate_size,   Symbol::moe_intermediate_size,
    Symbol::shared_intermediate_size, Symbol::vocab_size};

/// Applies `change` to every Expr of `op`.
[[nodiscard]] Op map_exprs(Op op, const std::function<Expr(const Expr&)>& change);

/// True if a size that tensor parallelism divides occurs in `expr` or in an Expr of `op`.
[[nodiscard]] bool mentions_divided(const Expr& expr) noexcept;
[[nodiscard]] bool mentions_divided(const Op& op);

}  // namespace headroom::detail
