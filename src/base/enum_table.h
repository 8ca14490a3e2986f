// Tables with one entry for every value of an enumeration, checked while compiling.
#pragma once

#include <cstddef>
#include <iterator>
#include <string_view>

namespace headroom::detail {

/// Whether an enumerator has this value: compilers name a template argument that is one, and write
/// out a cast of a number for what is none.
template <auto value>
consteval bool is_enumerator() {
  // "… [with auto value = Colour::red]", but "… [with auto value = (Colour)2]"
  constexpr std::string_view name = __PRETTY_FUNCTION__;
  const char after = name[name.rfind(')') + 1];
  return after < '0' || after > '9';
}

/// Whether `table` has one entry for every value of the enumeration of `member`, in order, so that
/// `table[i]` is that of value i. For enumerations that count from zero without gaps.
template <auto& table, class Entry, class Enum>
consteval bool lists_every(Enum Entry::*member) {
  constexpr std::size_t size = std::size(table);
  for (std::size_t i = 0; i < size; ++i) {
    if (table[i].*member != static_cast<Enum>(i)) return false;
  }
  return !is_enumerator<static_cast<Enum>(size)>();
}

}  // namespace headroom::detail
