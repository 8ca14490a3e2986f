// Safetensors headers of a great many tensors.
#pragma once

#include <cstdint>
#include <filesystem>

namespace headroom::test {

/// Writes a file of so many bfloat16 tensors [4, 2], three for each expert of 5,000 a layer. Its
/// data are a hole.
void write_many_tensors(const std::filesystem::path& path, std::int64_t tensors);

}  // namespace headroom::test
