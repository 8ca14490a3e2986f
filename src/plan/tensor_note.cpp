// A note on searches that cannot vary tensor parallelism.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string_view>

#include "headroom/plan.h"

namespace headroom {
namespace {

struct Reason {
  PlanRule rule;
  std::string_view text;
};
constexpr Reason kReasons[] = {
    {PlanRule::layers_with_attention,
     "its layers are recurrent or convolutional, or state-space layers without attention"},
    {PlanRule::layers_without_compression, "its attention reads compressed keys"},
    {PlanRule::whole_denoiser, "it is a diffusion transformer"},
    {PlanRule::tensor_uniform_layers,
     "its layers have heads or intermediate sizes of their own, or no output projection"},
};

}  // namespace

std::optional<std::string> note_on_tensor(const ShardingLimits& limits, const FixedDegrees& fixed,
                                          std::int64_t devices) {
  if (fixed.tensor || devices == 1) return std::nullopt;
  const auto rule = rule_against_tensor(limits);
  if (!rule) return std::nullopt;
  const auto reason = std::ranges::find(kReasons, *rule, &Reason::rule);
  if (reason == std::end(kReasons)) return std::nullopt;
  return fmt::format(
      "tensor parallelism is not modelled for this model: {}; plans with it may be faster",
      reason->text);
}

}  // namespace headroom
