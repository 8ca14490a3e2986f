// A config.json that a request holds, as a file that the commands read like any other.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

namespace headroom::c_api {

/// `config` in a config.json of a new temporary folder, which the destructor removes.
class TemporaryModel {
 public:
  /// Throws Error{missing_resource} if the folder cannot be written.
  explicit TemporaryModel(const nlohmann::ordered_json& config);
  TemporaryModel(TemporaryModel&& other) noexcept;
  TemporaryModel& operator=(TemporaryModel&& other) = delete;
  TemporaryModel(const TemporaryModel&) = delete;
  TemporaryModel& operator=(const TemporaryModel&) = delete;
  ~TemporaryModel();

  /// The folder of the config.json, named like the model.
  [[nodiscard]] std::string path() const { return folder_.string(); }
  /// The beginning of `path()` that is not the model's name. Reports leave it out.
  [[nodiscard]] std::string prefix() const { return folder_.parent_path().string() + "/"; }

 private:
  std::filesystem::path folder_;
};

}  // namespace headroom::c_api
