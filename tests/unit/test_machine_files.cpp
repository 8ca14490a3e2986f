// Machines by file and folder: which of two profiles stays, and what is found by a name.
#include <doctest/doctest.h>

#include <algorithm>

#include "headroom/error.h"
#include "headroom/machine_profile.h"
#include "headroom/system.h"
#include "support/data.h"
#include "support/scratch.h"
#include "unit/measured_profile.h"

using namespace headroom;
using namespace headroom::test;

namespace {

/// A profile of two numbers of threads.
MachineProfile profile_of_threads(int first, int second) {
  MachineProfile profile = measured_profile();
  profile.effort = CalibrationEffort::full;
  auto& curves = std::get<MeasuredRates>(profile.rates).by_threads;
  curves.push_back(curves.front());
  curves.front().threads = first;
  curves.back().threads = second;
  return profile;
}

StoredGemm any_gemm_of(const MachineProfile& profile, const std::string& format) {
  const auto& tables = std::get<MeasuredRates>(profile.rates).by_threads.front().tables;
  return {format, tables[0], tables[1]};
}

std::string message_of(const std::string& machine) {
  try {
    (void)find_machine(machine);
  } catch (const Error& error) {
    return std::string(error.what()) + " | " + error.hint();
  }
  return {};
}

}  // namespace

TEST_CASE("a calibration keeps stored GEMMs and collectives of the one before, by threads") {
  const ScratchFolder folder;
  const ScratchVariable data("XDG_DATA_HOME", folder.path().string());
  MachineProfile before = profile_of_threads(1, 2);
  for (ThreadProfile& curves : std::get<MeasuredRates>(before.rates).by_threads) {
    curves.stored_gemms = {any_gemm_of(before, "Q4_0")};
  }
  before.collectives = CollectiveRates{
      "2025-01-02", "Open MPI", {{CollectiveKind::send, {2, 2, 1}, {{1024, 1e-5, 0.1}}}}};
  (void)store_own_profile(before, "eigen");
  const MachineProfile after = profile_of_threads(2, 4);
  (void)store_own_profile(after, "eigen");
  const MachineProfile kept = load_own_profile("eigen", after.context).value();
  CHECK(kept.collectives->date == "2025-01-02");
  CHECK(find_stored_gemm(*curves_of(kept, 2), "Q4_0") != nullptr);
  CHECK(find_stored_gemm(*curves_of(kept, 4), "Q4_0") == nullptr);
}

TEST_CASE("newer collectives replace those of the calibration before") {
  const ScratchFolder folder;
  const ScratchVariable data("XDG_DATA_HOME", folder.path().string());
  MachineProfile profile = profile_of_threads(1, 2);
  profile.collectives = CollectiveRates{
      "2025-01-02", "Open MPI", {{CollectiveKind::send, {2, 2, 1}, {{1024, 1e-5, 0.1}}}}};
  (void)store_own_profile(profile, "eigen");
  profile.collectives->date = "2026-01-02";
  (void)store_own_profile(profile, "eigen");
  CHECK(load_own_profile("eigen", profile.context)->collectives->date == "2026-01-02");
}

TEST_CASE("a disturbed calibration replaces one that was disturbed, too") {
  const ScratchFolder folder;
  const ScratchVariable data("XDG_DATA_HOME", folder.path().string());
  MachineProfile profile = profile_of_threads(1, 2);
  profile.context.other_programs_cpus = 1.5;
  CHECK(store_own_profile(profile, "eigen").kept_because.empty());
  profile.date = "2026-02-02";
  CHECK(store_own_profile(profile, "eigen").kept_because.empty());
  CHECK(load_own_profile("eigen", profile.context)->date == "2026-02-02");
}

TEST_CASE("a quick calibration replaces a quick one") {
  const ScratchFolder folder;
  const ScratchVariable data("XDG_DATA_HOME", folder.path().string());
  MachineProfile profile = profile_of_threads(1, 2);
  profile.effort = CalibrationEffort::quick;
  (void)store_own_profile(profile, "eigen");
  profile.date = "2026-03-03";
  CHECK(store_own_profile(profile, "eigen").kept_because.empty());
  CHECK(load_own_profile("eigen", profile.context)->date == "2026-03-03");
}

TEST_CASE("the old file of another machine decides nothing") {
  const ScratchFolder folder;
  const ScratchVariable data("XDG_DATA_HOME", folder.path().string());
  MachineProfile other = profile_of_threads(1, 2);
  other.context.cpu = "another processor";
  folder.write("headroom/machines/here-eigen.json", profile_to_json(other));
  MachineProfile quick = profile_of_threads(1, 2);
  quick.effort = CalibrationEffort::quick;
  CHECK(store_own_profile(quick, "eigen").kept_because.empty());
}

