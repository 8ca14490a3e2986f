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

/// Adds the price of "h100-80gb=2.50".
void add_price(const std::string& word, std::map<std::string, double>& prices);
/// The machines of these names, parts of names, or files; without names, the whole catalogue.
/// Throws Error{invalid_input} for a name that none has.
[[nodiscard]] std::vector<MachineProfile> machines_of(const std::vector<std::string>& names);
/// The first given option that replaces a rate of one machine; nullptr if there is none.
[[nodiscard]] const char* option_of_rates(const PlanOptions& options);

/// The question of these options; --count is the most devices. Throws Error{invalid_input} for
/// training and for an option that needs one machine.
[[nodiscard]] DeviceQuestion device_question_of(const PlanOptions& options,
                                                const DeviceChoiceOptions& choice);

}  // namespace headroom::cli
