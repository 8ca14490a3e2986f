// A KV-cache as it is stored and reserved: words, table and JSON. Internal to src/report.
#pragma once

#include <string>

#include "document.h"
#include "headroom/kv_cache.h"
#include "json_writer.h"

namespace headroom::detail {

/// "int4 with scales by token-head"; the type alone where it has none.
[[nodiscard]] std::string describe_format(const KvCacheUse& use);

/// Whether there is more to say than the ideal's bytes.
[[nodiscard]] bool has_policy(const KvCacheUse& use) noexcept;

/// "1.00 GiB by vllm: blocks of 16 tokens, …"
[[nodiscard]] std::string describe_reserved(const KvCacheUse& use);

/// A row for each kind of layers: tokens and bytes, used and reserved.
[[nodiscard]] Table kv_cache_table(const KvCacheUse& use);

[[nodiscard]] Json to_json(const KvCacheUse& use);

}  // namespace headroom::detail
