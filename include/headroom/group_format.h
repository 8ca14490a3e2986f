// Forms of weights in groups of codes: matrices whose values are codes with a scale for every
// group, as quantised safetensors store them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "headroom/weight_spec.h"

namespace headroom {

/// Types of stored scales, by their bits.
enum class GroupScales {
  none,
  bits8,
  bits16,
  bits32,
  nested,  ///< eight bits, with a second scale for every 256 scales
};

struct GroupFormat {
  GroupCodes codes = GroupCodes::four_bits;
  BlockShape grain{};  ///< values that share a scale; 0 spans the dimension
  GroupScales scales = GroupScales::none;
  bool has_zeros = false;  ///< zero points, as many as scales
  bool operator==(const GroupFormat&) const = default;
};

/// "4bit-1x128-s16-zeros", "fp8-128x128-s32", "int8-row-s16", "4bit-1x64-nested", "bf16".
[[nodiscard]] std::string name_of(const GroupFormat& format);

/// The format with this name, in any case; empty if there is none.
[[nodiscard]] std::optional<GroupFormat> group_format_named(std::string_view name);

}  // namespace headroom
