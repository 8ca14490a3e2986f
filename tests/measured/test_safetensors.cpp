// Reading of safetensors files: what is valid is read exactly; anything else is an error that names
// the file, and the tensor where there is one.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>

#include "measured/weight_files.h"
#include "safetensors.h"
#include "support/data.h"

using namespace headroom;
using namespace headroom::measured;
using namespace headroom::test;

namespace {

const std::string kEight(8, 'x');

/// A header entry "name": {…}.
std::string entry(const std::string& name, const std::string& type, const std::string& shape,
                  const std::string& offsets) {
  return fmt::format(R"("{}":{{"dtype":"{}","shape":{},"data_offsets":{}}})", name, type, shape,
                     offsets);
}

/// Where the error is that a file of this header and data gives; "" stands for the file itself.
std::string place_of(const std::string& content) {
  const auto bytes = std::as_bytes(std::span(content));
  const Error error = input_error_of([&] { (void)parse_safetensors(bytes, "f"); });
  if (error.where() == "f") return {};
  REQUIRE(error.where().starts_with("f: "));
  return error.where().substr(3);
}

std::string header_place(const std::string& header, const std::string& data = kEight) {
  CAPTURE(header);
  return place_of(safetensors_bytes(header, data));
}

/// header_place of one tensor "w".
std::string tensor_error(const std::string& type, const std::string& shape,
                         const std::string& offsets, const std::string& data = kEight) {
  return header_place("{" + entry("w", type, shape, offsets) + "}", data);
}

std::string text_of(const StoredTensor& tensor) {
  return {reinterpret_cast<const char*>(tensor.data.data()), tensor.data.size()};
}

const std::string kValid =
    R"({"__metadata__":{"format":"pt"},)" + entry("b", "I64", "[]", "[4,12]") + "," +
    entry("a", "U8", "[2,2]", "[0,4]") + "," + entry("none", "F32", "[3,0]", "[4,4]") + "}  ";
const std::string kValidData = "abcd12345678";

}  // namespace

TEST_CASE("a valid file is read: names sorted, shapes, types and data as stored") {
  const TempFolder folder;
  write_file(folder / "w.safetensors", safetensors_bytes(kValid, kValidData));
  SafetensorsFile opened(folder / "w.safetensors");
  const SafetensorsFile file = std::move(opened);
  CHECK(file.path() == (folder / "w.safetensors").string());
  REQUIRE(file.tensors().size() == 3);
  CHECK(std::ranges::is_sorted(file.tensors(), {}, &StoredTensor::name));
  const StoredTensor* const a = file.find("a");
  REQUIRE(a != nullptr);
  CHECK((a->type == StoredType::uint8));
  CHECK(a->shape == std::vector<std::int64_t>{2, 2});
  CHECK(text_of(*a) == "abcd");
  CHECK(text_of(*file.find("b")) == "12345678");
  CHECK(file.find("b")->shape.empty());
  CHECK(file.find("none")->data.empty());
  CHECK(file.find("") == nullptr);
  CHECK(file.find("aa") == nullptr);
  CHECK(file.find("z") == nullptr);
}

TEST_CASE("a file without tensors is valid") {
  const std::string content = safetensors_bytes("{}", "");
  CHECK(parse_safetensors(std::as_bytes(std::span(content)), "f").empty());
}

TEST_CASE("a file cut short at any length is refused, and so is one with a byte more") {
  const std::string content = safetensors_bytes(kValid, kValidData);
  for (std::size_t length = 0; length < content.size(); ++length) {
    CAPTURE(length);
    (void)place_of(content.substr(0, length));
  }
  CHECK(place_of(content + "x").empty());
}

TEST_CASE("any one byte of the header changed gives a file or an error, never a crash") {
  const std::string valid = safetensors_bytes(kValid, kValidData);
  for (std::size_t at = 0; at < valid.size() - kValidData.size(); ++at) {
    for (int value = 0; value < 256; ++value) {
      std::string changed = valid;
      changed[at] = static_cast<char>(value);
      try {
        (void)parse_safetensors(std::as_bytes(std::span(changed)), "f");
      } catch (const Error& error) {
        CHECK(error.code() == ErrorCode::invalid_input);
      }
    }
  }
}

TEST_CASE("files that cannot be read are refused by name") {
  const TempFolder folder;
  write_file(folder / "empty", "");
  REQUIRE(mkfifo((folder / "pipe").c_str(), 0600) == 0);
  for (const std::string name : {"absent", "empty", "pipe", "."}) {
    CAPTURE(name);
    const Error error = input_error_of([&] { SafetensorsFile file(folder / name); });
    CHECK(error.where() == (folder / name).string());
  }
}

