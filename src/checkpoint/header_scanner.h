// Scans the header of a safetensors file. A general JSON parser needs most of a second for a
// million tensors; this reads only the header's small grammar.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>

namespace headroom::checkpoint {

/// A position in a JSON text. Every function skips blanks first; the expect functions throw
/// Error{invalid_input} naming the file.
class HeaderScanner {
 public:
  /// Stores strings with escapes in `texts`, which must outlive the results of text().
  HeaderScanner(std::string_view json, std::string file, std::deque<std::string>& texts)
      : json_(json), file_(std::move(file)), texts_(texts) {}

  /// The next character; 0 at the end.
  [[nodiscard]] char peek();
  /// Skips `wanted`, which is not 0, if it comes next.
  bool accept(char wanted);
  void expect(char wanted);
  /// Throws unless the text ends here.
  void expect_end();
  /// Reads a string and returns its characters.
  [[nodiscard]] std::string_view text();
  /// Reads an integer from 0 to 2^63 - 1; empty, with nothing read, if none comes next.
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
