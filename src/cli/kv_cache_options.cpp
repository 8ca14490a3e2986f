// Options of a KV-cache: types of keys and values, scales, an engine's policy.
#include <utility>

#include "headroom/kv_cache.h"
#include "options.h"

namespace headroom::cli {
namespace {

/// Every spelling of a DType, and the types that only a KV-cache has.
Choices<KvType> kv_type_choices() {
  Choices<KvType> choices;
  for (const auto& [word, dtype] : dtype_choices()) choices.emplace_back(word, kv_type(dtype));
  for (const KvTypeInfo& type : kv_types()) {
    const bool cache_only = type.counted_as == DType::int8 && type.type != KvType::int8;
    if (cache_only) choices.emplace_back(type.name, type.type);
  }
  return choices;
}

Choices<KvScales> kv_scales_choices() {
  return {{"none", KvScales::none},
          {"tensor", KvScales::tensor},
          {"token-head", KvScales::token_head},
          {"group", KvScales::group},
          {"kivi", KvScales::kivi}};
}

Choices<KvPolicy> kv_policy_choices() {
  Choices<KvPolicy> choices;
  for (const KvPolicyInfo& policy : kv_policies()) choices.emplace_back(policy.name, policy.policy);
  return choices;
}

/// Stores "q8_0", "k=q8_0", "v=float16" or "k=q8_0,v=float16". Throws a usage error.
void parse_types(const std::string& names, const std::string& text, KvCacheRequest& kv_cache) {
  const Choices<KvType> choices = kv_type_choices();
  std::size_t start = 0;
  while (start <= text.size()) {
    const std::size_t end = std::min(text.find(',', start), text.size());
    const std::string part = text.substr(start, end - start);
    if (part.starts_with("k=")) {
      kv_cache.key_type = value_of(names, part.substr(2), choices);
    } else if (part.starts_with("v=")) {
      kv_cache.value_type = value_of(names, part.substr(2), choices);
    } else {
      set_type(kv_cache, value_of(names, part, choices));
    }
    start = end + 1;
  }
}

}  // namespace

std::vector<Option> add_kv_cache_options(Command command, KvCacheRequest& kv_cache,
                                         const char* group) {
  std::vector<Option> options;
  const auto set_types = [&kv_cache](const std::string& text) {
    parse_types("--kv-dtype", text, kv_cache);
  };
  options.push_back(
      command.add_text("--kv-dtype", listed(kv_type_choices()), set_types,
                       "Type of the KV-cache; k=TYPE,v=TYPE for keys and values apart (as "
                       "--dtype)"));
  options.push_back(add_choice(command, "--kv-scales", kv_cache.scales, kv_scales_choices(),
                               "Scales stored with the quantised values (none)"));
  options.push_back(add_choice(command, "--kv-policy", kv_cache.policy, kv_policy_choices(),
                               "Engine whose steady state and reservation are counted (ideal)"));
  const auto add = [&](const char* names, std::optional<std::int64_t>& target,
                       const char* description) {
    const auto set = [&target](std::int64_t n) { target = n; };
    options.push_back(add_count(command, names, set, description));
  };
  add("--kv-block", kv_cache.block, "Tokens per block of a paged policy (the policy's own)");
  add("--kv-capacity", kv_cache.capacity,
      "Tokens per sequence of a policy that reserves for a maximum length (its length)");
  add("--kv-batched-tokens", kv_cache.batched_tokens,
      "Most tokens that one pass adds: vLLM's max_num_batched_tokens (8192), llama.cpp's n_ubatch "
      "(512)");
  add("--kv-slots", kv_cache.slots,
      "Slots of a cache that sequences share in llama.cpp (a cache per sequence)");
  for (Option& option : options) (void)option.group(group);
  return options;
}

}  // namespace headroom::cli
