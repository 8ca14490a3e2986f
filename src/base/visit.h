// Visitors for std::variant.
#pragma once

#include <concepts>

namespace headroom {

/// A visitor made of lambdas, one per alternative.
template <class... Functions>
struct Overloaded : Functions... {
  using Functions::operator()...;
};
template <class... Functions>
Overloaded(Functions...) -> Overloaded<Functions...>;

/// One of `Alternatives`. Groups the alternatives that a visit treats alike; one that no group
/// names does not compile:
///   [](const OneOf<Scale, SoftCap> auto& op) { … }
template <class Alternative, class... Alternatives>
concept OneOf = (std::same_as<Alternative, Alternatives> || ...);

}  // namespace headroom
