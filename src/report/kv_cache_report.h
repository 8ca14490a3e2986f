// A KV-cache as stored and reserved: text, table and JSON. Internal to src/report.
#pragma once

#include <string>

#include "document.h"
#include "headroom/storage.h"
#include "json_writer.h"

namespace headroom::detail {

/// "int4 with token-head scales", or the type alone.
[[nodiscard]] std::string describe_format(const KvCacheUse& use);

/// True unless the policy is ideal, which reserves what it uses.
[[nodiscard]] bool has_policy(const KvCacheUse& use) noexcept;

/// "1.00 GiB by vllm"
[[nodiscard]] std::string describe_steady(const KvCacheUse& use);

/// "1.00 GiB by vllm: blocks of 16 tokens, …"
[[nodiscard]] std::string describe_reserved(const KvCacheUse& use);

/// Tokens and bytes, used, held in the steady state and reserved, of each kind of layers.
[[nodiscard]] Table kv_cache_table(const KvCacheUse& use);

[[nodiscard]] Json to_json(const KvCacheUse& use);

/// "q8_0 by llama.cpp", "int4 with group scales", or the types alone.
[[nodiscard]] std::string describe_request(const KvCacheRequest& request, const std::string& types);
/// Scales, policy and its options.
[[nodiscard]] Json request_json(const KvCacheRequest& request);

}  // namespace headroom::detail
