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

namespace headroom::checkpoint {

static_assert(std::endian::native == std::endian::little, "stored numbers are little-endian");

/// Every take function throws Error{invalid_input} naming the file if too few bytes are left.
class ByteReader {
 public:
  ByteReader(std::span<const std::byte> bytes, std::string file)
      : bytes_(bytes), file_(std::move(file)) {}

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
  [[nodiscard]] std::uint64_t left() const noexcept { return bytes_.size() - position_; }
  [[nodiscard]] const std::string& file() const noexcept { return file_; }

 private:
  std::span<const std::byte> bytes_;
  std::string file_;
  std::uint64_t position_ = 0;
};

}  // namespace headroom::checkpoint
