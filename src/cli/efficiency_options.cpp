#include "efficiency_options.h"

#include "headroom/error.h"
#include "own_machine.h"
#include "plan_option_values.h"

namespace headroom::cli {
namespace {

void add_fraction(Command command, const std::string& names, std::optional<double>& target,
                  const char* group, const char* description) {
  const auto set = [&target, names](const std::string& text) {
    target = parse_efficiency(names, text);
  };
  command.add_text(names, "FRACTION", set, description).group(group);
}

bool is_given(const GivenEfficiency& given) { return given.matrix || given.memory; }

}  // namespace

void add_device_efficiencies(Command command, GivenEfficiency& given, const char* group) {
  add_fraction(command, "--matrix-efficiency", given.matrix, group,
               "Fraction of peak arithmetic that GEMMs achieve (the machine's)");
  add_fraction(command, "--memory-efficiency", given.memory, group,
               "Fraction of memory bandwidth that other operators achieve (the machine's)");
}

void add_network_efficiency(Command command, GivenEfficiency& given, const char* group) {
  add_fraction(command, "--network-efficiency", given.network, group,
               "Fraction of network bandwidth that is achieved (the machine's)");
}

void replace_efficiencies(const GivenEfficiency& given, MachineProfile& machine) {
  auto* const sheet = std::get_if<DatasheetRates>(&machine.rates);
  if (sheet == nullptr) return;
  const auto replace = [](auto& target, const auto& value) {
    if (value) target = value;
  };
  replace(sheet->given.matrix, given.matrix);
  replace(sheet->given.memory, given.memory);
  replace(sheet->given.network, given.network);
}

std::optional<MachineProfile> machine_with(const std::string& name, measured::Backend backend,
                                           const GivenEfficiency& given) {
  if (name.empty()) {
    if (is_given(given)) {
      throw_invalid_input("--matrix-efficiency and --memory-efficiency require --machine",
                          "add --machine, such as --machine h100-80gb");
    }
    return std::nullopt;
  }
  MachineProfile machine = machine_named(name, backend);
  if (is_given(given) && std::holds_alternative<MeasuredRates>(machine.rates)) {
    throw_invalid_input("a calibrated machine's times are measured, without efficiencies",
                        "leave out --matrix-efficiency and --memory-efficiency");
  }
  replace_efficiencies(given, machine);
  return machine;
}

std::optional<AttentionImplementation> attention_on(const std::optional<MachineProfile>& machine,
                                                    const ModelSpec& spec) {
  const bool is_device = machine && !has_own_kernels(*machine);
  if (!is_device || spec.main_stack().self_attention.global) return std::nullopt;
  return AttentionImplementation::fused;
}

}  // namespace headroom::cli
