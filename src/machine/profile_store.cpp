// Finds and stores profiles: the user's own, files, and the catalogue.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <string>
#include <system_error>

#include "embedded_json.h"
#include "headroom/error.h"
#include "headroom/machine_profile.h"
#include "json_text.h"
#include "output_file.h"
#include "path_names.h"
#include "similar.h"
#include "user_folder.h"

namespace headroom {
namespace {

namespace fs = std::filesystem;

/// FNV-1a of 64 bits. Source: Fowler, Noll, Vo, IETF draft-eastlake-fnv.
std::uint64_t hash_of(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const char c : text) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  }
  return hash;
}

/// Machines that share a home folder have a file each.
fs::path own_profile(const fs::path& folder, std::string_view backend, const MachineContext& here) {
  const std::string machine =
      fmt::format("{}\n{}\n{}\n{}", here.cpu, here.logical_cpus, here.backend, here.compiler);
  return folder / fmt::format("here-{}-{:016x}.json", backend, hash_of(machine));
}

/// The only file of versions before.
fs::path shared_profile(const fs::path& folder, std::string_view backend) {
  return folder / fmt::format("here-{}.json", backend);
}

std::optional<MachineProfile> read_if_present(const fs::path& file) {
  std::error_code failed;
  const fs::file_status status = fs::status(file, failed);
  if (status.type() == fs::file_type::not_found) return std::nullopt;
  return profile_from_json(detail::read_text_file(file.string()), file.string());
}

/// A machine of the user's own folders is called by its file's name.
MachineProfile read_machine(const fs::path& file) {
  MachineProfile machine = profile_from_json(detail::read_text_file(file.string()), file.string());
  machine.name = file.stem().string();
  return machine;
}

/// Why `before` stays; empty if `profile` replaces it.
std::string reason_to_keep(const MachineProfile& before, const MachineProfile& profile) {
  const bool is_quick = profile.effort == CalibrationEffort::quick;
  if (is_quick && before.effort != CalibrationEffort::quick) {
    return "a quick calibration does not replace a full one";
  }
  const std::string disturbed = disturbance_of(profile.context);
  if (disturbed.empty() || !disturbance_of(before.context).empty()) return {};
  return disturbed + " during the calibration, and not during the one before";
}

/// The profile of the same machine and build at `file`, or in the file of versions before. A
/// damaged one is not worth keeping.
std::optional<MachineProfile> valid_profile_before(const fs::path& file,
                                                   const MachineProfile& profile,
                                                   std::string_view backend) {
  try {
    auto before = read_if_present(file);
    if (!before) before = read_if_present(shared_profile(file.parent_path(), backend));
    const bool matches = before && own_profile({}, backend, before->context) == file.filename() &&
                         own_profile({}, backend, profile.context) == file.filename();
    return matches ? before : std::nullopt;
  } catch (const Error&) {
    return std::nullopt;
  }
}

/// Links the file to a second name, which it keeps when it is replaced.
void keep_previous(const fs::path& file) {
  fs::path previous = file;
  previous.replace_extension(".previous");
  std::error_code ignored;
  fs::remove(previous, ignored);
  fs::create_hard_link(file, previous, ignored);
}

/// Adds the stored GEMMs of `before` that `profile` lacks, for equal numbers of threads.
void keep_stored_gemms(const MachineProfile& before, MachineProfile& profile) {
  const auto* const old = std::get_if<MeasuredRates>(&before.rates);
  auto* const rates = std::get_if<MeasuredRates>(&profile.rates);
  if (old == nullptr || rates == nullptr) return;
  for (ThreadProfile& threads : rates->by_threads) {
    const auto same = std::ranges::find(old->by_threads, threads.threads, &ThreadProfile::threads);
    if (same == old->by_threads.end()) continue;
    for (const StoredGemm& gemm : same->stored_gemms) {
      if (find_stored_gemm(threads, gemm.format) == nullptr) threads.stored_gemms.push_back(gemm);
    }
  }
}

void replace_file(const fs::path& file, const MachineProfile& profile) {
  detail::OutputFile output(file);
  output.write(profile_to_json(profile));
  keep_previous(file);
  output.commit();
}

}  // namespace

fs::path profile_folder() {
  const fs::path folder = detail::user_data_folder();
  if (!folder.empty()) return folder / "machines";
  throw Error(ErrorCode::missing_resource, "there is no folder for machine profiles", {},
              "set XDG_DATA_HOME or HOME");
}

std::optional<MachineProfile> load_own_profile(std::string_view backend,
                                               const MachineContext& here) {
  const fs::path data = detail::user_data_folder();
  if (data.empty()) return std::nullopt;
  auto own = read_if_present(own_profile(profile_folder(), backend, here));
  return own ? own : read_if_present(shared_profile(profile_folder(), backend));
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

StoredFile store_own_profile(const MachineProfile& profile, std::string_view backend) {
  prepare_profile_folder();
  const fs::path file = own_profile(profile_folder(), backend, profile.context);
  MachineProfile complete = profile;
  if (const auto before = valid_profile_before(file, profile, backend)) {
    const std::string reason = reason_to_keep(*before, profile);
    if (!reason.empty()) return {file, reason};
    if (!complete.collectives) complete.collectives = before->collectives;
    keep_stored_gemms(*before, complete);
  }
  replace_file(file, complete);
  return {file, {}};
}

StoredFile store_extended_profile(const MachineProfile& profile, std::string_view backend) {
  prepare_profile_folder();
  const fs::path file = own_profile(profile_folder(), backend, profile.context);
  replace_file(file, profile);
  return {file, {}};
}

std::vector<MachineProfile> catalogue_machines() {
  std::vector<MachineProfile> machines;
  for (const fs::path& file : detail::json_files_of(detail::own_folders().machines)) {
    machines.push_back(read_machine(file));
  }
  const std::size_t own = machines.size();
  for (const detail::EmbeddedJson& file : detail::embedded_machines()) {
    const bool is_replaced =
        std::any_of(machines.begin(), machines.begin() + static_cast<std::ptrdiff_t>(own),
                    [&](const MachineProfile& machine) { return machine.name == file.name; });
    if (is_replaced) continue;
    machines.push_back(profile_from_json(file.json, fmt::format("the catalogue's {}", file.name)));
  }
  return machines;
}

MachineProfile find_machine(const std::string& name_or_file) {
  std::vector<std::string> names;
  for (const fs::path& file : detail::json_files_of(detail::own_folders().machines)) {
    if (file.stem() == name_or_file) return read_machine(file);
    names.push_back(file.stem().string());
  }
  for (const detail::EmbeddedJson& file : detail::embedded_machines()) {
    if (file.name == name_or_file) return profile_from_json(file.json, name_or_file);
    names.emplace_back(file.name);
  }
  std::error_code failed;
  const fs::file_status status = fs::status(name_or_file, failed);
  if (name_or_file == "-" || (fs::exists(status) && !fs::is_directory(status))) {
    return profile_from_json(detail::read_text_file(name_or_file), name_or_file);
  }
  if (!fs::exists(status) && detail::names_a_file(name_or_file)) {
    detail::throw_no_such_file(name_or_file);
  }
  std::string hint = detail::did_you_mean(name_or_file, names);
  if (hint.empty()) hint = "`headroom machines` lists them; `here` is this machine";
  throw Error(ErrorCode::invalid_input, fmt::format("there is no machine \"{}\"", name_or_file), {},
              hint);
}

}  // namespace headroom
