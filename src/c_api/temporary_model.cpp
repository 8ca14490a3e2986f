#include "temporary_model.h"

#include <stdlib.h>  // NOLINT(modernize-deprecated-headers): mkdtemp

#include <cerrno>
#include <system_error>

#include "headroom/error.h"
#include "output_file.h"

namespace headroom::c_api {
namespace {

namespace fs = std::filesystem;

/// The last part of a repository's name: "Qwen3-8B" for "Qwen/Qwen3-8B". Empty if `config` has none
/// that can name a folder.
std::string last_part_of_name(const nlohmann::ordered_json& config) {
  const auto found = config.find("_name_or_path");
  if (found == config.end() || !found->is_string()) return {};
  const std::string name = fs::path(found->get<std::string>()).filename().string();
  return name.starts_with('.') || name.find('\0') != std::string::npos ? std::string() : name;
}

/// A folder's name for the model: its own, else its model_type.
std::string name_of_model(const nlohmann::ordered_json& config) {
  if (std::string name = last_part_of_name(config); !name.empty()) return name;
  const auto type = config.find("model_type");
  const bool is_name = type != config.end() && type->is_string() &&
                       type->get<std::string>().find_first_of("/.") == std::string::npos &&
                       !type->get<std::string>().empty();
  return is_name ? type->get<std::string>() : std::string("model");
}

fs::path make_temporary_folder() {
  std::string path = (fs::temp_directory_path() / "headroom-XXXXXX").string();
  if (mkdtemp(path.data()) == nullptr) {
    detail::throw_unwritable(path, std::generic_category().message(errno));
  }
  return path;
}

}  // namespace

TemporaryModel::TemporaryModel(const nlohmann::ordered_json& config)
    : folder_(make_temporary_folder() / name_of_model(config)) {
  try {
    fs::create_directory(folder_);
    detail::write_file(folder_ / "config.json", config.dump());
  } catch (...) {
    std::error_code ignored;
    fs::remove_all(folder_.parent_path(), ignored);
    throw;
  }
}

TemporaryModel::TemporaryModel(TemporaryModel&& other) noexcept
    : folder_(std::move(other.folder_)) {
  other.folder_.clear();
}

TemporaryModel::~TemporaryModel() {
  if (folder_.empty()) return;
  std::error_code ignored;
  fs::remove_all(folder_.parent_path(), ignored);
}

}  // namespace headroom::c_api
