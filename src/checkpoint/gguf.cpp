#include "gguf.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <fstream>
#include <limits>
#include <unordered_set>

#include "byte_reader.h"
#include "gguf_metadata.h"
#include "headroom/error.h"
#include "headroom/expr.h"
#include "safetensors.h"
#include "utf8.h"

namespace headroom::checkpoint {
namespace {

constexpr std::string_view kMagic = "GGUF";
constexpr std::uint32_t kOldestVersion = 2;
constexpr std::uint32_t kNewestVersion = 3;
constexpr std::uint64_t kDefaultAlignment = 32;
// docs/gguf.md: a tensor's name has at most 64 bytes.
constexpr std::size_t kLongestName = 64;
// Bytes of a name's length, the number of dimensions, a type and an offset.
constexpr std::uint64_t kLeastTensor = 8 + 4 + 4 + 8;

void require_magic(ByteReader& reader) {
  const auto magic = reader.take_bytes(kMagic.size());
  if (std::ranges::equal(magic, std::as_bytes(std::span(kMagic)))) return;
  throw_damaged_gguf(reader.file(), "does not begin with GGUF's magic number");
}

std::uint32_t take_version(ByteReader& reader) {
  const auto version = reader.take<std::uint32_t>();
  if (version >= kOldestVersion && version <= kNewestVersion) return version;
  if (version == 1) {
    throw Error(ErrorCode::invalid_input, "GGUF version 1 is not supported", reader.file(),
                "convert the model again to version 2 or 3");
  }
  if (version != 0 && (version & 0xFFFFU) == 0) {
    throw Error(ErrorCode::invalid_input, "big-endian GGUF files are not supported", reader.file(),
                "convert it with gguf_convert_endian.py");
  }
  throw Error(ErrorCode::invalid_input, fmt::format("GGUF version {} is unknown", version),
              reader.file(), "use version 2 or 3");
}

std::uint64_t alignment_of(const GgufContent& content, const std::string& file) {
  const auto found = content.metadata.find("general.alignment");
  if (found == content.metadata.end()) return kDefaultAlignment;
  const auto* const value = std::get_if<std::uint64_t>(&found->second);
  // ggml/src/gguf.cpp requires a power of two.
  if (value != nullptr && std::has_single_bit(*value) && *value <= (1U << 30U)) return *value;
  throw_damaged_gguf(tensor_place(file, found->first), "is not a power of two up to 2^30");
}

GgmlType take_type(ByteReader& reader, const std::string& place) {
  const auto number = reader.take<std::uint32_t>();
  if (const auto type = ggml_type(number)) return *type;
  throw Error(ErrorCode::invalid_input,
              fmt::format("its type {} is unknown or removed from ggml", number), place,
              "quantise the model again with a current release");
}

void take_shape(ByteReader& reader, GgufTensor& tensor, const std::string& place) {
  constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  const auto dimensions = reader.take<std::uint32_t>();
  if (dimensions > GgufTensor::kMostDimensions) {
    throw_damaged_gguf(place, fmt::format("has {} dimensions; the format allows {}", dimensions,
                                          GgufTensor::kMostDimensions));
  }
  tensor.rank = dimensions;
  for (std::size_t i = 0; i < dimensions; ++i) {
    const auto size = reader.take<std::uint64_t>();
    if (size > kMost) throw_damaged_gguf(place, "one of its sizes exceeds 2^63 - 1");
    tensor.sizes.at(dimensions - 1 - i) = static_cast<std::int64_t>(size);
  }
}

GgufTensor take_tensor(ByteReader& reader) {
  GgufTensor tensor;
  const std::uint64_t at = reader.position();
  tensor.name = reader.take_text();
  if (tensor.name.empty() || tensor.name.size() > kLongestName ||
      !detail::is_printable_utf8(tensor.name)) {
    throw_damaged_gguf(reader.file(), fmt::format("the tensor at byte {} has no valid name", at));
  }
  const std::string place = tensor_place(reader.file(), tensor.name);
  take_shape(reader, tensor, place);
  tensor.type = take_type(reader, place);
  const auto bytes = ggml_bytes(tensor.type, tensor.shape());
  if (!bytes) {
    throw_damaged_gguf(place, fmt::format("its shape exceeds any file, or its rows do not "
                                          "fill whole blocks of {} values",
                                          info(tensor.type).block_size));
  }
  tensor.bytes = *bytes;
  const auto offset = reader.take<std::uint64_t>();
  if (offset > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
    throw_damaged_gguf(place, "its data begin after the end of the file");
  }
  tensor.offset = static_cast<std::int64_t>(offset);
  return tensor;
}

void require_inside(const GgufTensor& tensor, std::uint64_t alignment, std::uint64_t data_size,
                    const std::string& file) {
  const auto begin = static_cast<std::uint64_t>(tensor.offset);
  const auto bytes = static_cast<std::uint64_t>(tensor.bytes);
  const std::string place = tensor_place(file, tensor.name);
  if (begin % alignment != 0) {
    throw_damaged_gguf(place,
                       fmt::format("its data begin at {}, not a multiple of {}", begin, alignment));
  }
  if (begin > data_size || bytes > data_size - begin) {
    throw_damaged_gguf(place, fmt::format("its {} bytes at {} exceed the {} bytes of data", bytes,
                                          begin, data_size));
  }
}

void require_unique(const std::vector<GgufTensor>& tensors, const std::string& file) {
  std::unordered_set<std::string_view> names;
  for (const GgufTensor& tensor : tensors) {
    if (names.insert(tensor.name).second) continue;
    throw_damaged_gguf(tensor_place(file, tensor.name), "the tensor is listed twice");
  }
}

void require_apart(const std::vector<GgufTensor>& tensors, const std::string& file) {
  std::vector<const GgufTensor*> order;
  for (const GgufTensor& tensor : tensors) {
    if (tensor.bytes > 0) order.push_back(&tensor);
  }
  std::ranges::sort(order, {}, &GgufTensor::offset);
  for (std::size_t i = 1; i < order.size(); ++i) {
    if (order[i]->offset - order[i - 1]->offset >= order[i - 1]->bytes) continue;
    throw_damaged_gguf(tensor_place(file, order[i]->name),
                       fmt::format("its data overlap those of {}", order[i - 1]->name));
  }
}

}  // namespace

GgufContent parse_gguf(const FileHead& content, const std::string& file) {
  ByteReader reader(content, file);
  GgufContent parsed;
  require_magic(reader);
  parsed.version = take_version(reader);
  const auto tensor_count = reader.take<std::uint64_t>();
  parsed.metadata = take_metadata(reader, reader.take<std::uint64_t>());
  if (tensor_count > reader.left() / kLeastTensor) {
    throw_damaged_gguf(file, fmt::format("{} tensors do not fit into the file", tensor_count));
  }
  parsed.tensors.reserve(tensor_count);
  for (std::uint64_t i = 0; i < tensor_count; ++i) parsed.tensors.push_back(take_tensor(reader));

  const std::uint64_t alignment = alignment_of(parsed, file);
  const std::uint64_t padding =
      round_up<std::uint64_t>(reader.position(), alignment) - reader.position();
  const std::uint64_t data_size = padding > reader.left() ? 0 : reader.left() - padding;
  parsed.data_begin = reader.position() + std::min(padding, reader.left());
  for (const GgufTensor& tensor : parsed.tensors) {
    require_inside(tensor, alignment, data_size, file);
  }
  require_unique(parsed.tensors, file);
  require_apart(parsed.tensors, file);
  return parsed;
}

bool is_gguf(const std::filesystem::path& path) {
  std::string begin(kMagic.size(), '\0');
  std::error_code failed;
  if (!std::filesystem::is_regular_file(path, failed)) return false;
  if (path.extension() == ".gguf") return true;  // a damaged one, too, which its reader refuses
  std::ifstream stream(path, std::ios::binary);
  return stream.read(begin.data(), static_cast<std::streamsize>(begin.size())) && begin == kMagic;
}

GgufFile::GgufFile(const std::filesystem::path& path)
    : path_(path.string()), file_(path), parsed_(parse_gguf(file_.head(), path_)) {
  require_unchanged();
}

const GgufValue* GgufFile::find(std::string_view key) const {
  const auto found = parsed_.metadata.find(key);
  return found == parsed_.metadata.end() ? nullptr : &found->second;
}

}  // namespace headroom::checkpoint
