#include "device_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "headroom/error.h"
#include "headroom/machine_names.h"
#include "own_machine.h"
#include "plan_option_values.h"
#include "similar.h"

namespace headroom::cli {
namespace {

constexpr const char* kChoiceGroup = "Machines to compare (without --machine)";

/// Devices of one machine that are tried without --count: those of a usual node.
constexpr std::int64_t kUsualNode = 8;

/// A condition that an option is given, and the option.
using GivenOption = std::pair<bool, const char*>;

const char* first_given(std::span<const GivenOption> options) {
  const auto first = std::ranges::find_if(options, &GivenOption::first);
  return first == options.end() ? nullptr : first->second;
}

/// The first given option that describes one machine or one plan; nullptr if there is none.
const char* option_of_one_machine(const PlanOptions& options) {
  const FixedDegrees& fixed = options.fixed;
  const std::array<GivenOption, 12> given{{
      {options.engine.has_value(), "--engine"},
      {fixed.tensor.has_value(), "--tp"},
      {fixed.sequence.has_value(), "--sp"},
      {fixed.pipeline.has_value(), "--pp"},
      {fixed.data.has_value(), "--dp"},
      {fixed.context.has_value(), "--cp"},
      {fixed.expert.has_value(), "--ep"},
      {fixed.interleave.has_value(), "--interleave"},
      {fixed.expert_tensor == ExpertTensor::whole, "--etp 1"},
      {fixed.expert_exchange == ExpertExchange::by_node, "--expert-exchange by-node"},
      {options.query.expert_imbalance != 1, "--expert-imbalance"},
      {fixed.batch_overlap == BatchOverlap::two_batches, "--two-batch-overlap"},
  }};
  const char* const first = first_given(given);
  return first == nullptr ? option_of_rates(options) : first;
}

/// The machine of this name or file, or all of the catalogue whose names contain the text.
std::vector<MachineProfile> machines_like(const std::string& text) {
  std::vector<MachineProfile> machines = catalogue_machines();
  const auto named = std::ranges::find(machines, text, &MachineProfile::name);
  if (named != machines.end()) return {*named};
  std::erase_if(machines, [&](const MachineProfile& machine) {
    return !detail::contains_ignoring_case(machine.name, text);
  });
  if (!machines.empty()) return machines;
  return {machine_named(text, default_backend())};
}

/// The weights of --weights or a recipe; else as stored, and the types that serving engines convert
/// to, narrower than that.
std::vector<std::optional<WeightForm>> weights_of(const PlanQuery& query) {
  if (query.weights) return {query.weights};
  return {std::nullopt, WeightType::float8, WeightType::int4};
}

}  // namespace

void add_price(const std::string& word, std::map<std::string, double>& prices) {
  constexpr double kHighestPrice = 1e9;
  const char* const names = "--price";
  const auto equals = word.find('=');
  if (equals == std::string::npos || equals == 0) {
    refuse_value(names, fmt::format("takes MACHINE=PRICE, not \"{}\"", word));
  }
  prices[machine_meant(word.substr(0, equals))] =
      parse_positive(names, word.substr(equals + 1), kHighestPrice);
}

const char* option_of_rates(const PlanOptions& options) {
  const std::array<GivenOption, 7> given{{
      {options.memory_bytes.has_value(), "--memory"},
      {options.devices_per_node.has_value(), "--devices-per-node"},
      {options.intra_node_bytes_per_s.has_value(), "--intra-node-bandwidth"},
      {options.inter_node_bytes_per_s.has_value(), "--inter-node-bandwidth"},
      {options.efficiency.matrix.has_value(), "--matrix-efficiency"},
      {options.efficiency.memory.has_value(), "--memory-efficiency"},
      {options.efficiency.network.has_value(), "--network-efficiency"},
  }};
  return first_given(given);
}

std::vector<MachineProfile> machines_of(const std::vector<std::string>& names) {
  if (names.empty() || names == std::vector<std::string>{"all"}) return catalogue_machines();
  std::vector<MachineProfile> machines;
  for (const std::string& text : names) {
    for (MachineProfile& machine : machines_like(text)) {
      const bool known = std::ranges::any_of(
          machines, [&](const MachineProfile& one) { return one.name == machine.name; });
      if (!known) machines.push_back(std::move(machine));
    }
  }
  return machines;
}

void add_device_choice_options(Command command, DeviceChoiceOptions& options) {
  options.all.push_back(command
                            .add_list(
                                "--machines", "MACHINES",
                                [&options](const auto& words) { options.machines = words; },
                                "Names, parts of names, or files, such as h100,rtx-4090, or all "
                                "(the whole catalogue)")
                            .group(kChoiceGroup));
  const auto set_prices = [&options](const std::vector<std::string>& words) {
    for (const std::string& word : words) add_price(word, options.hour_prices);
  };
  options.all.push_back(
      command
          .add_list("--price", "MACHINE=PRICE", set_prices,
                    "Price per device-hour, in any currency, such as h100-80gb=2.50,l40s=0.80")
          .group(kChoiceGroup));
}

DeviceQuestion device_question_of(const PlanOptions& options, const DeviceChoiceOptions& choice) {
  const bool trains = options.query.purpose == Purpose::train;
  if (trains) {
    throw_invalid_input("--phase train requires --machine",
                        "add --machine with a name of `headroom machines`, such as h100-80gb");
  }
  if (const char* const option = option_of_one_machine(options)) {
    throw_invalid_input(fmt::format("{} requires --machine", option),
                        "add --machine with a name of `headroom machines`, or leave it out");
  }
  PlanQuestion plan = question_without_machine(options);
  DeviceQuestion question;
  question.model = std::move(plan.model);
  question.query = plan.query;
  question.arithmetic = plan.query.weights ? plan.query.arithmetic : options.arithmetic;
  question.load = plan.load;
  question.images = plan.images;
  question.audio = plan.audio;
  question.weights = weights_of(plan.query);
  question.query.weights.reset();
  question.machines = machines_of(choice.machines);
  question.most_devices = options.count.given.value_or(kUsualNode);
  question.hour_prices = choice.hour_prices;
  question.notes = std::move(plan.notes);
  return question;
}

}  // namespace headroom::cli
