// Tensor entries in the header of a safetensors file.
#pragma once

#include <cstdint>
#include <string>

#include "header_scanner.h"
#include "tensor_table.h"

namespace headroom::checkpoint {

/// Adds all tensors of a header to `table`, as those of file number `file`. Each tensor's data lie
/// within the `data_size` bytes after the header. Throws Error{invalid_input} naming the file, and
/// the tensor if there is one.
void read_entries(HeaderScanner& header, std::uint64_t data_size, std::size_t file,
                  TensorTable& table);

/// Throws Error{invalid_input} for a damaged file.
[[noreturn]] void throw_damaged(const std::string& place, const std::string& message);

}  // namespace headroom::checkpoint
