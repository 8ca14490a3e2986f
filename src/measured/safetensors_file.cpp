#include <algorithm>

#include "safetensors.h"

namespace headroom::measured {

SafetensorsFile::SafetensorsFile(const std::filesystem::path& path)
    : path_(path.string()), content_(path), tensors_(parse_safetensors(content_.bytes(), path_)) {}

const StoredTensor* SafetensorsFile::find(std::string_view name) const {
  const auto found = std::ranges::lower_bound(tensors_, name, {}, &StoredTensor::name);
  if (found == tensors_.end() || found->name != name) return nullptr;
  return &*found;
}

}  // namespace headroom::measured
