// Header of a safetensors file: a length of eight bytes, then JSON with the location of each
// tensor.
#include "safetensors_header.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "header_entries.h"
#include "safetensors.h"

namespace headroom::checkpoint {
namespace {

constexpr std::size_t kLengthBytes = 8;
// Limit of the format; about a million tensors with short names fit.
constexpr std::uint64_t kLongestHeader = 100'000'000;
// Bytes of a short tensor entry.
constexpr std::size_t kLeastEntry = 64;

/// Length of the header's JSON in bytes.
std::size_t header_length(const FileHead& content, HeaderLimit limit, const std::string& file) {
  if (content.bytes.size() < kLengthBytes) {
    throw_damaged(file,
                  fmt::format("{} bytes are too few for a safetensors file", content.bytes.size()));
  }
  std::uint64_t length = 0;
  for (std::size_t i = kLengthBytes; i-- > 0;) {
    length = length << 8U | std::to_integer<std::uint64_t>(content.bytes[i]);
  }
  const std::uint64_t left = content.file_size - kLengthBytes;
  if (length > left) {
    throw_damaged(file, fmt::format("the header has {} bytes, but only {} follow", length, left));
  }
  if (limit == HeaderLimit::of_the_format && length > kLongestHeader) {
    throw_damaged(file, fmt::format("a header of {} bytes exceeds the format's limit of {}", length,
                                    kLongestHeader));
  }
  if (length > content.bytes.size() - kLengthBytes) refuse_partial(file);
  return static_cast<std::size_t>(length);
}

/// Throws unless data begin (`next`) exactly at the end of the previous data (`covered`).
void require_adjacent(std::uint64_t covered, std::uint64_t next, const std::string& place) {
  if (next == covered) return;
  if (next < covered) {
    throw_damaged(place, fmt::format("its data begin at {}, inside another tensor's", next));
  }
  throw_damaged(place,
                fmt::format("bytes {} to {} of the data belong to no tensor", covered, next));
}

/// Indices of the tensors from `first` on, sorted by the begin of their data; empty tensors first
/// among equals.
std::vector<std::uint32_t> in_data_order(const TensorTable& table, std::size_t first) {
  std::vector<std::uint32_t> order(table.size() - first);
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<std::uint32_t>(first + i);
  const auto place = [&](std::uint32_t index) {
    const TensorInfo tensor = table[index];
    return std::pair(tensor.begin, tensor.bytes);
  };
  if (!std::ranges::is_sorted(order, {}, place)) std::ranges::sort(order, {}, place);
  return order;
}

/// Requires that every byte of the data belongs to exactly one tensor.
void require_exact_cover(const TensorTable& table, std::size_t first, std::uint64_t data_size,
                         const std::string& file) {
  std::uint64_t covered = 0;
  for (const std::uint32_t index : in_data_order(table, first)) {
    const TensorInfo tensor = table[index];
    if (tensor.begin != covered) {
      require_adjacent(covered, tensor.begin, tensor_place(file, tensor.name));
    }
    covered += tensor.bytes;
  }
  require_adjacent(covered, data_size, file);
}

}  // namespace

std::string tensor_place(const std::string& file, std::string_view tensor) {
  return fmt::format("{}: {}", file, tensor);
}

HeaderExtent read_safetensors_header(const FileHead& content, HeaderLimit limit,
                                     const std::string& file, std::size_t file_index,
                                     TensorTable& table, std::deque<std::string>& texts) {
  const std::size_t length = header_length(content, limit, file);
  const auto json = content.bytes.subspan(kLengthBytes, length);
  HeaderScanner header({reinterpret_cast<const char*>(json.data()), json.size()}, file, texts);
  const std::size_t first = table.size();
  const std::uint64_t data_size = content.file_size - kLengthBytes - length;
  table.reserve(first + length / (2 * kLeastEntry));
  read_entries(header, data_size, file_index, table);
  require_exact_cover(table, first, data_size, file);
  return {kLengthBytes + length, data_size};
}

std::vector<StoredTensor> parse_safetensors(const FileHead& content, const std::string& file) {
  TensorTable table;
  std::deque<std::string> texts;
  const HeaderExtent extent =
      read_safetensors_header(content, HeaderLimit::of_the_format, file, 0, table, texts);
  const std::span<const std::byte> data =
      content.bytes.subspan(static_cast<std::size_t>(extent.header_bytes));
  std::vector<StoredTensor> tensors;
  for (std::size_t i = 0; i < table.size(); ++i) {
    const TensorInfo tensor = table[i];
    tensors.push_back({std::string(tensor.name),
                       std::get<StoredType>(tensor.type),
                       {tensor.shape.begin(), tensor.shape.end()},
                       content.is_whole() ? data.subspan(static_cast<std::size_t>(tensor.begin),
                                                         static_cast<std::size_t>(tensor.bytes))
                                          : std::span<const std::byte>()});
  }
  std::ranges::sort(tensors, {}, &StoredTensor::name);
  return tensors;
}

}  // namespace headroom::checkpoint
