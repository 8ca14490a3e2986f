// Visitors for std::variant.
#pragma once

namespace headroom {

/// A visitor made of lambdas, one per alternative.
template <class... Functions>
struct Overloaded : Functions... {
  using Functions::operator()...;
};
template <class... Functions>
Overloaded(Functions...) -> Overloaded<Functions...>;

}  // namespace headroom
