// Models in the GGUF format, versions 2 and 3, little-endian.
// Source: docs/gguf.md, github.com/ggml-org/ggml; ggml/src/gguf.cpp, github.com/ggml-org/llama.cpp.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "ggml_type.h"
#include "mapped_file.h"

namespace headroom::checkpoint {

/// Types of metadata values; the numbers are those in a file.
enum class GgufValueType : std::uint8_t {
  uint8 = 0,
  int8 = 1,
  uint16 = 2,
  int16 = 3,
  uint32 = 4,
  int32 = 5,
  float32 = 6,
  boolean = 7,
  string = 8,
  array = 9,
  uint64 = 10,
  int64 = 11,
  float64 = 12,
};

/// A list that was validated but not copied: a vocabulary has hundreds of thousands of words that
/// nobody reads.
struct GgufArray {
  GgufValueType type = GgufValueType::uint8;
  std::uint64_t count = 0;
  std::span<const std::byte> data;

  /// The elements as integers. Throws Error{invalid_input} at `where` if they are not integers
  /// below 2^63.
  [[nodiscard]] std::vector<std::int64_t> integers(const std::string& where) const;
  /// The elements as booleans. Throws Error{invalid_input} at `where` if they are not booleans.
  [[nodiscard]] std::vector<bool> flags(const std::string& where) const;
  /// The elements as numbers. Throws Error{invalid_input} at `where` if they are not of a
  /// floating-point type.
  [[nodiscard]] std::vector<double> numbers(const std::string& where) const;
};

using GgufValue =
    std::variant<std::uint64_t, std::int64_t, double, bool, std::string_view, GgufArray>;

struct GgufTensor {
  static constexpr std::size_t kMostDimensions = 4;  // GGML_MAX_DIMS

  std::string_view name;
  GgmlType type = GgmlType::f32;
  std::size_t rank = 0;
  std::array<std::int64_t, kMostDimensions> sizes{};
  std::int64_t offset = 0;  ///< from the end of the header
  std::int64_t bytes = 0;

  /// Row-major: the file lists the row size first, here it is last.
  [[nodiscard]] std::span<const std::int64_t> shape() const { return {sizes.data(), rank}; }
};

/// A parsed file. All strings and lists point into its bytes.
struct GgufContent {
  std::uint32_t version = 0;
  std::map<std::string_view, GgufValue> metadata;
  std::vector<GgufTensor> tensors;  ///< in the file's order
  std::uint64_t data_begin = 0;     ///< origin of the offsets
};

/// Parses the file that begins with `content`. Nothing in it is trusted: throws
/// Error{invalid_input} naming `file`, and the key or tensor if there is one.
[[nodiscard]] GgufContent parse_gguf(const FileHead& content, const std::string& file);

/// Returns true if the file begins with GGUF's magic number or is named .gguf, which a truncated
/// download keeps; false if there is no such file.
[[nodiscard]] bool is_gguf(const std::filesystem::path& path);

/// One file, memory-mapped for its lifetime. Moving it copies no data.
class GgufFile {
 public:
  /// Throws Error{invalid_input} if the file cannot be read or is not valid.
  explicit GgufFile(const std::filesystem::path& path);

  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] FileHead head() const noexcept { return file_.head(); }
  [[nodiscard]] const GgufContent& content() const noexcept { return parsed_; }
  /// As MappedFile::require_unchanged.
  void require_unchanged() const { file_.require_unchanged(); }

  /// The value of a key, or null.
  [[nodiscard]] const GgufValue* find(std::string_view key) const;

 private:
  std::string path_;
  MappedFile file_;
  GgufContent parsed_;
};

}  // namespace headroom::checkpoint
