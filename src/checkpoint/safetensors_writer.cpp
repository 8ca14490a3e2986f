#include "safetensors_writer.h"

#include <algorithm>
#include <bit>
#include <nlohmann/json.hpp>
#include <utility>

#include "headroom/error.h"
#include "headroom/expr.h"
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

}  // namespace

TensorToWrite float32_tensor(std::string name, std::vector<std::int64_t> shape,
                             std::span<const float> values) {
  return {std::move(name), StoredType::float32, std::move(shape), bytes_of(values)};
}

TensorToWrite int64_tensor(std::string name, std::vector<std::int64_t> shape,
                           std::span<const std::int64_t> values) {
  return {std::move(name), StoredType::int64, std::move(shape), bytes_of(values)};
}

void write_safetensors(detail::OutputFile& file, std::span<const TensorToWrite> tensors) {
  const Ordered ordered = in_file_order(tensors);
  const std::string header = header_text(ordered, file.path());
  const std::uint64_t length = header.size();
  file.write(std::as_bytes(std::span(&length, 1)));
  file.write(header);
  for (const TensorToWrite* const tensor : ordered) file.write(tensor->data);
  file.commit();
}

void write_safetensors(const fs::path& path, std::span<const TensorToWrite> tensors) {
  detail::OutputFile file(path);
  write_safetensors(file, tensors);
}

}  // namespace headroom::checkpoint
