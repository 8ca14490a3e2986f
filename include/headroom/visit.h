// Visitors for std::variant.
#pragma once

namespace headroom {

/// Builds a visitor out of lambdas, one for each alternative.
template <class... Functions>
struct Overloaded : Functions... {
  using Functions::operator()...;
};
template <class... Functions>
Overloaded(Functions...) -> Overloaded<Functions...>;

}  // namespace headroom
