// The header of a safetensors file: eight bytes of length, then JSON that says where tensors lie.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "json_bytes.h"
#include "tensor_entry.h"

namespace headroom::measured {
namespace {

using nlohmann::json;

constexpr std::size_t kLengthBytes = 8;
// The format's own limit; 200,000 tensors stay below it.
constexpr std::uint64_t kLongestHeader = 100'000'000;

/// Bytes of the header's JSON.
std::size_t header_length(std::span<const std::byte> content, const std::string& file) {
  if (content.size() < kLengthBytes) {
    throw_damaged(file, fmt::format("{} bytes are too few for a safetensors file", content.size()));
  }
  std::uint64_t length = 0;
  for (std::size_t i = kLengthBytes; i-- > 0;) {
    length = length << 8U | std::to_integer<std::uint64_t>(content[i]);
  }
  const std::size_t left = content.size() - kLengthBytes;
  if (length > kLongestHeader) {
    throw_damaged(file,
                  fmt::format("a header of {} bytes is longer than the {} that the format allows",
                              length, kLongestHeader));
  }
  if (length > left) {
    throw_damaged(file, fmt::format("the header has {} bytes and only {} follow", length, left));
  }
  return length;
}

void require_text_metadata(const json& metadata, const std::string& file) {
  const bool texts = metadata.is_object() && std::ranges::all_of(metadata, [](const json& value) {
                       return value.is_string();
                     });
  if (!texts) throw_damaged(tensor_place(file, "__metadata__"), "is no object of texts");
}

using Order = std::vector<const StoredTensor*>;

/// The tensors by where their data begin; of those at one place, empty ones first.
Order in_data_order(const std::vector<StoredTensor>& tensors) {
  Order order;
  for (const StoredTensor& tensor : tensors) order.push_back(&tensor);
  std::ranges::sort(order, {}, [](const StoredTensor* tensor) {
    return std::pair(tensor->data.data(), tensor->data.size());
  });
  return order;
}

/// Throws unless `next`, where some data begin, is `covered`, where all data before it end.
void require_adjacent(std::size_t covered, std::size_t next, const std::string& place) {
  if (next == covered) return;
  if (next < covered) {
    throw_damaged(place, fmt::format("its data begin at {}, inside those of another tensor", next));
  }
  throw_damaged(place,
                fmt::format("bytes {} to {} of the data belong to no tensor", covered, next));
}

/// Every byte of `data` must belong to exactly one tensor.
void require_exact_cover(const std::vector<StoredTensor>& tensors, std::span<const std::byte> data,
                         const std::string& file) {
  std::size_t covered = 0;
  for (const StoredTensor* const tensor : in_data_order(tensors)) {
    const auto begin = static_cast<std::size_t>(tensor->data.data() - data.data());
    require_adjacent(covered, begin, tensor_place(file, tensor->name));
    covered += tensor->data.size();
  }
  require_adjacent(covered, data.size(), file);
}

}  // namespace

std::string tensor_place(const std::string& file, std::string_view tensor) {
  return fmt::format("{}: {}", file, tensor);
}

std::vector<StoredTensor> parse_safetensors(std::span<const std::byte> content,
                                            const std::string& file) {
  const std::size_t length = header_length(content, file);
  const json header = parse_object(content.subspan(kLengthBytes, length), file);
  const std::span<const std::byte> data = content.subspan(kLengthBytes + length);
  std::vector<StoredTensor> tensors;
  for (const auto& [name, entry] : header.items()) {  // JSON objects here are sorted by key
    if (name == "__metadata__") {
      require_text_metadata(entry, file);
    } else {
      tensors.push_back(read_entry(name, entry, data, file));
    }
  }
  require_exact_cover(tensors, data, file);
  return tensors;
}

}  // namespace headroom::measured
