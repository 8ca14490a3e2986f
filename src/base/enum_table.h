// Tables with one entry per enumerator, checked at compile time.
#pragma once

#include <cstddef>
#include <iterator>
#include <string_view>

namespace headroom::detail {

/// Returns whether `value` is an enumerator. Compilers print an enumerator by name and any other
/// value as a cast.
template <auto value>
consteval bool is_enumerator() {
  // "… [with auto value = Colour::red]", but "… [with auto value = (Colour)2]"
  constexpr std::string_view name = __PRETTY_FUNCTION__;
  const char after = name[name.rfind(')') + 1];
  return after < '0' || after > '9';
}

/// Returns whether `table` has one entry per enumerator of `member`'s type, in order, so that
/// `table[i]` describes value i. For enumerations that count from zero without gaps.
template <auto& table, class Entry, class Enum>
consteval bool lists_every(Enum Entry::*member) {
  constexpr std::size_t size = std::size(table);
  for (std::size_t i = 0; i < size; ++i) {
    if (table[i].*member != static_cast<Enum>(i)) return false;
  }
  return !is_enumerator<static_cast<Enum>(size)>();
}

}  // namespace headroom::detail
