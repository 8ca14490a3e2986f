// `headroom fit` without a machine: options of the machines to compare.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "headroom/device_choice.h"
#include "plan_options.h"

namespace headroom::cli {

struct DeviceChoiceOptions {
  std::vector<std::string> machines;  ///< empty: the whole catalogue
  std::map<std::string, double> hour_prices;
  std::vector<Option> all;
};

/// Adds --machines and --price.
void add_device_choice_options(Command command, DeviceChoiceOptions& options);

/// The question of these options; --count is the most devices. Throws Error{invalid_input} for
/// training and for an option that needs one machine.
[[nodiscard]] DeviceQuestion device_question_of(const PlanOptions& options,
                                                const DeviceChoiceOptions& choice);

}  // namespace headroom::cli
