// Names that people type for a machine, and the machines that they mean.
#include <doctest/doctest.h>

#include <array>
#include <string>

#include "headroom/error.h"
#include "headroom/machine_names.h"
#include "headroom/machine_profile.h"

using namespace headroom;

namespace {

/// A name that a driver prints, and its machine.
struct Printed {
  const char* name;
  const char* machine;
};

}  // namespace

TEST_CASE("the name that a driver prints means its machine") {
  // As nvidia-smi and rocm-smi print them, by the sources of the catalogue's memory readings.
  constexpr std::array<Printed, 22> kPrinted{{
      {"NVIDIA A100 80GB PCIe", "a100-80gb-pcie"},
      {"NVIDIA A100-SXM4-40GB", "a100-40gb"},
      {"NVIDIA A100-SXM4-80GB", "a100-80gb"},
      {"NVIDIA A40", "a40"},
      {"NVIDIA B200", "b200"},
      {"NVIDIA GB300", "gb300"},
      {"NVIDIA GeForce RTX 3060", "rtx-3060"},
      {"NVIDIA GeForce RTX 4060 Ti", "rtx-4060-ti-16gb"},
      {"NVIDIA GeForce RTX 4070", "rtx-4070"},
      {"NVIDIA GeForce RTX 4070 Ti", "rtx-4070-ti"},
      {"NVIDIA GeForce RTX 4070 Ti SUPER", "rtx-4070-ti-super"},
      {"NVIDIA GeForce RTX 4090", "rtx-4090"},
      {"NVIDIA H100 80GB HBM3", "h100-80gb"},
      {"NVIDIA H100 PCIe", "h100-80gb-pcie"},
      {"NVIDIA H20", "h20-96gb"},
      {"NVIDIA H200", "h200-141gb"},
      {"NVIDIA L40S", "l40s"},
      {"NVIDIA RTX 6000 Ada Generation", "rtx-6000-ada"},
      {"NVIDIA RTX A6000", "rtx-a6000"},
      {"Tesla T4", "t4"},
      {"Tesla V100-SXM2-32GB", "v100-32gb"},
      {"AMD Instinct MI300X", "mi300x"},
  }};
  for (const Printed& one : kPrinted) {
    CAPTURE(one.name);
    CHECK(machine_meant(one.name) == one.machine);
  }
}

TEST_CASE("a short name means the machine with the only memory of the list") {
  CHECK(machine_meant("h200") == "h200-141gb");
  CHECK(machine_meant("H100") == "h100-80gb");
  CHECK(machine_meant("h100 nvl") == "h100-nvl-94gb");
  CHECK(machine_meant("rtx4090") == "rtx-4090");
  CHECK(machine_meant("4090") == "rtx-4090");
  CHECK(machine_meant("7900 XTX") == "rx-7900-xtx");
  CHECK(machine_meant("M2 Max") == "apple-m2-max");
}

TEST_CASE("a name of two sizes of memory is refused with both") {
  try {
    (void)machine_meant("a100");
    FAIL("a100 was taken as one machine");
  } catch (const Error& error) {
    CHECK(error.hint() == "name one of them: a100-40gb, a100-80gb");
  }
  CHECK_THROWS_AS((void)machine_meant("Tesla V100"), Error);
}

TEST_CASE("a name of the list means itself, and a name of no machine too") {
  for (const MachineProfile& machine : catalogue_machines()) {
    CHECK(machine_meant(machine.name) == machine.name);
  }
  for (const char* const other :
       {"", "-", "gpu", "nvidia", "RTX", "80gb", "h1000", "4090 laptop"}) {
    CAPTURE(other);
    CHECK(machine_meant(other) == other);
  }
}
