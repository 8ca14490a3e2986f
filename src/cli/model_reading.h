// How a command reads its models.
#pragma once

#include <string>

#include "command_line.h"
#include "headroom/model_source.h"

namespace headroom::cli {

struct ModelReading {
  bool strict = false;  ///< refuses every key that headroom does not know

  /// `load_model(name)`. Throws Error{invalid_input} as it does, and for a strict reading that
  /// meets an unknown key.
  [[nodiscard]] Model load(const std::string& name) const;
};

/// Adds --strict.
void add_reading_options(Command command, ModelReading& reading);

}  // namespace headroom::cli
