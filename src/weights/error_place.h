// The place of an error that knows none: a sum or a product does not know whose sizes it computes.
// Internal to src/weights.
#pragma once

#include <string>

#include "headroom/error.h"

namespace headroom::detail {

/// The result of `step`. An error without a place gets `place`; one of too large sizes, which only
/// damaged weights have, gets their remedy.
template <class Step>
[[nodiscard]] auto at_place(const std::string& place, const Step& step) {
  try {
    return step();
  } catch (const Error& error) {
    if (!error.where().empty()) throw;
    const bool is_damage = error.code() == ErrorCode::overflow;
    throw Error(error.code(), error.message(), place,
                is_damage ? "download or convert the weights again" : error.hint());
  }
}

}  // namespace headroom::detail
