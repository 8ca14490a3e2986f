// Lets fmt::format quote a Setting: fmt::format("leave out {}", Setting::past_len).
#pragma once

#include <fmt/format.h>

#include "headroom/error.h"

template <>
struct fmt::formatter<headroom::Setting> : fmt::formatter<std::string_view> {
  template <class Context>
  auto format(headroom::Setting setting, Context& context) const {
    return fmt::formatter<std::string_view>::format(headroom::quoted(setting), context);
  }
};
