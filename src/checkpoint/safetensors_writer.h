// Writing of safetensors files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "element_type.h"

namespace headroom::checkpoint {

/// A tensor to be stored, row-major; `data` has the bytes that `shape` and `type` take.
struct TensorToWrite {
  std::string name;
  StoredType type = StoredType::float32;
  std::vector<std::int64_t> shape;
  std::vector<std::byte> data;
};

/// A float32 tensor of these values, which fill `shape`.
[[nodiscard]] TensorToWrite float32_tensor(std::string name, std::vector<std::int64_t> shape,
                                           std::span<const float> values);

/// An int64 tensor of these values, which fill `shape`.
[[nodiscard]] TensorToWrite int64_tensor(std::string name, std::vector<std::int64_t> shape,
                                         std::span<const std::int64_t> values);

/// Writes the file whole or not at all: a failure leaves what was there before. The header lists
/// the tensors by name; each tensor's data are aligned to its element type. Throws
/// Error{missing_resource} when the file cannot be written, Error{internal} when data do not fit
/// their shape or when names are not UTF-8, reserved or repeated.
void write_safetensors(const std::filesystem::path& path, std::span<const TensorToWrite> tensors);

}  // namespace headroom::checkpoint
