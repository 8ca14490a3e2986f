// Safetensors headers with very many tensors.
#pragma once

#include <cstdint>
#include <filesystem>

namespace headroom::test {

/// Writes a file with `tensors` bfloat16 tensors [4, 2]: 5,000 experts per layer, three tensors
/// each. The data are a hole in a sparse file.
void write_many_tensors(const std::filesystem::path& path, std::int64_t tensors);

}  // namespace headroom::test
