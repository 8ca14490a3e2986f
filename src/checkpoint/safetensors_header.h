// The header of a safetensors file alone, without its data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <string>

#include "tensor_table.h"

namespace headroom::checkpoint {

/// Whether a header may be longer than the format allows: programs refuse to load such a file, but
/// what it holds can be told.
enum class HeaderLimit { of_the_format, of_the_file };

struct HeaderExtent {
  std::uint64_t header_bytes = 0;  ///< its length included
  std::uint64_t data_bytes = 0;
};

/// Adds the tensors in `content`, the bytes of a whole file, to `table`, as those of file number
/// `file_index`. Their names lie in `content`, or in `texts` where they were escaped. Nothing is
/// trusted: throws Error{invalid_input} naming `file`, and the tensor where there is one, unless
/// the tensors fill the file exactly.
HeaderExtent read_safetensors_header(std::span<const std::byte> content, HeaderLimit limit,
                                     const std::string& file, std::size_t file_index,
                                     TensorTable& table, std::deque<std::string>& texts);

}  // namespace headroom::checkpoint
