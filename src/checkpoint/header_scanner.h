// Takes the header of a safetensors file apart. A general JSON parser takes most of a second for a
// million tensors; the header's grammar is small, and this reads nothing else.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>

namespace headroom::checkpoint {

/// A place in a JSON text. Every function skips blanks first; those that expect throw
/// Error{invalid_input} naming the file.
class HeaderScanner {
 public:
  /// Texts with escapes are kept in `texts`, which must outlive what text() returns.
  HeaderScanner(std::string_view json, std::string file, std::deque<std::string>& texts)
      : json_(json), file_(std::move(file)), texts_(texts) {}

  /// The next character; 0 at the end.
  [[nodiscard]] char peek();
  /// Passes `wanted` if it comes next.
  bool accept(char wanted);
  void expect(char wanted);
  /// Expects that nothing is left.
  void expect_end();
  /// Expects a text, and gives its characters.
  [[nodiscard]] std::string_view text();
  /// Passes a whole number from 0 to 2^63 - 1; empty, and nothing passed, when none comes next.
  [[nodiscard]] std::optional<std::int64_t> natural();

  [[noreturn]] void fail(const std::string& message) const;
  [[nodiscard]] const std::string& file() const noexcept { return file_; }

 private:
  [[nodiscard]] std::string_view unescaped(std::string_view quoted);

  std::string_view json_;
  std::string file_;
  std::deque<std::string>& texts_;
  std::size_t at_ = 0;
};

}  // namespace headroom::checkpoint
