#include "kv_bytes.h"

#include <fmt/format.h>

#include <algorithm>

#include "headroom/error.h"
#include "setting_format.h"

namespace headroom::detail {
namespace {

constexpr Integer kScaleBytes = 2;        // float16
constexpr Integer kTensorScaleBytes = 4;  // float32
constexpr Integer kGroup = 32;            // values: KIVI, arXiv 2402.02750, section 4.1
constexpr Integer kResidual = 128;        // tokens: likewise, divisible by the group
static_assert(kResidual % kGroup == 0);

Integer vector_bytes(KvType type, Integer length) {
  const KvTypeInfo& layout = info(type);
  return checked_multiply(ceil_div(length, layout.block_values), layout.block_bytes);
}

bool has_zero_points(KvType type) {
  return type == KvType::int8 || type == KvType::int4 || type == KvType::int2;
}

/// Bytes of the scales of one vector, for per-token scales.
Integer scale_bytes_of_vector(const KvFormat& format, const KvVectors& kind) {
  switch (format.scales) {
    case KvScales::none:
    case KvScales::tensor:
      return 0;
    case KvScales::token_head:
      return format.token_scale.bytes +
             (has_zero_points(format.type_of(kind.role)) ? format.token_scale.zero_point_bytes : 0);
    case KvScales::group:
    case KvScales::kivi:
      break;
  }
  return checked_multiply(ceil_div(kind.length, kGroup), 2 * kScaleBytes);
}

/// KIVI: of l tokens, the last l mod 128 keys and the last 128 values are not quantised.
Integer quantised_tokens(KvRole role, Integer tokens) {
  if (role == KvRole::key) return tokens - tokens % kResidual;
  return std::max<Integer>(0, tokens - kResidual);
}

StoredBytes kivi_bytes(const KvVectors& vectors, const KvFormat& format, Integer tokens) {
  const Integer quantised = quantised_tokens(vectors.role, tokens);
  const Integer waiting = checked_multiply(vector_bytes(format.waiting, vectors.length),
                                           checked_multiply(vectors.count, tokens - quantised));
  const Integer rows = checked_multiply(vectors.count, quantised);
  StoredBytes bytes;
  bytes.values = checked_add(
      waiting, checked_multiply(vector_bytes(format.type_of(vectors.role), vectors.length), rows));
  // Keys have one scale per channel and 32 tokens, values one per token and 32 channels.
  bytes.scales = vectors.role == KvRole::key
                     ? checked_multiply(rows / kGroup, vectors.length * 2 * kScaleBytes)
                     : checked_multiply(rows, scale_bytes_of_vector(format, vectors));
  return bytes;
}

/// Throws Error{invalid_input} if `layout` cannot have these scales.
void require_scalable(const KvTypeInfo& layout, KvScales scales) {
  if (scales == KvScales::none) return;
  if (is_block_type(layout.type)) {
    throw_invalid_input(fmt::format("{} blocks contain their scales", layout.name),
                        fmt::format("leave out {}", Setting::kv_scales));
  }
  const bool whole_float = layout.counted_as != DType::int8 && layout.counted_as != DType::float8;
  if (whole_float) {
    throw_invalid_input(fmt::format("{} values need no scales", layout.name),
                        fmt::format("leave out {}, or choose a {} of 8 bits or fewer",
                                    Setting::kv_scales, Setting::kv_dtype));
  }
  const bool needs_integers = scales == KvScales::group || scales == KvScales::kivi;
  if (needs_integers && !has_zero_points(layout.type)) {
    throw_invalid_input(fmt::format("{} {} requires integers, not {}", Setting::kv_scales,
                                    name_of(scales), layout.name),
                        fmt::format("choose {} int8, int4 or int2", Setting::kv_dtype));
  }
}

void require_storable_vector(const KvVectors& kind, const KvFormat& format) {
  const KvTypeInfo& layout = info(format.type_of(kind.role));
  if (is_block_type(layout.type) && kind.length % layout.block_values != 0) {
    throw_invalid_input(
        fmt::format("{} stores blocks of {} values, which do not divide a vector of {}",
                    layout.name, layout.block_values, to_string(kind.length)),
        fmt::format("choose another {}", Setting::kv_dtype));
  }
  require_scalable(layout, format.scales);
}

}  // namespace

StoredBytes bytes_of_tokens(const std::vector<KvVectors>& vectors, const KvFormat& format,
                            Integer tokens) {
  StoredBytes sum;
  for (const KvVectors& kind : vectors) {
    StoredBytes own;
    if (format.scales == KvScales::kivi) {
      own = kivi_bytes(kind, format, tokens);
    } else {
      const Integer rows = checked_multiply(kind.count, tokens);
      own = {checked_multiply(vector_bytes(format.type_of(kind.role), kind.length), rows),
             checked_multiply(scale_bytes_of_vector(format, kind), rows)};
    }
    sum.values = checked_add(sum.values, own.values);
    sum.scales = checked_add(sum.scales, own.scales);
  }
  return sum;
}

Integer bytes_of_tensor_scales(const std::vector<KvVectors>& vectors, const KvFormat& format) {
  if (format.scales != KvScales::tensor) return 0;
  return kTensorScaleBytes * static_cast<Integer>(vectors.size());
}

void require_storable(const std::vector<KvVectors>& vectors, const KvFormat& format) {
  for (const KvVectors& kind : vectors) require_storable_vector(kind, format);
}

}  // namespace headroom::detail
