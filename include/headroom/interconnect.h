// Interconnect: bandwidth between the devices of a machine.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace headroom {

/// Bandwidths of one device in one direction: half of a datasheet's bidirectional figure.
struct Interconnect {
  std::int64_t devices_per_node = 8;
  double intra_node_bytes_per_s = 0;  ///< to all other devices of the node together
  /// The device's part of the node's network bandwidth; empty if the machine includes no network.
  std::optional<double> inter_node_bytes_per_s;
  std::string source;
  std::string intra_node_kind;  ///< "NVLink 4", "PCIe 4.0 x16", …
  std::string inter_node_kind;  ///< "InfiniBand NDR", …, or empty
};

/// Default for a machine without an interconnect: eight devices on PCIe 4 x16 (32 GB/s per
/// direction) with a 200 Gb/s port each.
[[nodiscard]] inline Interconnect assumed_interconnect() {
  return {8,
          32e9,
          25e9,
          "assumed: 8 devices a node on PCIe 4 x16, a 200 Gb/s port for each",
          "PCIe 4.0 x16",
          "200 Gb/s"};
}

}  // namespace headroom
