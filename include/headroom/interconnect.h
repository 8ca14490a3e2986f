// Interconnect: how fast the devices of a machine reach one another.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace headroom {

/// One direction, for one device. Of a datasheet that gives both directions together it is half.
struct Interconnect {
  std::int64_t devices_per_node = 8;
  double intra_node_bytes_per_s = 0;  ///< to the other devices of its node, all together
  /// Its share of the node's network; empty where the machine comes with none.
  std::optional<double> inter_node_bytes_per_s;
  std::string source;
  std::string intra_node_kind;  ///< "NVLink 4", "PCIe 4.0 x16", …
  std::string inter_node_kind;  ///< likewise, or empty
};

/// Taken where a machine says nothing: eight devices on PCIe 4 x16 (32 GB/s a direction), and a
/// 200 Gb/s port for each.
[[nodiscard]] inline Interconnect assumed_interconnect() {
  return {8,
          32e9,
          25e9,
          "assumed: 8 devices a node on PCIe 4 x16, a 200 Gb/s port for each",
          "PCIe 4.0 x16",
          "200 Gb/s"};
}

}  // namespace headroom
