#include "headroom/error.h"

#include <utility>

namespace headroom {

Error::Error(ErrorCode code, std::string message, std::string where, std::string hint)
    : code_(code),
      message_(std::move(message)),
      where_(std::move(where)),
      hint_(std::move(hint)),
      text_(where_.empty() ? message_ : where_ + ": " + message_) {}

void throw_invalid_input(const std::string& message, const std::string& hint) {
  throw Error(ErrorCode::invalid_input, message, {}, hint);
}

int exit_status(ErrorCode code) noexcept {
  switch (code) {
    case ErrorCode::invalid_input:
    case ErrorCode::overflow:
      return 2;
    case ErrorCode::missing_resource:
      return 3;
    case ErrorCode::internal:
      break;
  }
  return 4;
}

}  // namespace headroom
