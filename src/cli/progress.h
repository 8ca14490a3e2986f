// Progress of long runs on standard error.
#pragma once

#include <string_view>

namespace headroom::cli {

/// Draws a bar, filled to `fraction` in [0, 1], and a text; nothing unless standard error is a
/// terminal. Returns false once a signal asked for the end.
bool show_progress(double fraction, std::string_view text);
/// Erases the bar.
void clear_progress();

}  // namespace headroom::cli
