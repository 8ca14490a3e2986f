// Reading safetensors files: valid files are read exactly; any other is an error that names the
// file, and the tensor if there is one.
#include <doctest/doctest.h>
#include <sys/stat.h>

#include <algorithm>
#include <span>

#include "checkpoint/weight_files.h"
#include "safetensors.h"

using namespace headroom;
using namespace headroom::checkpoint;
using namespace headroom::test;

namespace {

std::string text_of(const StoredTensor& tensor) {
  return {reinterpret_cast<const char*>(tensor.data.data()), tensor.data.size()};
}

const std::string kValid =
    R"({"__metadata__":{"format":"pt"},)" + entry("b", "I64", "[]", "[4,12]") + "," +
    entry("a", "U8", "[2,2]", "[0,4]") + "," + entry("none", "F32", "[3,0]", "[4,4]") + "}  ";
const std::string kValidData = "abcd12345678";

}  // namespace

TEST_CASE("a valid file gives sorted names, and shapes, types and data as stored") {
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

TEST_CASE("a file truncated anywhere is refused, and so is one with an extra byte") {
  const std::string content = safetensors_bytes(kValid, kValidData);
  for (std::size_t length = 0; length < content.size(); ++length) {
    CAPTURE(length);
    (void)place_of(content.substr(0, length));
  }
  CHECK(place_of(content + "x").empty());
}

TEST_CASE("changing any byte of the header gives a file or an error, never a crash") {
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

TEST_CASE("the error names an unreadable file") {
  const TempFolder folder;
  test::write_file(folder / "empty", "");
  REQUIRE(mkfifo((folder / "pipe").c_str(), 0600) == 0);
  for (const std::string name : {"absent", "empty", "pipe", "."}) {
    CAPTURE(name);
    const Error error = input_error_of([&] { SafetensorsFile file(folder / name); });
    CHECK(error.where() == (folder / name).string());
  }
}

TEST_CASE("an absurd header length is refused before reading") {
  CHECK(place_of(std::string(8, '\xff') + "{}").empty());
  CHECK(place_of(std::string("\x03\0\0\0\0\0\0\0{}", 10)).empty());
  CHECK(place_of(std::string("\0\0\0\0\0\0\0\0{}", 10)).empty());
  std::string too_long = "{}";
  too_long.resize(100'000'001, ' ');
  CHECK(place_of(safetensors_bytes(too_long, "")).empty());
}

TEST_CASE("a header that is not a JSON object is refused") {
  for (const std::string header :
       {"", "{", "nonsense", "[]", "3", "null", "\"w\"", "{} {}", "{\"a\":\xff}"}) {
    CHECK(place_of(safetensors_bytes(header, "")).empty());
  }
  CHECK(place_of(safetensors_bytes(std::string("{}\0", 3), "")).empty());
  CHECK(place_of(safetensors_bytes(std::string("{}\0{\"w\":", 8), "")).empty());
}
