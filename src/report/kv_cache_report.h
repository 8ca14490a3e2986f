// A KV-cache as stored and reserved: text, table and JSON. Internal to src/report.
#pragma once

#include <string>

#include "document.h"
#include "headroom/kv_cache.h"
#include "json_writer.h"

namespace headroom::detail {

/// "int4 with token-head scales", or the type alone.
[[nodiscard]] std::string describe_format(const KvCacheUse& use);

/// True unless the policy is ideal, which reserves what it uses.
[[nodiscard]] bool has_policy(const KvCacheUse& use) noexcept;

/// "1.00 GiB by vllm: blocks of 16 tokens, …"
[[nodiscard]] std::string describe_reserved(const KvCacheUse& use);

/// Tokens and bytes, used and reserved, of each kind of layers.
[[nodiscard]] Table kv_cache_table(const KvCacheUse& use);

[[nodiscard]] Json to_json(const KvCacheUse& use);

}  // namespace headroom::detail
