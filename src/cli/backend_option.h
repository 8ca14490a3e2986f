// The option for the library of matrix products, of commands that run models or predict runs.
#pragma once

#include "kernels/gemm.h"
#include "options.h"

namespace headroom::cli {

/// Sets `backend` to this build's default, and adds --backend.
Option add_backend_option(Command command, measured::Backend& backend);

}  // namespace headroom::cli
