// Standard output and standard error. Losing the first is an error; losing the second is not.
#pragma once

#include <string_view>

namespace headroom::cli {

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
