// Configs of tests/data with some keys changed.
#pragma once

#include "support/data.h"
#include "support/python_json.h"

namespace headroom::test {

/// The config in `file`, which may have figures beside it, with the changes of `with`; null removes
/// a key.
inline nlohmann::json config_with_keys(const char* file, const char* with) {
  const nlohmann::json document = read_with_infinity(data_folder() / file);
  nlohmann::json config = document.contains("model_type") ? document : document.at("config");
  config.merge_patch(nlohmann::json::parse(with));
  return config;
}

}  // namespace headroom::test
