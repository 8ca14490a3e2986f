// Values of stored tensors: conversions are exact, and non-finite values are refused.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "checkpoint/weight_files.h"
#include "safetensors.h"

using namespace headroom;
using namespace headroom::checkpoint;
using namespace headroom::test;

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// The value of sixteen bits with this many exponent bits, by the definition of IEEE 754.
double value_of(unsigned bits, int exponent_bits) {
  const int fraction_bits = 15 - exponent_bits;
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const int exponent = static_cast<int>(bits & 0x7FFFU) >> fraction_bits;
  const double fraction = std::ldexp(bits & ((1U << fraction_bits) - 1), -fraction_bits);
  const double sign = (bits & 0x8000U) != 0 ? -1.0 : 1.0;
  if (exponent == 0) return sign * std::ldexp(fraction, 1 - bias);
  if (exponent < 2 * bias + 1) return sign * std::ldexp(1 + fraction, exponent - bias);
  return fraction > 0 ? std::numeric_limits<double>::quiet_NaN()
                      : sign * std::numeric_limits<double>::infinity();
}

bool same(float computed, double expected) {
  if (std::isnan(expected)) return std::isnan(computed);
  return static_cast<double>(computed) == expected &&
         std::signbit(computed) == std::signbit(expected);
}

/// A tensor in memory at an odd address, as is possible in a file.
class Stored {
 public:
  Stored(StoredType type, const std::vector<std::uint16_t>& values)
      : type_(type), bytes_(1 + 2 * values.size()) {
    std::ranges::copy(std::as_bytes(std::span(values)), bytes_.begin() + 1);
  }
  [[nodiscard]] StoredTensor tensor() const {
    const auto data = std::span<const std::byte>(bytes_).subspan(1);
    return {"w", type_, {static_cast<std::int64_t>(data.size() * 8 / stored_bits(type_))}, data};
  }

 private:
  StoredType type_;
  std::vector<std::byte> bytes_;
};

std::vector<float> floats_of(const StoredTensor& tensor) {
  std::vector<float> values(tensor.data.size() * 8 / stored_bits(tensor.type));
  copy_as_float32(tensor, values, tensor_place("f.safetensors", tensor.name));
  return values;
}

}  // namespace

TEST_CASE("every half-precision and bfloat16 number converts to its exact value") {
  for (unsigned bits = 0; bits <= 0xFFFFU; ++bits) {
    const auto stored = static_cast<std::uint16_t>(bits);
    if (!same(half_to_float(stored), value_of(bits, 5))) FAIL_CHECK("half " << bits);
    if (!same(bfloat16_to_float(stored), value_of(bits, 8))) FAIL_CHECK("bfloat16 " << bits);
  }
}

TEST_CASE("special half-precision and bfloat16 numbers have their published values") {
  CHECK(half_to_float(0x0001) == 0x1p-24F);  // the smallest subnormal
  CHECK(half_to_float(0x03FF) == 0x1.ff8p-15F);
  CHECK(half_to_float(0x0400) == 0x1p-14F);  // the smallest normal
  CHECK(half_to_float(0x3C00) == 1.0F);
  CHECK(half_to_float(0x7BFF) == 65504.0F);
  CHECK(half_to_float(0xFC00) == -kInfinity);
  CHECK(std::isnan(half_to_float(0x7E00)));
  CHECK(std::signbit(half_to_float(0x8000)));
  CHECK(bfloat16_to_float(0x3F80) == 1.0F);
  CHECK(bfloat16_to_float(0x0001) == 0x1p-133F);
  CHECK(bfloat16_to_float(0x7F80) == kInfinity);
  CHECK(std::isnan(bfloat16_to_float(0xFFC0)));
}

TEST_CASE("16-bit weights are widened at any alignment") {
  const Stored half(StoredType::float16, {0x3C00, 0xC000, 0x0001});
  CHECK(floats_of(half.tensor()) == std::vector<float>{1.0F, -2.0F, 0x1p-24F});
  const Stored brain(StoredType::bfloat16, {0x3F80, 0xC000});
  CHECK(floats_of(brain.tensor()) == std::vector<float>{1.0F, -2.0F});
  CHECK(floats_of(Stored(StoredType::float32, {}).tensor()).empty());
}

TEST_CASE("the error names file and tensor of a non-finite weight") {
  const std::vector<Stored> bad = {
      {StoredType::float16, {0x3C00, 0x7C00}},  {StoredType::float16, {0x3C00, 0x7C01}},
      {StoredType::bfloat16, {0x3F80, 0xFF80}}, {StoredType::bfloat16, {0x3F80, 0x7FC0}},
      {StoredType::float32, {0, 0, 0, 0x7F80}}, {StoredType::float32, {0, 0, 1, 0xFF80}}};
  for (const Stored& stored : bad) {
    const Error error = input_error_of([&] { (void)floats_of(stored.tensor()); });
    CHECK(error.where() == "f.safetensors: w");
    CHECK(error.message().find("element 1 of 2") != std::string::npos);
  }
}

TEST_CASE("weights of other types are refused, and so are outputs of the wrong size") {
  for (const StoredType type : {StoredType::int16, StoredType::float8_e4m3, StoredType::float64}) {
    const Stored stored(type, {0, 0, 0, 0});
    const Error error = input_error_of([&] { (void)floats_of(stored.tensor()); });
    CHECK(error.where() == "f.safetensors: w");
  }
  const Stored stored(StoredType::float16, {0, 0});
  std::vector<float> room(3);
  const Error error = error_of([&] { copy_as_float32(stored.tensor(), room, "f: w"); });
  CHECK(error.code() == ErrorCode::internal);
}

TEST_CASE("whole numbers of 64 bits become their float32 values") {
  const Stored stored(StoredType::int64, {3, 0, 0, 0, 0xFFFF, 0xFFFF, 0xFFFF, 0xFFFF});
  CHECK(floats_of(stored.tensor()) == std::vector<float>{3, -1});
}
