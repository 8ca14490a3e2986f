#include "kv_cache_report.h"

#include <fmt/format.h>

#include "describe.h"
#include "with_noun.h"

namespace headroom::detail {

namespace {

Json or_null(const std::optional<std::int64_t>& value) {
  return value ? Json(*value) : Json(nullptr);
}

}  // namespace

std::string describe_format(const KvCacheUse& use) {
  std::string type = name_of_types(use.key_type, use.value_type);
  if (use.scales == KvScales::none) return type;
  return fmt::format("{} with {} scales", type, name_of(use.scales));
}

bool has_policy(const KvCacheUse& use) noexcept { return use.policy != KvPolicy::ideal; }

/// "vllm (0.26 and later)": the policy's name and the versions that it is for.
std::string policy_words(const KvPolicyInfo& policy) {
  if (policy.versions.empty()) return std::string(policy.name);
  return fmt::format("{} ({})", policy.name, policy.versions);
}

std::string describe_steady(const KvCacheUse& use) {
  return fmt::format("{} by {}", describe_bytes(use.steady_bytes), policy_words(info(use.policy)));
}

std::string describe_reserved(const KvCacheUse& use) {
  const KvPolicyInfo& policy = info(use.policy);
  std::string text = fmt::format("{} by {}: {}", describe_bytes(use.reserved_bytes),
                                 policy_words(policy), policy.rule);
  const bool own_block = use.block && *use.block != policy.block;
  if (own_block) text += fmt::format("; here blocks of {}", *use.block);
  if (use.capacity) text += "; here " + with_noun_grouped(*use.capacity, "token");
  if (use.batched_tokens) {
    text += "; here passes of " + with_noun_grouped(*use.batched_tokens, "token");
  }
  if (use.slots) text += "; here one cache of " + with_noun(*use.slots, "slot");
  if (use.prefix_caching) text += "; here with prefix caching";
  if (use.speculative_tokens) {
    text += "; here " + with_noun(*use.speculative_tokens, "speculative token");
  }
  if (use.drafter_layers) {
    text += fmt::format("; here {} of a drafter", with_noun(*use.drafter_layers, "more layer"));
  }
  return text;
}

Table kv_cache_table(const KvCacheUse& use) {
  const Unit unit = byte_unit(std::max(use.used_bytes, use.reserved_bytes));
  Table table;
  table.columns = {words_column("path", "KV-cache"),
                   words_column("growth", "Growth"),
                   number_column("layers", "Layers"),
                   number_column("used_tokens", "Used tokens"),
                   number_column("steady_tokens", "Steady tokens"),
                   number_column("reserved_tokens", "Reserved tokens"),
                   number_column("used_bytes", "Used", in_unit(unit, 2)),
                   number_column("steady_bytes", "Steady", in_unit(unit, 2)),
                   number_column("reserved_bytes", "Reserved", in_unit(unit, 2))};
  const auto tokens = [](const KvCacheRow& row, Integer count) {
    return row.growth == KvGrowth::constant ? Cell{} : Cell{count};
  };
  for (const KvCacheRow& row : use.rows) {
    table.rows.push_back({row.path, std::string(name_of(row.growth)), row.layers,
                          tokens(row, row.used_tokens), tokens(row, row.steady_tokens),
                          tokens(row, row.reserved_tokens), row.used_bytes, row.steady_bytes,
                          row.reserved_bytes});
  }
  table.rows.push_back({"total", "", Cell{}, Cell{}, Cell{}, Cell{}, use.used_bytes,
                        use.steady_bytes, use.reserved_bytes});
  table.total_rows = 1;
  return table;
}

Json to_json(const KvCacheUse& use) {
  const KvPolicyInfo& policy = info(use.policy);
  Json json;
  json["policy"] = policy.name;
  json["rule"] = policy.rule;
  json["source"] = policy.source;
  json["block_tokens"] = or_null(use.block);
  json["capacity_tokens"] = or_null(use.capacity);
  json["batched_tokens"] = or_null(use.batched_tokens);
  json["slots"] = or_null(use.slots);
  json["prefix_caching"] = use.prefix_caching;
  json["speculative_tokens"] = or_null(use.speculative_tokens);
  json["drafter_layers"] = or_null(use.drafter_layers);
  json["dtype"] = name_of_types(use.key_type, use.value_type);
  json["key_dtype"] = info(use.key_type).name;
  json["value_dtype"] = info(use.value_type).name;
  json["scales"] = name_of(use.scales);
  json["used_bytes"] = json_integer(use.used_bytes);
  json["scale_bytes"] = json_integer(use.scale_bytes);
  json["steady_bytes"] = json_integer(use.steady_bytes);
  json["reserved_bytes"] = json_integer(use.reserved_bytes);
  json["layers"] = Json::array();
  for (const KvCacheRow& row : use.rows) {
    const auto tokens = [&](Integer count) {
      return row.growth == KvGrowth::constant ? Json(nullptr) : json_integer(count);
    };
    json["layers"].push_back({{"path", row.path},
                              {"growth", name_of(row.growth)},
                              {"layers", json_integer(row.layers)},
                              {"used_tokens", tokens(row.used_tokens)},
                              {"steady_tokens", tokens(row.steady_tokens)},
                              {"reserved_tokens", tokens(row.reserved_tokens)},
                              {"used_bytes", json_integer(row.used_bytes)},
                              {"steady_bytes", json_integer(row.steady_bytes)},
                              {"reserved_bytes", json_integer(row.reserved_bytes)}});
  }
  return json;
}

std::string describe_request(const KvCacheRequest& request, const std::string& types) {
  std::string text = types;
  if (request.scales != KvScales::none) {
    text += fmt::format(" with {} scales", name_of(request.scales));
  }
  if (request.policy != KvPolicy::ideal) {
    text += fmt::format(" by {}", policy_words(info(request.policy)));
  }
  return text;
}

Json request_json(const KvCacheRequest& request) {
  return {{"policy", info(request.policy).name},
          {"scales", name_of(request.scales)},
          {"block_tokens", or_null(request.block)},
          {"capacity_tokens", or_null(request.capacity)},
          {"batched_tokens", or_null(request.batched_tokens)},
          {"slots", or_null(request.slots)},
          {"prefix_caching", request.prefix_caching},
          {"speculative_tokens", or_null(request.speculative_tokens)},
          {"drafter_layers", or_null(request.drafter_layers)}};
}

}  // namespace headroom::detail
