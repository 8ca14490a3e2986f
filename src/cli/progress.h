// Progress of long runs on standard error, and their orderly end on Ctrl-C.
#pragma once

#include <string_view>

namespace headroom::cli {

/// Makes Ctrl-C set `interrupted` instead of ending the program.
void catch_interrupt();
[[nodiscard]] bool interrupted() noexcept;

/// Draws a bar, filled to `fraction` in [0, 1], and a text; nothing unless standard error is a
/// terminal. Returns false once Ctrl-C was pressed.
bool show_progress(double fraction, std::string_view text);
/// Erases the bar.
void clear_progress();

}  // namespace headroom::cli
