// Options of a KV-cache: types of keys and values, scales, an engine's policy.
#include <utility>

#include "headroom/storage.h"
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

/// Parses "q8_0", "k=q8_0" or "v=float16".
KvTypes parse_part(const std::string& names, const std::string& part) {
  const Choices<KvType> choices = kv_type_choices();
  if (part.starts_with("k=")) return {value_of(names, part.substr(2), choices), std::nullopt};
  if (part.starts_with("v=")) return {std::nullopt, value_of(names, part.substr(2), choices)};
  const KvType both = value_of(names, part, choices);
  return {both, both};
}

/// Returns whether one says the type of keys only, and the other that of values only.
bool complete_each_other(const KvTypes& a, const KvTypes& b) {
  return a.key.has_value() == b.value.has_value() && a.value.has_value() == b.key.has_value() &&
         a.key.has_value() != a.value.has_value();
}

}  // namespace

std::string kv_type_words() { return listed(kv_type_choices()); }

std::vector<KvTypes> parse_kv_types(const std::string& names, const std::string& text) {
  std::vector<KvTypes> types;
  std::size_t start = 0;
  while (start <= text.size()) {
    const std::size_t end = std::min(text.find(',', start), text.size());
    const KvTypes part = parse_part(names, text.substr(start, end - start));
    if (!types.empty() && complete_each_other(types.back(), part)) {
      KvTypes& open = types.back();
      (part.key ? open.key : open.value) = part.key ? part.key : part.value;
    } else {
      types.push_back(part);
    }
    start = end + 1;
  }
  return types;
}

std::vector<Option> add_kv_cache_options(Command command, KvCacheRequest& kv_cache,
                                         const char* group) {
  std::vector<Option> options;
  const auto store_types = [&kv_cache](const std::string& text) {
    const std::vector<KvTypes> types = parse_kv_types("--kv-dtype", text);
    if (types.size() > 1) {
      refuse_value("--kv-dtype", "takes one TYPE, or k=TYPE,v=TYPE, not \"" + text + "\"");
    }
    set_types(kv_cache, types.front());
  };
  options.push_back(command.add_text("--kv-dtype", kv_type_words(), store_types,
                                     "Type of the KV-cache; k=TYPE,v=TYPE sets keys and values "
                                     "separately (the config's, else as --dtype)"));
  options.push_back(add_choice(command, "--kv-scales", kv_cache.scales, kv_scales_choices(),
                               "Scales stored with the quantised values (none)"));
  options.push_back(add_choice(command, "--kv-policy", kv_cache.policy, kv_policy_choices(),
                               "Engine whose memory to count, held and reserved (ideal)"));
  const auto add = [&](const char* names, std::optional<std::int64_t>& target,
                       const char* description) {
    const auto set = [&target](std::int64_t n) { target = n; };
    options.push_back(add_count(command, names, set, description));
  };
  add("--kv-block", kv_cache.block, "Tokens per block of a paged policy (the policy's own)");
  add("--kv-capacity", kv_cache.capacity,
      "Tokens per sequence of a policy that reserves for a maximum length (its length)");
  add("--kv-batched-tokens", kv_cache.batched_tokens,
      "Maximum tokens per pass: vLLM's max_num_batched_tokens (8192), llama.cpp's n_ubatch (512)");
  add("--kv-slots", kv_cache.slots,
      "Slots that share one cache in llama.cpp (one cache per sequence)");
  options.push_back(command.add_flag("--kv-prefix-caching", kv_cache.prefix_caching,
                                     "Prefix caching of vLLM: a second state per sequence in "
                                     "recurrent layers"));
  add("--kv-speculative-tokens", kv_cache.speculative_tokens,
      "Draft tokens per step in vLLM: one more state each in recurrent layers (0)");
  add("--kv-drafter-layers", kv_cache.drafter_layers,
      "Full-attention layers of a vLLM drafter, such as MTP's (0)");
  for (Option& option : options) (void)option.group(group);
  return options;
}

}  // namespace headroom::cli
