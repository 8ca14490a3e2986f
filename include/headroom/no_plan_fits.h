// The answer "no": nothing that was asked about fits the devices.
#pragma once

#include <string>
#include <utility>

#include "headroom/error.h"

namespace headroom {

/// No plan that the question allows fits its devices. The question was a right one, so the program
/// ends with 1, as for a report whose verdict is "does not fit"; other invalid input ends it
/// with 2.
class NoPlanFits : public Error {
 public:
  NoPlanFits(std::string message, std::string hint)
      : Error(ErrorCode::invalid_input, std::move(message), {}, std::move(hint)) {}
};

}  // namespace headroom
