#include "checkpoint/weight_files.h"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <stdlib.h>  // NOLINT(modernize-deprecated-headers): mkdtemp is of POSIX

#include <cstdint>
#include <fstream>
#include <span>
#include <stdexcept>
#include <system_error>

#include "safetensors.h"

namespace headroom::test {

namespace fs = std::filesystem;

TempFolder::TempFolder() {
  std::string name = (fs::temp_directory_path() / "headroom-test-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder");
  path_ = name;
}

TempFolder::~TempFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

void write_file(const fs::path& path, const std::string& content) {
  std::ofstream stream(path, std::ios::binary);
  stream << content;
  stream.close();
  if (!stream) throw std::runtime_error("cannot write " + path.string());
}

std::string safetensors_bytes(const std::string& header, const std::string& data) {
  std::string bytes;
  for (unsigned i = 0; i < 8; ++i) {
    bytes += static_cast<char>(static_cast<std::uint64_t>(header.size()) >> (8 * i) & 0xFFU);
  }
  return bytes + header + data;
}

std::string entry(const std::string& name, const std::string& type, const std::string& shape,
                  const std::string& offsets) {
  return fmt::format(R"("{}":{{"dtype":"{}","shape":{},"data_offsets":{}}})", name, type, shape,
                     offsets);
}

Error error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error;
  }
  FAIL("no error was thrown");
  return {ErrorCode::internal, {}};
}

Error input_error_of(const std::function<void()>& action) {
  Error error = error_of(action);
  CAPTURE(error.what());
  const bool is_unreadable = error.code() == ErrorCode::missing_resource &&
                             (error.message().starts_with("cannot be read: ") ||
                              error.message().starts_with("contains no weights"));
  CHECK((is_unreadable || error.code() == ErrorCode::invalid_input));
  CHECK_FALSE(error.message().empty());
  CHECK_FALSE(error.hint().empty());
  return error;
}

std::string place_of(const std::string& content) {
  const auto bytes = std::as_bytes(std::span(content));
  const Error error = input_error_of([&] { (void)checkpoint::parse_safetensors(bytes, "f"); });
  if (error.where() == "f") return {};
  REQUIRE(error.where().starts_with("f: "));
  return error.where().substr(3);
}

}  // namespace headroom::test
