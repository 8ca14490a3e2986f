// The questions of `headroom serve`, for other commands.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "headroom/serve.h"

namespace headroom::cli {

struct ServedRun {
  ServeQuestion question;
  PlanRequest request;
};

/// The load that a file states of a measured run, which replaces that of its command.
struct StatedLoad {
  std::optional<std::int64_t> batch_size;  ///< serve: users, unless the command states arrivals
  std::optional<std::int64_t> seq_len;     ///< fit: of the cache; serve: input tokens
  std::optional<std::int64_t> new_tokens;  ///< serve: output tokens
  std::optional<std::int64_t> requests;    ///< serve
};

/// The question of a measured serve command by its words after "serve", with the plan that they
/// name. Throws Error{invalid_input} for words that it does not take, for targets, and as the
/// command does.
[[nodiscard]] ServedRun served_run(const std::vector<std::string>& words, const StatedLoad& load);

}  // namespace headroom::cli
