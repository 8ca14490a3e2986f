// Settings that the command line left to headroom, with the values that the report has for them.
// Internal to src/report.
#pragma once

#include <string>
#include <vector>

#include "headroom/invocation.h"
#include "json_writer.h"

namespace headroom::detail {

/// Defaults of the options that the command left out: {"batch", "1", "default"}. Their values are
/// those of the JSON report, so that both tell the same.
[[nodiscard]] std::vector<UserSetting> defaults_of(const Json& report,
                                                   const Invocation& invocation);

/// Those that the header of a text shows the value of: "--batch · --seq · --dtype". Empty if there
/// are none.
[[nodiscard]] std::string describe_defaults(const Json& report, const Invocation& invocation);

}  // namespace headroom::detail
