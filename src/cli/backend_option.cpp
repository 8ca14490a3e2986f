#include "backend_option.h"

#include "own_machine.h"

namespace headroom::cli {

Option add_backend_option(Command command, measured::Backend& backend) {
  backend = default_backend();
  const Choices<measured::Backend> backends{{"eigen", measured::Backend::eigen},
                                            {"onednn", measured::Backend::onednn}};
  return add_choice(command, "--backend", backend, backends,
                    "GEMM library (onednn if this build has it)");
}

}  // namespace headroom::cli
