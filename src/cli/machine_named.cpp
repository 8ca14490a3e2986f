#include <fmt/format.h>

#include <filesystem>
#include <system_error>

#include "headroom/error.h"
#include "headroom/machine_names.h"
#include "output.h"
#include "own_machine.h"

namespace headroom::cli {

using measured::Backend;

std::string_view name_of(Backend backend) noexcept {
  switch (backend) {
    case Backend::eigen:
      return "eigen";
    case Backend::onednn:
      break;
  }
  return "onednn";
}

MachineProfile catalogue_machine(const std::string& name) {
  if (name == "here") {
    throw_invalid_input("\"here\" is this machine, but a machine of the catalogue is needed",
                        "`headroom machines` lists them; a machine's JSON file is possible, too");
  }
  std::error_code failed;  // of a name that no file can have
  if (name.find(',') != std::string::npos && !std::filesystem::exists(name, failed)) {
    throw_invalid_input(fmt::format("\"{}\" names several machines, and one is needed", name),
                        "`headroom fit MODEL --machines LIST` compares several");
  }
  const std::string meant = machine_meant(name);
  if (meant != name) write_notes({fmt::format("{} was taken as the machine {}", name, meant)});
  return find_machine(meant);
}

MachineProfile machine_named(const std::string& name, Backend backend) {
  return name == "here" ? own_machine(backend) : catalogue_machine(name);
}

}  // namespace headroom::cli
