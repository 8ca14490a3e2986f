// Tensor entries in a safetensors header: all must fit the file.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "checkpoint/weight_files.h"
#include "safetensors.h"

using namespace headroom;
using namespace headroom::checkpoint;
using namespace headroom::test;

namespace {

const std::string kEight(8, 'x');

/// place_of a file with this header and, by default, eight bytes of data.
std::string header_place(const std::string& header, const std::string& data = kEight) {
  CAPTURE(header);
  return place_of(safetensors_bytes(header, data));
}

/// header_place of a header with one tensor "w".
std::string tensor_error(const std::string& type, const std::string& shape,
                         const std::string& offsets, const std::string& data = kEight) {
  return header_place("{" + entry("w", type, shape, offsets) + "}", data);
}

}  // namespace

TEST_CASE("metadata may only map strings to strings") {
  for (const std::string value : {"3", "[]", "null", R"({"a":1})", R"({"a":{}})"}) {
    CHECK(header_place("{\"__metadata__\":" + value + "}", "") == "__metadata__");
  }
}

TEST_CASE("a tensor's entry must have its three keys, of the right types") {
  CHECK(header_place(R"({"w":3})") == "w");
  CHECK(header_place(R"({"w":{}})") == "w");
  CHECK(header_place(R"({"w":{"shape":[8],"data_offsets":[0,8]}})") == "w");
  CHECK(header_place(R"({"w":{"dtype":"U8","data_offsets":[0,8]}})") == "w");
  CHECK(header_place(R"({"w":{"dtype":"U8","shape":[8]}})") == "w");
  CHECK(header_place(R"({"w":{"dtype":8,"shape":[8],"data_offsets":[0,8]}})") == "w");
  CHECK(header_place(R"({"w":{"dtype":"U8","shape":[8],"data_offsets":[0,8],"x":1}})") == "w");
  CHECK(header_place(R"({"w":{"dtype":"U8","dtype":"U8","shape":[8],"data_offsets":[0,8]}})") ==
        "w");
  CHECK(header_place(R"({"w":{"shape":[8],"shape":[8],"dtype":"U8","data_offsets":[0,8]}})") ==
        "w");
  CHECK(header_place(R"({"w":{"data_offsets":[0,8],"data_offsets":[0,8],"dtype":"U8"}})") == "w");
  for (const std::string list : {"8", "\"8\"", "{}", "null", "[8.0]", "[\"8\"]", "[[8]]", "[true]",
                                 "[-8]", "[9223372036854775808]", "[99999999999999999999]"}) {
    CHECK(tensor_error("U8", list, "[0,8]") == "w");
    CHECK(tensor_error("U8", "[8]", list) == "w");
  }
}

TEST_CASE("the error names an unknown data type") {
  for (const std::string type : {"F31", "f32", "", "FLOAT"}) {
    CHECK(tensor_error(type, "[8]", "[0,8]") == "w");
  }
}

TEST_CASE("a duplicate tensor is refused, because one would hide the other") {
  const std::string w = entry("w", "U8", "[8]", "[0,8]");
  CHECK(header_place("{" + w + "," + w + "}").empty());
  CHECK(header_place(R"({"__metadata__":{"a":"1","a":"2"}})", "").empty());
}

TEST_CASE("a tensor of more dimensions than any model has is refused") {
  std::string ones = "1";
  for (int i = 1; i < 65; ++i) ones += ",1";
  const Error error = input_error_of([&] {
    const std::string bytes =
        safetensors_bytes("{" + entry("w", "U8", "[" + ones + "]", "[0,1]") + "}", "x");
    (void)parse_safetensors(std::as_bytes(std::span(bytes)), "f");
  });
  CHECK(error.where() == "w");
}

TEST_CASE("a shape must match the bytes of its data") {
  for (const std::string shape : {"[7]", "[9]", "[0]", "[]", "[8,2]", "[8,0]"}) {
    CHECK(tensor_error("U8", shape, "[0,8]") == "w");
  }
  CHECK(tensor_error("F32", "[8]", "[0,8]") == "w");
  CHECK(tensor_error("F4", "[3]", "[0,1]", "x") == "w");
  CHECK(tensor_error("F4", "[3]", "[0,2]", "xx") == "w");
}

