// Where profiles are: this user's own, a file, or the catalogue.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>

#include "embedded_machines.h"
#include "headroom/error.h"
#include "headroom/machine_profile.h"
#include "json_text.h"
#include "similar.h"

namespace headroom {
namespace {

namespace fs = std::filesystem;

fs::path own_profile(std::string_view backend) {
  return profile_folder() / fmt::format("here-{}.json", backend);
}

}  // namespace

fs::path profile_folder() {
  // Read once at start, before any thread exists.
  const char* const data = std::getenv("XDG_DATA_HOME");  // NOLINT(concurrency-mt-unsafe)
  const char* const home = std::getenv("HOME");           // NOLINT(concurrency-mt-unsafe)
  if (data != nullptr && *data != '\0') return fs::path(data) / "headroom" / "machines";
  if (home != nullptr && *home != '\0') {
    return fs::path(home) / ".local" / "share" / "headroom" / "machines";
  }
  throw Error(ErrorCode::missing_resource, "there is no folder for machine profiles", {},
              "set XDG_DATA_HOME or HOME");
}

std::optional<MachineProfile> load_own_profile(std::string_view backend) {
  const fs::path file = own_profile(backend);
  if (!fs::exists(file)) return std::nullopt;
  return profile_from_json(detail::read_text_file(file.string()), file.string());
}

fs::path store_own_profile(const MachineProfile& profile, std::string_view backend) {
  fs::path file = own_profile(backend);
  const fs::path temporary = fmt::format("{}.{}.tmp", file.string(), getpid());
  std::error_code failed;
  fs::create_directories(file.parent_path(), failed);
  std::ofstream stream(temporary, std::ios::binary);
  stream << profile_to_json(profile);
  stream.close();
  if (stream) fs::rename(temporary, file, failed);
  if (!stream || failed) {
    std::error_code ignored;
    fs::remove(temporary, ignored);
    throw Error(ErrorCode::missing_resource, "cannot be written", file.string(),
                "check the folder, its permissions and the space left");
  }
  return file;
}

std::vector<MachineProfile> catalogue_machines() {
  std::vector<MachineProfile> machines;
  for (const std::string_view text : detail::embedded_machines()) {
    machines.push_back(profile_from_json(text, "the catalogue of machines"));
  }
  return machines;
}

MachineProfile find_machine(const std::string& name_or_file) {
  std::vector<std::string> names;
  for (MachineProfile& machine : catalogue_machines()) {
    if (machine.name == name_or_file) return std::move(machine);
    names.push_back(machine.name);
  }
  if (fs::is_regular_file(name_or_file)) {
    return profile_from_json(detail::read_text_file(name_or_file), name_or_file);
  }
  std::string hint = detail::did_you_mean(name_or_file, names);
  if (hint.empty()) hint = "`headroom machines` lists them; here is this machine";
  throw Error(ErrorCode::invalid_input, fmt::format("there is no machine \"{}\"", name_or_file), {},
              hint);
}

}  // namespace headroom
