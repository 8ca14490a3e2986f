// Forms of weights in groups of codes, as far as the time of a matrix product depends on them.
// Checkpoints of quantised safetensors run in these forms, and calibrations measure them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "headroom/model_spec.h"

namespace headroom::detail {

using headroom::GroupCodes;

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

/// The form in which headroom's kernels run safetensors of `format`; empty if none does.
[[nodiscard]] std::optional<GroupFormat> group_format_of(const StorageFormat& format);

/// A matrix of this form as it is stored: codes, scales and zero points, row after row; of nested
/// scales as bitsandbytes stores them, with tables of 16 levels and 256 scales.
[[nodiscard]] StorageFormat storage_format(const GroupFormat& format);

/// Returns whether kernels read rows of `in` inputs in this form: codes of four bits are read eight
/// at once, and no nested scale covers values of two rows.
[[nodiscard]] bool fits_rows(const GroupFormat& format, std::int64_t in) noexcept;

/// Returns whether weights stored as `spec` states run in groups of codes: those of quantised
/// safetensors, and random ones in such a format. All others run in ggml's blocks or as plain
/// numbers.
[[nodiscard]] bool runs_in_groups(const ModelSpec& spec);

}  // namespace headroom::detail
