#include "family.h"

#include <algorithm>

#include "families/all.h"

namespace headroom::detail {

std::span<const Family> families() {
  static const std::vector<Family> all = all_families();
  return all;
}

const Family* find_family(std::string_view model_type) {
  const std::span<const Family> all = families();
  const auto found = std::ranges::find_if(all, [&](const Family& family) {
    return std::ranges::find(family.model_types.names, model_type) !=
           family.model_types.names.end();
  });
  return found == all.end() ? nullptr : &*found;
}

}  // namespace headroom::detail
