// The tensors' descriptions in the header of a safetensors file.
#pragma once

#include <cstdint>
#include <string>

#include "header_scanner.h"
#include "tensor_table.h"

namespace headroom::checkpoint {

/// Adds all tensors of a header to `table`, as those of file number `file`; their data fit the
/// `data_size` bytes behind the header, each for itself. Throws Error{invalid_input} naming the
/// file, and the tensor where there is one.
void read_entries(HeaderScanner& header, std::uint64_t data_size, std::size_t file,
                  TensorTable& table);

/// Throws Error{invalid_input} about a file that no program wrote so.
[[noreturn]] void throw_damaged(const std::string& place, const std::string& message);

}  // namespace headroom::checkpoint
