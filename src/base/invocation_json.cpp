#include "invocation_json.h"

namespace headroom::detail {

nlohmann::ordered_json to_json(const Invocation& invocation,
                               const std::vector<UserSetting>& defaults) {
  using Json = nlohmann::ordered_json;
  if (invocation.arguments.empty()) return nullptr;
  Json settings = Json::array();
  for (const auto* list : {&invocation.settings, &defaults}) {
    for (const UserSetting& setting : *list) {
      settings.push_back(
          {{"name", setting.name}, {"value", setting.value}, {"source", setting.source}});
    }
  }
  const std::string& commit = invocation.commit;
  return {{"headroom", invocation.version},
          {"commit", commit.empty() ? Json(nullptr) : Json(commit)},
          {"command", invocation.arguments.front()},
          {"arguments", invocation.arguments},
          {"settings", std::move(settings)}};
}

}  // namespace headroom::detail
