#include <system_error>

#include "stores.h"
#include "user_folder.h"

namespace headroom::detail {
namespace {

namespace fs = std::filesystem;

void add_models_in(const fs::path& models, LocalModels& local) {
  std::error_code failed;
  for (const fs::directory_entry& publisher : fs::directory_iterator(models, failed)) {
    std::error_code unreadable;
    for (const fs::directory_entry& model : fs::directory_iterator(publisher.path(), unreadable)) {
      std::error_code unknown;
      if (!model.is_directory(unknown)) continue;
      const std::string name =
          publisher.path().filename().string() + "/" + model.path().filename().string();
      add_model_folder(model.path(), name, ModelStore::lm_studio, local);
    }
  }
}

}  // namespace

void add_lm_studio(LocalModels& local) {
  const fs::path home = folder_in("HOME");
  if (home.empty()) return;
  add_models_in(home / ".lmstudio" / "models", local);
  add_models_in(home / ".cache" / "lm-studio" / "models", local);
}

}  // namespace headroom::detail
