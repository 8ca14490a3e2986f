// Reads little-endian values from bytes, with bounds checks.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "file_head.h"

namespace headroom::checkpoint {

static_assert(std::endian::native == std::endian::little, "stored numbers are little-endian");

/// Every take function throws Error naming the file if too few bytes are left: invalid_input at the
/// end of the file, missing_resource at the end of what was read of it.
class ByteReader {
 public:
  ByteReader(const FileHead& content, std::string file)
      : content_(content), file_(std::move(file)) {}

  template <class Value>
  requires std::is_arithmetic_v<Value>
  [[nodiscard]] Value take() {
    Value value{};
    std::memcpy(&value, take_bytes(sizeof(Value)).data(), sizeof(Value));
    return value;
  }

  [[nodiscard]] std::span<const std::byte> take_bytes(std::uint64_t count);

  /// Reads a length of eight bytes and that many characters.
  [[nodiscard]] std::string_view take_text();

  [[nodiscard]] std::uint64_t position() const noexcept { return position_; }
  /// Bytes from here to the end of the file.
  [[nodiscard]] std::uint64_t left() const noexcept { return content_.file_size - position_; }
  [[nodiscard]] const std::string& file() const noexcept { return file_; }

 private:
  FileHead content_;
  std::string file_;
  std::uint64_t position_ = 0;
};

}  // namespace headroom::checkpoint
