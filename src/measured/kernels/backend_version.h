// Version of the library that a backend multiplies matrices with.
#pragma once

#include <string>

#include "gemm.h"

namespace headroom::measured {

/// "Eigen 3.4.0", "oneDNN 2.6.3".
[[nodiscard]] std::string backend_version(Backend backend);

}  // namespace headroom::measured
