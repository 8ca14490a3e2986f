// Invocation -> JSON: the object produced_by of every report, and of machine files.
#pragma once

#include <nlohmann/json.hpp>

#include "headroom/invocation.h"

namespace headroom::detail {

/// Null if the invocation is not from a command line. `defaults` follow its own settings.
[[nodiscard]] nlohmann::ordered_json to_json(const Invocation& invocation,
                                             const std::vector<UserSetting>& defaults = {});

}  // namespace headroom::detail
