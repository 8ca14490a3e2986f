#include "sparse_stacks.h"

#include <algorithm>

#include "decoder.h"

namespace headroom::detail {
namespace {

bool has_experts(const StackSpec& stack) {
  const auto routes = [](const LayerVariant& variant) { return variant.ffn.experts.has_value(); };
  return stack.ffn.experts || std::ranges::any_of(stack.variants, routes);
}

}  // namespace

void set_sparse_layers(StackSpec& stack, const std::vector<bool>& sparse, ExpertsSpec experts) {
  experts.intermediate_size = stack.ffn.intermediate_size;
  set_experts(stack, sparse, experts);
}

void require_experts_in_both(const ConfigReader& config, const ModelSpec& spec,
                             std::string_view key) {
  if (!spec.decoder) return;
  if (has_experts(*spec.encoder) == has_experts(*spec.decoder)) return;
  config.fail(key, "leaves one of both stacks without experts, which is not supported",
              "give experts to layers of both stacks, or of none");
}

}  // namespace headroom::detail
