#include "safetensors_writer.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <fstream>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "headroom/error.h"
#include "headroom/integer.h"
#include "safetensors.h"

namespace headroom::checkpoint {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

static_assert(std::endian::native == std::endian::little, "stored numbers are little-endian");

// Alignment of the data, so that readers can use them in place.
constexpr std::size_t kAlignment = 8;

using Ordered = std::vector<const TensorToWrite*>;

template <class Value>
std::vector<std::byte> bytes_of(std::span<const Value> values) {
  const auto bytes = std::as_bytes(values);
  return {bytes.begin(), bytes.end()};
}

[[noreturn]] void throw_unwritable(const fs::path& path, const std::string& reason) {
  throw Error(ErrorCode::missing_resource, "cannot be written: " + reason, path.string(),
              "check the folder, its permissions and the space left");
}

/// Larger elements first, which aligns all of them; then by name.
Ordered in_file_order(std::span<const TensorToWrite> tensors) {
  Ordered order;
  for (const TensorToWrite& tensor : tensors) order.push_back(&tensor);
  std::ranges::sort(order, [](const TensorToWrite* a, const TensorToWrite* b) {
    const unsigned bits_a = stored_bits(a->type);
    const unsigned bits_b = stored_bits(b->type);
    return bits_a != bits_b ? bits_a > bits_b : a->name < b->name;
  });
  return order;
}

void require_valid(const TensorToWrite& tensor, const json& header, const fs::path& path) {
  const std::string place = tensor_place(path.string(), tensor.name);
  if (tensor.name == "__metadata__" || header.contains(tensor.name)) {
    throw Error(ErrorCode::internal, "the tensor's name is reserved or used twice", place);
  }
  if (stored_bytes(tensor.type, tensor.shape) != tensor.data.size()) {
    throw Error(ErrorCode::internal, "the tensor's data do not fit its shape", place);
  }
}

json describe(const TensorToWrite& tensor, std::size_t begin) {
  return {{"dtype", stored_name(tensor.type)},
          {"shape", tensor.shape},
          {"data_offsets", {begin, begin + tensor.data.size()}}};
}

std::string header_text(const Ordered& tensors, const fs::path& path) {
  json header = json::object();
  std::size_t begin = 0;
  for (const TensorToWrite* const tensor : tensors) {
    require_valid(*tensor, header, path);
    header[tensor->name] = describe(*tensor, begin);
    begin += tensor->data.size();
  }
  try {
    std::string text = header.dump();
    text.resize(round_up(text.size(), kAlignment), ' ');
    return text;
  } catch (const json::type_error&) {
    throw Error(ErrorCode::internal, "a tensor's name is not UTF-8", path.string());
  }
}

void write_bytes(std::ofstream& stream, std::span<const std::byte> bytes) {
  stream.write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
}

void write_stream(const fs::path& temporary, const std::string& header, const Ordered& tensors,
                  const fs::path& path) {
  std::ofstream stream(temporary, std::ios::binary);
  const std::uint64_t length = header.size();
  write_bytes(stream, std::as_bytes(std::span(&length, 1)));
  write_bytes(stream, std::as_bytes(std::span(header)));
  for (const TensorToWrite* const tensor : tensors) write_bytes(stream, tensor->data);
  stream.close();
  if (!stream) throw_unwritable(path, std::generic_category().message(errno));
}

void require_replaceable(const fs::path& path) {
  std::error_code ignored;
  const fs::file_status status = fs::status(path, ignored);
  if (fs::exists(status) && !fs::is_regular_file(status)) {
    throw_unwritable(path, "it is not a regular file");
  }
}

}  // namespace

TensorToWrite float32_tensor(std::string name, std::vector<std::int64_t> shape,
                             std::span<const float> values) {
  return {std::move(name), StoredType::float32, std::move(shape), bytes_of(values)};
}

TensorToWrite int64_tensor(std::string name, std::vector<std::int64_t> shape,
                           std::span<const std::int64_t> values) {
  return {std::move(name), StoredType::int64, std::move(shape), bytes_of(values)};
}

void write_safetensors(const fs::path& path, std::span<const TensorToWrite> tensors) {
  const Ordered ordered = in_file_order(tensors);
  const std::string header = header_text(ordered, path);
  require_replaceable(path);
  const fs::path temporary = fmt::format("{}.{}.tmp", path.string(), getpid());
  std::error_code failed;
  try {
    write_stream(temporary, header, ordered, path);
    fs::rename(temporary, path, failed);
    if (failed) throw_unwritable(path, failed.message());
  } catch (...) {
    fs::remove(temporary, failed);
    throw;
  }
}

}  // namespace headroom::checkpoint
