// Folders of tiny models with weights, inputs and expected outputs.
#pragma once

#include <filesystem>
#include <vector>

#include "support/data.h"

namespace headroom::test {

/// Those of the published code (golden_models) and of an independent reference.
inline std::vector<std::filesystem::path> models_with_outputs() {
  std::vector<std::filesystem::path> models = golden_models();
  for (const auto& entry : std::filesystem::directory_iterator(data_folder() / "families")) {
    models.push_back(entry.path());
  }
  return models;
}

}  // namespace headroom::test