TEST_CASE("an absurd length of the header is refused before anything is read") {
  CHECK(place_of(std::string(8, '\xff') + "{}").empty());
  CHECK(place_of(std::string("\x03\0\0\0\0\0\0\0{}", 10)).empty());
  CHECK(place_of(std::string("\0\0\0\0\0\0\0\0{}", 10)).empty());
  // 100,000,001 bytes, all there.
  std::string long_header = safetensors_bytes("{}" + std::string(99'999'999, ' '), "");
  CHECK(place_of(long_header).empty());
}

TEST_CASE("a header that is no JSON object is refused") {
  for (const std::string header :
       {"", "{", "nonsense", "[]", "3", "null", "\"w\"", "{} {}", "{\"a\":\xff}"}) {
    CHECK(header_place(header, "").empty());
  }
  CHECK(header_place(std::string("{}\0", 3), "").empty());
  CHECK(header_place(std::string("{}\0{\"w\":", 8), "").empty());
}

TEST_CASE("metadata may only map texts to texts") {
  for (const std::string value : {"3", "[]", "null", R"({"a":1})", R"({"a":{}})"}) {
    CHECK(header_place("{\"__metadata__\":" + value + "}", "") == "__metadata__");
  }
}

TEST_CASE("a tensor's description must have its three keys, of the right types") {
  CHECK(header_place(R"({"w":3})") == "w");
  CHECK(header_place(R"({"w":{}})") == "w");
  CHECK(header_place(R"({"w":{"shape":[8],"data_offsets":[0,8]}})") == "w");
  CHECK(header_place(R"({"w":{"dtype":"U8","data_offsets":[0,8]}})") == "w");
  CHECK(header_place(R"({"w":{"dtype":"U8","shape":[8]}})") == "w");
  CHECK(header_place(R"({"w":{"dtype":8,"shape":[8],"data_offsets":[0,8]}})") == "w");
  CHECK(header_place(R"({"w":{"dtype":"U8","shape":[8],"data_offsets":[0,8],"x":1}})") == "w");
  for (const std::string list : {"8", "\"8\"", "{}", "null", "[8.0]", "[\"8\"]", "[[8]]", "[true]",
                                 "[-8]", "[9223372036854775808]", "[99999999999999999999]"}) {
    CHECK(tensor_error("U8", list, "[0,8]") == "w");
    CHECK(tensor_error("U8", "[8]", list) == "w");
  }
}

TEST_CASE("an unknown data type is refused and named") {
  for (const std::string type : {"F31", "f32", "", "FLOAT"}) {
    CHECK(tensor_error(type, "[8]", "[0,8]") == "w");
  }
}

TEST_CASE("a tensor twice in a header is refused, as one would hide the other") {
  const std::string w = entry("w", "U8", "[8]", "[0,8]");
  CHECK(header_place("{" + w + "," + w + "}").empty());
}

TEST_CASE("a shape must take exactly the bytes of its data") {
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

TEST_CASE("offsets outside the file, reversed, or not two are refused") {
  CHECK(tensor_error("U8", "[9]", "[0,9]") == "w");
  CHECK(tensor_error("U8", "[8]", "[1,9]") == "w");
  CHECK(tensor_error("U8", "[8]", "[9223372036854775799,9223372036854775807]") == "w");
  CHECK(tensor_error("U8", "[8]", "[8,0]") == "w");
  CHECK(tensor_error("U8", "[8]", "[]") == "w");
  CHECK(tensor_error("U8", "[8]", "[8]") == "w");
  CHECK(tensor_error("U8", "[8]", "[0,4,8]") == "w");
}

TEST_CASE("tensors that overlap are refused") {
  const std::string first = entry("a", "U8", "[5]", "[0,5]");
  CHECK(header_place("{" + first + "," + entry("b", "U8", "[4]", "[4,8]") + "}") == "b");
  CHECK(header_place("{" + first + "," + entry("b", "U8", "[8]", "[0,8]") + "}") == "b");
  CHECK(header_place("{" + first + "," + entry("b", "U8", "[0]", "[3,3]") + "," +
                     entry("c", "U8", "[3]", "[5,8]") + "}") == "b");
}

TEST_CASE("bytes that belong to no tensor are refused") {
  CHECK(header_place("{}").empty());
  CHECK(tensor_error("U8", "[7]", "[0,7]").empty());
  CHECK(tensor_error("U8", "[7]", "[1,8]") == "w");
  CHECK(header_place("{" + entry("a", "U8", "[3]", "[0,3]") + "," +
                     entry("b", "U8", "[4]", "[4,8]") + "}") == "b");
}

TEST_CASE("every data type of the format has a name and a size, and is read") {
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
