// A bar on a terminal's standard error, and Ctrl-C that lets a long run end in order.
#pragma once

#include <string_view>

namespace headroom::cli {

/// From now on Ctrl-C is noted instead of ending the program.
void catch_interrupt();
[[nodiscard]] bool interrupted() noexcept;

/// Draws a bar of `share`, 0 to 1, and a text behind it; nothing when standard error is no
/// terminal. Returns false once Ctrl-C was pressed.
bool show_progress(double share, std::string_view text);
/// Takes the bar away.
void clear_progress();

}  // namespace headroom::cli
