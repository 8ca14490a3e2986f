// The commit of headroom's sources, which changes with every build of another one.
#pragma once

namespace headroom::cli {

/// Twelve hexadecimal digits; empty if headroom was not built from a repository.
extern const char* const kCommit;

}  // namespace headroom::cli
