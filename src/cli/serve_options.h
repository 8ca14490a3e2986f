// Options of `headroom serve`: requests, scheduler, speculative decoding, targets and machines.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "headroom/serve.h"
#include "plan_options.h"

namespace headroom::cli {

struct ServeCommand {
  PlanOptions options;
  ServeQuestion question;
  std::optional<double> rate;
  std::optional<std::int64_t> users;
  std::optional<std::int64_t> requests;
  std::optional<std::int64_t> max_sequences;   ///< empty: as vLLM on the device
  std::optional<std::int64_t> batched_tokens;  ///< likewise
  std::string trace;
  std::string drafter = "mtp";
  std::int64_t draft_tokens = 3;
  std::optional<double> acceptance;
  std::vector<Option> needs_acceptance;
  std::vector<Option> needs_targets;
  std::vector<Option> needs_chance;
  bool count_is_given = false;
  std::int64_t most_devices = 64;             ///< of a search without --count
  std::vector<std::string> machines;          ///< to compare; empty: one machine
  std::map<std::string, double> hour_prices;  ///< of a device, by machine
};

/// Adds the options to `command`; they write to `options`. Returns the option --count.
Option add_serve_options(Command command, const std::shared_ptr<ServeCommand>& options);

}  // namespace headroom::cli
