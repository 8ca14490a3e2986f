// Devices of this machine, from what their makers' tools print.
#include <filesystem>
#include <fstream>

#include "headroom/system.h"
#include "support/data.h"

namespace headroom::test {

TEST_CASE("nvidia-smi's lines become devices with their names in the catalogue") {
  const std::vector<LocalDevice> devices = parse_nvidia_smi(
      "NVIDIA H100 80GB HBM3, 81559, 1024, 550.54.15\n"
      "NVIDIA A100-SXM4-40GB, 40960, 0, 550.54.15\n"
      "NVIDIA GeForce RTX 4090, 24564, 530, 550.54.15\n"
      "NVIDIA H200, 143771, 0, 550.54.15\n"
      "Some Other Device, [N/A], [N/A], 1\n"
      "a warning\n");
  REQUIRE(devices.size() == 5);
  CHECK(devices[0].machine == "h100-80gb");
  CHECK(*devices[0].memory_bytes == Integer{81559} * 1048576);
  CHECK(*devices[0].used_bytes == Integer{1024} * 1048576);
  CHECK(devices[0].driver == "550.54.15");
  CHECK(devices[1].machine == "a100-40gb");
  CHECK(devices[2].machine == "rtx-4090");
  CHECK(devices[3].machine == "h200-141gb");
  CHECK(devices[4].machine.empty());
  CHECK(!devices[4].memory_bytes);
  CHECK(parse_nvidia_smi("").empty());
}

TEST_CASE("rocm-smi's JSON becomes devices") {
  const std::vector<LocalDevice> devices = parse_rocm_smi(
      R"json({"card0": {"Card Series": "AMD Instinct MI300X", "VRAM Total Memory (B)": "206141652992",)json"
      R"json( "VRAM Total Used Memory (B)": "297799680"}, "system": {"Driver version": "6.7.0"}})json");
  REQUIRE(devices.size() == 1);
  CHECK(devices[0].name == "AMD Instinct MI300X");
  CHECK(devices[0].machine == "mi300x");
  CHECK(*devices[0].memory_bytes == Integer{206141652992});
  CHECK(devices[0].driver == "6.7.0");
  CHECK(parse_rocm_smi("no JSON").empty());
  CHECK(parse_rocm_smi(R"({"card0": 3, "system": []})").empty());
}

TEST_CASE("the amdgpu driver's files become devices without a tool") {
  namespace fs = std::filesystem;
  const fs::path root = fs::temp_directory_path() / "headroom-test-drm";
  fs::remove_all(root);
  const fs::path folder = root / "sys/class/drm/card1/device";
  fs::create_directories(folder);
  fs::create_directories(root / "sys/class/drm/card1-DP-1");
  std::ofstream(folder / "mem_info_vram_total") << "25753026560\n";
  std::ofstream(folder / "product_name") << "Radeon RX 7900 XTX\n";
  const std::vector<LocalDevice> devices = drm_devices(root);
  REQUIRE(devices.size() == 1);
  CHECK(devices[0].name == "Radeon RX 7900 XTX");
  CHECK(*devices[0].memory_bytes == Integer{25753026560});
  CHECK(!devices[0].used_bytes);
  fs::remove_all(root);
  CHECK(drm_devices(root).empty());
}

TEST_CASE("a device with another memory than the catalogue's has no name there") {
  CHECK(catalogue_name("NVIDIA A100-SXM4-80GB", Integer{81920} * 1048576) == "a100-80gb");
  CHECK(catalogue_name("NVIDIA H200", Integer{80000} * 1048576).empty());
}

}  // namespace headroom::test
