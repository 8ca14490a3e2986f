#include "byte_reader.h"

#include <fmt/format.h>

#include "headroom/error.h"

namespace headroom::checkpoint {

std::span<const std::byte> ByteReader::take_bytes(std::uint64_t count) {
  if (count > left()) {
    throw Error(
        ErrorCode::invalid_input,
        fmt::format("ends at byte {}; {} more are needed", content_.file_size, count - left()),
        file_, "download the file again: it is damaged or truncated");
  }
  if (count > content_.bytes.size() - position_) refuse_partial(file_);
  const auto taken = content_.bytes.subspan(position_, count);
  position_ += count;
  return taken;
}

std::string_view ByteReader::take_text() {
  const auto bytes = take_bytes(take<std::uint64_t>());
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace headroom::checkpoint