TEST_CASE("sizes whose product overflows are refused, not wrapped") {
  CHECK(tensor_error("U8", "[4294967296,4294967296]", "[0,0]", "") == "w");
  CHECK(tensor_error("F64", "[2305843009213693952]", "[0,0]", "") == "w");
  CHECK(tensor_error("U8", "[9223372036854775807,9223372036854775807]", "[0,1]", "x") == "w");
  // 2^128 times 8 is 0 modulo 2^128.
  const std::string power = "4294967296";
  const std::string shape = fmt::format("[{0},{0},{0},{0},8]", power);
  CHECK(tensor_error("U8", shape, "[0,8]") == "w");
}

TEST_CASE("offsets outside the file, reversed, or of another number than two are refused") {
  CHECK(tensor_error("U8", "[9]", "[0,9]") == "w");
  CHECK(tensor_error("U8", "[8]", "[1,9]") == "w");
  CHECK(tensor_error("U8", "[8]", "[9223372036854775799,9223372036854775807]") == "w");
  CHECK(tensor_error("U8", "[8]", "[8,0]") == "w");
  CHECK(tensor_error("U8", "[8]", "[]") == "w");
  CHECK(tensor_error("U8", "[8]", "[8]") == "w");
  CHECK(tensor_error("U8", "[8]", "[0,8,8]") == "w");
}

TEST_CASE("tensors that overlap are refused") {
  const std::string first = entry("a", "U8", "[5]", "[0,5]");
  CHECK(header_place("{" + first + "," + entry("b", "U8", "[4]", "[4,8]") + "}") == "b");
  CHECK(header_place("{" + first + "," + entry("b", "U8", "[8]", "[0,8]") + "}") == "b");
  CHECK(header_place("{" + first + "," + entry("b", "U8", "[0]", "[3,3]") + "," +
                     entry("c", "U8", "[3]", "[5,8]") + "}") == "b");
}

TEST_CASE("bytes outside all tensors are refused") {
  CHECK(header_place("{}").empty());
  CHECK(tensor_error("U8", "[7]", "[0,7]").empty());
  CHECK(tensor_error("U8", "[7]", "[1,8]") == "w");
  CHECK(header_place("{" + entry("a", "U8", "[3]", "[0,3]") + "," +
                     entry("b", "U8", "[4]", "[4,8]") + "}") == "b");
}

TEST_CASE("the beginning of a file suffices for the tensors of its header") {
  constexpr std::uint64_t kBytes = std::uint64_t{6} << 30U;
  const std::string header =
      "{" + entry("w", "U8", "[6,1073741824]", fmt::format("[0,{}]", kBytes)) + "}";
  const std::string begin = safetensors_bytes(header, "");
  const std::span<const std::byte> bytes = std::as_bytes(std::span(begin));
  const auto tensors = parse_safetensors({bytes, begin.size() + kBytes}, "f");
  REQUIRE(tensors.size() == 1);
  CHECK(tensors[0].shape == std::vector<std::int64_t>{6, 1 << 30});
  CHECK(tensors[0].data.empty());
  CHECK_THROWS_AS((void)parse_safetensors({bytes, begin.size() + kBytes - 1}, "f"), Error);
}

TEST_CASE("a header that goes on beyond the bytes that were read is no damaged file") {
  const std::string begin = safetensors_bytes("{" + entry("w", "U8", "[8]", "[0,8]") + "}", "");
  const std::span<const std::byte> bytes = std::as_bytes(std::span(begin));
  try {
    (void)parse_safetensors({bytes.first(bytes.size() / 2), begin.size() + 8}, "f");
    FAIL("no error");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::missing_resource);
    CHECK(error.where() == "f");
  }
}

TEST_CASE("every data type of the format has a name and a size and can be read") {
  for (std::size_t i = 0; i <= static_cast<std::size_t>(StoredType::uint64); ++i) {
    const auto type = static_cast<StoredType>(i);
    CAPTURE(stored_name(type));
    CHECK((stored_type(stored_name(type)) == type));
    const std::size_t bytes = stored_bytes(type, std::vector<std::int64_t>{2, 4}).value();
    CHECK(bytes == stored_bits(type));
    const std::string offsets = fmt::format("[0,{}]", bytes);
    const std::string header = entry("w", std::string(stored_name(type)), "[2,4]", offsets);
    const std::string content = safetensors_bytes("{" + header + "}", std::string(bytes, 'x'));
    CHECK(parse_safetensors(std::as_bytes(std::span(content)), "f").size() == 1);
  }
  CHECK_FALSE(stored_bytes(StoredType::uint8, std::vector<std::int64_t>{-1}).has_value());
}
