// Words of a command line. Internal to src/plan.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace headroom::detail {

class CommandWords {
 public:
  explicit CommandWords(std::string start) : text_(std::move(start)) {}

  void add(std::string_view words) { text_ += fmt::format(" {}", words); }
  template <class Value>
  void add(std::string_view option, const Value& value) {
    text_ += fmt::format(" {} {}", option, value);
  }
  /// Leaves out a degree of 1, which is every engine's default.
  void add_degree(std::string_view option, std::int64_t degree) {
    if (degree > 1) add(option, degree);
  }

  [[nodiscard]] const std::string& text() const noexcept { return text_; }

 private:
  std::string text_;
};

/// The word as one argument of a POSIX shell: quoted if it has more than letters, digits and
/// "%+,-./:=@_".
[[nodiscard]] std::string shell_word(std::string_view word);

}  // namespace headroom::detail
