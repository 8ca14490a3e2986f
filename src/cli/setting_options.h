// The options of the command line that set what library errors call by field name.
#pragma once

#include <string>
#include <string_view>

#include "headroom/error.h"

namespace headroom::cli {

/// "--seq" for Setting::seq_len.
[[nodiscard]] std::string option_of(Setting setting);

/// `text` with its quoted settings restated as options.
[[nodiscard]] std::string with_options(std::string_view text);

}  // namespace headroom::cli
