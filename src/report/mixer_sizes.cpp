#include "mixer_sizes.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "headroom/expr.h"
#include "used_variants.h"

namespace headroom::detail {
namespace {

/// "64 = 2·h" where formulas have a multiple of the heads that `symbol` counts, else "64".
std::string multiple_of(std::int64_t count, std::int64_t heads, Symbol symbol) {
  if (heads == 0 || count % heads != 0) return fmt::format("{}", count);
  return fmt::format("{} = {}", count, format(Integer{count / heads} * Expr(symbol)));
}

std::string sizes_of(const GatedDeltaSpec& spec) {
  const std::string heads =
      multiple_of(spec.num_value_heads, spec.num_key_heads, Symbol::linear_num_key_heads);
  std::string text = fmt::format("gated delta: {} key heads of {}, {} value heads of {}, kernel {}",
                                 spec.num_key_heads, spec.key_head_dim, heads, spec.value_head_dim,
                                 spec.conv_kernel_dim);
  if (spec.projection_rank > 0) text += fmt::format(", rank {}", spec.projection_rank);
  return text;
}

/// `heads`: those of attention.
std::string sizes_of(const StateSpaceSpec& spec, std::int64_t heads) {
  const std::string count = multiple_of(spec.num_heads, heads, Symbol::num_attention_heads);
  std::string text = spec.head_dim == 1
                         ? fmt::format("state space: {} channels", count)
                         : fmt::format("state space: {} heads of {}", count, spec.head_dim);
  text += fmt::format(", state {}", spec.state_size);
  if (spec.num_groups > 1) text += fmt::format(", {} groups", spec.num_groups);
  if (spec.conv_kernel_dim > 0) text += fmt::format(", kernel {}", spec.conv_kernel_dim);
  if (spec.time_step_rank > 0) text += fmt::format(", time-step rank {}", spec.time_step_rank);
  return text;
}

std::string sizes_of(const ShortConvolutionSpec& spec) {
  return fmt::format("short convolution: kernel {}", spec.kernel_size);
}

void add_new(std::string text, std::vector<std::string>& texts) {
  if (std::ranges::find(texts, text) == texts.end()) texts.push_back(std::move(text));
}

}  // namespace

std::vector<std::string> mixer_sizes(const ModelSpec& spec) {
  const StackSpec& stack = spec.main_stack();
  std::vector<std::string> texts;
  for (const std::size_t variant : used_variants(stack)) {
    const AttentionSpec& attention = stack.attention_of(variant);
    if (attention.gated_delta) add_new(sizes_of(*attention.gated_delta), texts);
    if (attention.state_space) {
      add_new(sizes_of(*attention.state_space, stack.self_attention.num_attention_heads), texts);
    }
    if (attention.short_convolution) add_new(sizes_of(*attention.short_convolution), texts);
  }
  return texts;
}

}  // namespace headroom::detail
