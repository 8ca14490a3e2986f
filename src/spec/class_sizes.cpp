#include "class_sizes.h"

#include <nlohmann/json.hpp>

namespace headroom::detail {

const nlohmann::json* class_sizes(std::string_view model_type) {
  static const nlohmann::json kAll = nlohmann::json::parse(class_sizes_json());
  const auto found = kAll.find(model_type);
  return found == kAll.end() ? nullptr : &*found;
}

}  // namespace headroom::detail
