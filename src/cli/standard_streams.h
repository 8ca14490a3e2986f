// Standard output and standard error. Losing the first is an error; losing the second is not.
#pragma once

#include <string>
#include <string_view>

namespace headroom::cli {

/// Collects what the calling thread writes to standard output and error while this object lives; no
/// terminal is seen meanwhile. Objects nest.
class StreamCapture {
 public:
  StreamCapture() noexcept;
  ~StreamCapture();
  StreamCapture(const StreamCapture&) = delete;
  StreamCapture& operator=(const StreamCapture&) = delete;

  [[nodiscard]] const std::string& output() const noexcept { return output_; }
  [[nodiscard]] const std::string& messages() const noexcept { return messages_; }

 private:
  friend void write_standard_output(std::string_view text);
  friend void write_standard_error(std::string_view text) noexcept;

  StreamCapture* outer_;
  std::string output_;
  std::string messages_;
};

/// True if a person reads the stream.
[[nodiscard]] bool is_output_terminal() noexcept;
[[nodiscard]] bool is_error_terminal() noexcept;

/// Opens /dev/null in place of closed standard descriptors, so that no file that is opened later
/// becomes standard output or error; ignores SIGPIPE and SIGXFSZ, so that writes fail instead of
/// ending the program. Call first in `main`.
void prepare_standard_streams();

/// Throws Error{missing_resource} if standard output cannot be written. A reader that has closed
/// its pipe, as `head` does, ends the program as SIGPIPE does.
void write_standard_output(std::string_view text);

/// Writes what can be written.
void write_standard_error(std::string_view text) noexcept;

}  // namespace headroom::cli
