// The one exception type of headroom. The library throws it; only `main` catches it.
#pragma once

#include <exception>
#include <string>

namespace headroom {

/// The kind of failure. Decides the exit status of the command line.
enum class ErrorCode {
  invalid_input,     ///< usage or a bad model description: exit status 2
  overflow,          ///< a figure exceeds 2^127 - 1: exit status 2
  missing_resource,  ///< no memory, or an unwritable output file: exit status 3
  internal,          ///< a bug in headroom: exit status 4
};

/// An error with its cause, its place and its remedy.
class Error : public std::exception {
 public:
  /// `where` names a file and a JSON pointer inside it; `hint` is the remedy. Both may be empty.
  Error(ErrorCode code, std::string message, std::string where = {}, std::string hint = {});

  [[nodiscard]] ErrorCode code() const noexcept { return code_; }
  [[nodiscard]] const std::string& message() const noexcept { return message_; }
  [[nodiscard]] const std::string& where() const noexcept { return where_; }
  [[nodiscard]] const std::string& hint() const noexcept { return hint_; }

  /// "where: message" on one line, for logs and tests.
  [[nodiscard]] const char* what() const noexcept override { return text_.c_str(); }

 private:
  ErrorCode code_;
  std::string message_;
  std::string where_;
  std::string hint_;
  std::string text_;
};

/// Throws Error{invalid_input} without a place.
[[noreturn]] void throw_invalid_input(const std::string& message, const std::string& hint);

/// The exit status of the command line for this kind of error.
[[nodiscard]] int exit_status(ErrorCode code) noexcept;

}  // namespace headroom
