// Finds and stores profiles: the user's own, files, and the catalogue.
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "embedded_json.h"
#include "headroom/error.h"
#include "headroom/machine_profile.h"
#include "json_text.h"
#include "similar.h"
#include "user_folder.h"
#include "whole_file.h"

namespace headroom {
namespace {

namespace fs = std::filesystem;

fs::path own_profile(std::string_view backend) {
  return profile_folder() / fmt::format("here-{}.json", backend);
}

}  // namespace

fs::path profile_folder() {
  const fs::path folder = detail::user_data_folder();
  if (!folder.empty()) return folder / "machines";
  throw Error(ErrorCode::missing_resource, "there is no folder for machine profiles", {},
              "set XDG_DATA_HOME or HOME");
}

std::optional<MachineProfile> load_own_profile(std::string_view backend) {
  const fs::path file = own_profile(backend);
  if (!fs::exists(file)) return std::nullopt;
  return profile_from_json(detail::read_text_file(file.string()), file.string());
}

void prepare_profile_folder() {
  const fs::path folder = profile_folder();
  std::error_code failed;
  fs::create_directories(folder, failed);
  if (!failed && access(folder.c_str(), W_OK | X_OK) != 0) {
    failed = {errno, std::generic_category()};
  }
  if (failed) detail::throw_unwritable(folder.string(), failed.message());
}

fs::path store_own_profile(const MachineProfile& profile, std::string_view backend) {
  prepare_profile_folder();
  fs::path file = own_profile(backend);
  detail::write_whole_file(file, profile_to_json(profile));
  return file;
}

std::vector<MachineProfile> catalogue_machines() {
  std::vector<MachineProfile> machines;
  for (const detail::EmbeddedJson& file : detail::embedded_machines()) {
    machines.push_back(profile_from_json(file.json, fmt::format("the catalogue's {}", file.name)));
  }
  return machines;
}

MachineProfile find_machine(const std::string& name_or_file) {
  std::vector<std::string> names;
  for (const detail::EmbeddedJson& file : detail::embedded_machines()) {
    if (file.name == name_or_file) return profile_from_json(file.json, name_or_file);
    names.emplace_back(file.name);
  }
  if (fs::is_regular_file(name_or_file)) {
    return profile_from_json(detail::read_text_file(name_or_file), name_or_file);
  }
  std::string hint = detail::did_you_mean(name_or_file, names);
  if (hint.empty()) hint = "`headroom machines` lists them; `here` is this machine";
  throw Error(ErrorCode::invalid_input, fmt::format("there is no machine \"{}\"", name_or_file), {},
              hint);
}

}  // namespace headroom
