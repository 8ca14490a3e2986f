#include "logical_tensors.h"

namespace headroom::detail {

LogicalTensors::LogicalTensors(const checkpoint::ModelFiles& files)
    : files_(&files),
      packed_(find_packed_weights(files)),
      piece_(files.tensors().size()),
      plain_(files.tensors().size()) {
  for (std::size_t i = 0; i < packed_.size(); ++i) {
    packed_by_name_.emplace(packed_[i].name, plain_ + i);
    for (const std::size_t piece : packed_[i].pieces) piece_[piece] = true;
  }
}

LogicalTensor LogicalTensors::operator[](std::size_t index) const {
  if (index >= plain_) {
    const PackedWeight& packed = packed_[index - plain_];
    return {packed.name,
            packed.type,
            packed.shape,
            {static_cast<std::int64_t>(packed.pieces.size()), packed.values, packed.bytes}};
  }
  const checkpoint::TensorInfo tensor = files_->tensors()[index];
  return {tensor.name,
          checkpoint::name_of(tensor.type),
          tensor.shape,
          {1, tensor.elements(), static_cast<Integer>(tensor.bytes)}};
}

std::optional<std::size_t> LogicalTensors::find(std::string_view name) const {
  const auto packed = packed_by_name_.find(name);
  if (packed != packed_by_name_.end()) return packed->second;
  const auto plain = files_->tensors().find(name);
  if (!plain || piece_[*plain]) return std::nullopt;
  return plain;
}

}  // namespace headroom::detail
