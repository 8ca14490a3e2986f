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

MachineProfile machine_named(const std::string& name, Backend backend) {
  return name == "here" ? own_machine(backend) : find_machine(name);
}

}  // namespace headroom::cli
