#include <algorithm>

#include "headroom/error.h"
#include "safetensors.h"

namespace headroom::checkpoint {

SafetensorsFile::SafetensorsFile(const std::filesystem::path& path)
    : path_(path.string()), content_(path), tensors_(parse_safetensors(content_.head(), path_)) {
  require_unchanged();
}

const StoredTensor* SafetensorsFile::find(std::string_view name) const {
  const auto found = std::ranges::lower_bound(tensors_, name, {}, &StoredTensor::name);
  if (found == tensors_.end() || found->name != name) return nullptr;
  return &*found;
}

StoredTensor slice(const StoredTensor& tensor, std::int64_t index) {
  StoredTensor part{tensor.name, tensor.type, {tensor.shape.begin() + 1, tensor.shape.end()}, {}};
  const auto bytes = stored_bytes(part.type, part.shape);
  if (!bytes) {
    throw Error(ErrorCode::invalid_input, "its slices do not begin at whole bytes", tensor.name,
                "convert the weights to F32, F16 or BF16");
  }
  const auto size = static_cast<std::size_t>(*bytes);
  part.data = tensor.data.subspan(static_cast<std::size_t>(index) * size, size);
  return part;
}

}  // namespace headroom::checkpoint