TEST_CASE("a machine is a name, or a file; a folder and a misspelt name say what is there") {
  const ScratchFolder folder;
  const auto file = folder.write("box.json", profile_to_json(find_machine("l4")));
  CHECK(find_machine(file.string()).name == "l4");
  CHECK(message_of((folder.path() / "none.json").string()).find("no such file") !=
        std::string::npos);
  CHECK(message_of("h100-80g").find("did you mean h100-80gb") != std::string::npos);
  CHECK(message_of("qqqqqqqqqq").find("`headroom machines` lists them") != std::string::npos);
  std::filesystem::create_directories(folder.path() / "folder");
  CHECK(message_of((folder.path() / "folder").string()).find("there is no machine") !=
        std::string::npos);
}

TEST_CASE("curves of another number of threads or type than was measured are an error") {
  const MachineProfile machine = profile_of_threads(4, 2);
  CHECK(curves_of(machine, 0)->threads == 4);  // the most, wherever it stands
  CHECK(curves_of(machine, 2)->threads == 2);
  CHECK(refusal_of([&] {
          (void)curves_of(machine, 3);
        }).find("was not calibrated with 3 threads") != std::string::npos);
  try {
    (void)curves_of(machine, 3);
  } catch (const Error& error) {
    CHECK(error.hint() == "calibrate it with 1, 2, 3 and 4 threads");
  }
}

TEST_CASE("programs of engines and drivers are found on the PATH, with what they print") {
  namespace fs = std::filesystem;
  const ScratchFolder folder;
  const auto add = [&](const char* name, const char* text, fs::perms mode) {
    fs::permissions(folder.write(name, text), mode);
  };
  const fs::perms runs = fs::perms::owner_all | fs::perms::others_read | fs::perms::others_exec;
  add("vllm", "#!/bin/sh\n", runs);
  add("ollama", "#!/bin/sh\n", fs::perms::owner_read);
  fs::create_directories(folder.path() / "sglang");
  add("nvidia-smi", "#!/bin/sh\necho ' NVIDIA L4 , 23034 , -1, 550.1 \r'\necho ', 1, 2, 3'\n",
      runs);
  add("rocm-smi", "#!/bin/sh\necho '{\"card0\": {\"Card Model\": \"A card\"}}'\n", runs);
  const std::string path = "relative:" + folder.path().string();
  const ScratchVariable programs("PATH", path + ":/usr/bin:/bin");
  const std::vector<LocalEngine> engines = local_engines();
  CHECK(std::ranges::count(engines, "vllm", &LocalEngine::name) == 1);
  for (const char* const other : {"ollama", "sglang"}) {  // not for others to run, and a folder
    const std::string file = (folder.path() / other).string();
    CHECK(std::ranges::count(engines, file, &LocalEngine::path) == 0);
  }
  const std::vector<LocalDevice> devices = local_devices();
  REQUIRE(devices.size() == 2);
  CHECK(devices[0].name == "NVIDIA L4");
  CHECK(devices[0].machine == "l4");
  CHECK(devices[0].driver == "550.1");
  CHECK_FALSE(devices[0].used_bytes.has_value());
  CHECK(devices[1].name == "A card");
  CHECK(devices[1].driver.empty());
}

TEST_CASE("an AMD card without a name is called by its number, and connectors are no cards") {
  const ScratchFolder root;
  root.write("sys/class/drm/card0/device/mem_info_vram_total", "1024\n");
  root.write("sys/class/drm/card0/device/device", "0x744c\n");
  root.write("sys/class/drm/card1/device/mem_info_vram_total", "much\n");
  root.write("sys/class/drm/card0-DP-1/device/mem_info_vram_total", "2048\n");
  root.write("sys/class/drm/renderD128/device/mem_info_vram_total", "4096\n");
  const std::vector<LocalDevice> devices = drm_devices(root.path());
  REQUIRE(devices.size() == 1);
  CHECK(devices[0].name == "AMD graphics 0x744c");
  CHECK(*devices[0].memory_bytes == 1024);
}

TEST_CASE("a driver's name with words apart means the machine of the catalogue") {
  CHECK(catalogue_name("NVIDIA  L40S ", std::nullopt) == "l40s");
  CHECK(catalogue_name("(l40s)", std::nullopt) == "l40s");
  CHECK(catalogue_name("", std::nullopt).empty());
}

TEST_CASE("8 and 4-bit integers are served at the fractions of 8 and 4-bit floats") {
  for (const Architecture architecture : {Architecture::hopper, Architecture::ampere}) {
    CHECK(known_efficiency(architecture, Purpose::serve, DType::int8).fractions.matrix ==
          known_efficiency(architecture, Purpose::serve, DType::float8).fractions.matrix);
    CHECK(known_efficiency(architecture, Purpose::serve, DType::int4).fractions.matrix ==
          known_efficiency(architecture, Purpose::serve, DType::float4).fractions.matrix);
  }
  CHECK(runtime_memory(Architecture::other).context_bytes ==
        runtime_memory(Architecture::hopper).context_bytes);
}
