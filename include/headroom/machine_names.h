// Names that people type for a machine.
#pragma once

#include <string>

namespace headroom {

/// The machine of the user's folder or the catalogue that `typed` means: its name without case,
/// separators, a maker's and a series' name ("NVIDIA GeForce RTX 4090", "4090"), a driver's words
/// for its form ("A100-SXM4-80GB"), and the memory where the list has one size ("h200"). `typed`
/// itself if it is a name of the list, a file, or means none. Throws Error{invalid_input} that
/// names the candidates if it means several.
[[nodiscard]] std::string machine_meant(const std::string& typed);

}  // namespace headroom
