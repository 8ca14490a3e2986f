// Reads the header of a safetensors file without its data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>

#include "file_head.h"
#include "tensor_table.h"

namespace headroom::checkpoint {

/// Largest header to accept. Programs refuse to load a file whose header exceeds the format's
/// limit, but its contents can be listed.
enum class HeaderLimit { of_the_format, of_the_file };

struct HeaderExtent {
  std::uint64_t header_bytes = 0;  ///< including its length field
  std::uint64_t data_bytes = 0;
};

/// Adds the tensors of the file that begins with `content` to `table`, as those of file number
/// `file_index`. Their names lie in `content`, or in `texts` if they have escapes. Nothing is
/// trusted: throws Error{invalid_input} naming `file`, and the tensor if there is one, unless the
/// tensors fill the file exactly.
HeaderExtent read_safetensors_header(const FileHead& content, HeaderLimit limit,
                                     const std::string& file, std::size_t file_index,
                                     TensorTable& table, std::deque<std::string>& texts);

}  // namespace headroom::checkpoint
