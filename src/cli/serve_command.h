// The questions of `headroom serve`, for other commands.
#pragma once

#include <string>
#include <vector>

#include "headroom/serve.h"

namespace headroom::cli {

struct ServedRun {
  ServeQuestion question;
  PlanRequest request;
};

/// The question of a measured serve command by its words after "serve", with the plan that they
/// name. Throws Error{invalid_input} for words that it does not take, for requests at given times,
/// for targets, and as the command does.
[[nodiscard]] ServedRun served_run(const std::vector<std::string>& words);

}  // namespace headroom::cli
