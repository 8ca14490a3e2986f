// Values of stored tensors as float32.
#include "float_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "headroom/error.h"
#include "safetensors.h"

namespace headroom::checkpoint {
namespace {

static_assert(std::endian::native == std::endian::little, "stored numbers are little-endian");

/// Copies bytes, because stored data may be unaligned.
void copy_floats(std::span<const std::byte> data, std::span<float> out) {
  if (!out.empty()) std::memcpy(out.data(), data.data(), data.size());
}

template <float (*widen)(std::uint16_t)>
void widen_all(std::span<const std::byte> data, std::span<float> out) {
  for (std::size_t i = 0; i < out.size(); ++i) {
    std::uint16_t bits = 0;
    std::memcpy(&bits, &data[i * sizeof(bits)], sizeof(bits));
    out[i] = widen(bits);
  }
}

/// Whole numbers, such as indices of experts.
void convert_integers(std::span<const std::byte> data, std::span<float> out) {
  for (std::size_t i = 0; i < out.size(); ++i) {
    std::int64_t value = 0;
    std::memcpy(&value, &data[i * sizeof(value)], sizeof(value));
    out[i] = static_cast<float>(value);
  }
}

}  // namespace

void require_finite(std::span<const float> values, const std::string& where) {
  const auto found = std::ranges::find_if_not(values, [](float v) { return std::isfinite(v); });
  if (found == values.end()) return;
  throw Error(ErrorCode::invalid_input,
              fmt::format("its element {} of {} is {}", found - values.begin(), values.size(),
                          std::isnan(*found) ? "not a number (NaN)" : "infinite"),
              where, "download or save the weights again");
}

void copy_as_float32(const StoredTensor& tensor, std::span<float> out, const std::string& where) {
  const auto needed = tensor.data.size() * 8 / stored_bits(tensor.type);
  if (out.size() != needed) {
    throw Error(ErrorCode::internal,
                fmt::format("the output has {} elements and the tensor {}", out.size(), needed),
                where);
  }
  if (tensor.type == StoredType::float32) {
    copy_floats(tensor.data, out);
  } else if (tensor.type == StoredType::float16) {
    widen_all<half_to_float>(tensor.data, out);
  } else if (tensor.type == StoredType::bfloat16) {
    widen_all<bfloat16_to_float>(tensor.data, out);
  } else if (tensor.type == StoredType::int64) {
    convert_integers(tensor.data, out);
  } else {
    throw Error(ErrorCode::invalid_input,
                fmt::format("weights of type {} are not supported", stored_name(tensor.type)),
                where, "convert the weights to F32, F16 or BF16");
  }
  require_finite(out, where);
}

}  // namespace headroom::checkpoint
