// Writes safetensors files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "element_type.h"
#include "output_file.h"

namespace headroom::checkpoint {

/// A tensor to write, row-major; `data` has the size that `shape` and `type` give.
struct TensorToWrite {
  std::string name;
  StoredType type = StoredType::float32;
  std::vector<std::int64_t> shape;
  std::vector<std::byte> data;
};

/// A float32 tensor of these values, which must fill `shape`.
[[nodiscard]] TensorToWrite float32_tensor(std::string name, std::vector<std::int64_t> shape,
                                           std::span<const float> values);

/// An int64 tensor of these values, which must fill `shape`.
[[nodiscard]] TensorToWrite int64_tensor(std::string name, std::vector<std::int64_t> shape,
                                         std::span<const std::int64_t> values);

/// Writes the file atomically: after a failure the previous file is intact. The header lists the
/// tensors by name; each tensor's data are aligned to its element type. Throws
/// Error{missing_resource} if the file cannot be written, Error{internal} if data do not fit their
/// shape or names are not UTF-8, reserved or repeated.
void write_safetensors(detail::OutputFile& file, std::span<const TensorToWrite> tensors);
void write_safetensors(const std::filesystem::path& path, std::span<const TensorToWrite> tensors);

}  // namespace headroom::checkpoint
