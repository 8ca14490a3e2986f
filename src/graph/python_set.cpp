#include "python_set.h"

#include <bit>
#include <optional>

namespace headroom::detail {
namespace {

/// Hash of a tuple of two integers. Source: CPython 3.8 and later, Objects/tupleobject.c,
/// tuplehash.
std::uint64_t hash_of(const IntegerPair& pair) {
  constexpr std::uint64_t kPrime1 = 11400714785074694791U;
  constexpr std::uint64_t kPrime2 = 14029467366897019727U;
  constexpr std::uint64_t kPrime5 = 2870177450012600261U;
  constexpr int kRotation = 31;
  std::uint64_t hash = kPrime5;
  for (const std::int64_t lane : pair) {
    hash += static_cast<std::uint64_t>(lane) * kPrime2;
    hash = std::rotl(hash, kRotation) * kPrime1;
  }
  return hash + (pair.size() ^ (kPrime5 ^ 3527539U));
}

}  // namespace

std::vector<IntegerPair> in_set_order(const std::vector<IntegerPair>& pairs) {
  // Source: CPython, Objects/setobject.c, set_add_entry: a table this small has no linear probes.
  constexpr std::size_t kSlots = 8;
  constexpr int kPerturbShift = 5;
  std::array<std::optional<IntegerPair>, kSlots> table{};
  for (const IntegerPair& pair : pairs) {
    std::uint64_t perturb = hash_of(pair);
    std::uint64_t slot = perturb % kSlots;
    while (table[slot] && table[slot] != pair) {
      perturb >>= kPerturbShift;
      slot = (slot * 5 + 1 + perturb) % kSlots;
    }
    table[slot] = pair;
  }
  std::vector<IntegerPair> ordered;
  for (const std::optional<IntegerPair>& entry : table) {
    if (entry) ordered.push_back(*entry);
  }
  return ordered;
}

}  // namespace headroom::detail
