// Forms of weights in groups of codes, as far as the time of a matrix product depends on them.
// Checkpoints of quantised safetensors run in these forms, and calibrations measure them.
#pragma once

#include <cstdint>
#include <optional>

#include "headroom/group_format.h"
#include "headroom/model_spec.h"

namespace headroom::detail {

using headroom::group_format_named;
using headroom::GroupCodes;
using headroom::GroupFormat;
using headroom::GroupScales;

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
