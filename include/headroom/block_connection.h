// BlockConnection: hidden states of an earlier layer that a later one reads.
#pragma once

#include <cstdint>

namespace headroom {

/// A block connection (SOLAR Pro): the hidden states h in front of a layer become weight·k +
/// (1 - weight)·h, where k are those in front of layer `source`. Source: vLLM, solar.py,
/// SolarModel.forward.
struct BlockConnection {
  std::int64_t source = 0;
  double weight = 0;
};

}  // namespace headroom
