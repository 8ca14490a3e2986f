#include "cross_attention.h"

#include <algorithm>
#include <string>
#include <utility>

namespace headroom::detail {

void count_unused_cross_attention(ModelSpec& spec) {
  const StackSpec& stack = spec.main_stack();
  const std::string path = spec.decoder ? "decoder.layers." : "encoder.layers.";
  const std::int64_t width = spec.hidden_size;
  const auto add = [&](const std::string& name, std::vector<std::int64_t> shape, WeightRole role) {
    spec.counted_only.push_back({path + "cross_attention" + name, std::move(shape), role,
                                 stack.num_layers, ModelPart::text,
                                 CountedUse::unused_cross_attention});
  };
  for (const std::string name : {".query", ".key", ".value", ".output"}) {
    add(name + ".weight", {width, width}, WeightRole::attention);
    const bool has_bias = name != ".key" || stack.self_attention.key_bias;
    if (has_bias) add(name + ".bias", {width}, WeightRole::attention);
  }
  add("_norm.weight", {width}, WeightRole::norm);
  add("_norm.bias", {width}, WeightRole::norm);
}

bool keeps_cross_attention(const ModelSpec& spec) {
  return std::ranges::any_of(spec.counted_only, [](const CountedWeight& weight) {
    return weight.use == CountedUse::unused_cross_attention;
  });
}

}  // namespace headroom::detail
