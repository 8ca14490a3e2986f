#include "tensor_finder.h"

#include <utility>

#include "number_text.h"

namespace headroom::detail {

TensorFinder::TensorFinder(const LogicalTensors& tensors, const NameTable& names)
    : tensors_(tensors) {
  prefixes_.emplace_back();
  for (const std::string_view prefix : names.optional_prefixes) prefixes_.emplace_back(prefix);
}

std::optional<std::size_t> TensorFinder::find(const std::string& name) {
  for (std::size_t i = 0; i < prefixes_.size(); ++i) {
    buffer_ = prefixes_[i];
    buffer_ += name;
    const auto found = tensors_.find(buffer_);
    if (!found) continue;
    std::swap(prefixes_[0], prefixes_[i]);  // tried first from now on
    return found;
  }
  return std::nullopt;
}

const WeightPattern& TensorFinder::stored_pattern(std::span<const WeightPattern> patterns,
                                                  std::int64_t layer) {
  const WeightPattern* present = nullptr;
  for (const WeightPattern& pattern : patterns) {
    const auto index = find(filled(pattern.name.pattern, layer, 0));
    if (!index) continue;
    if (pattern.fits(tensors_[*index].shape)) return pattern;
    if (present == nullptr) present = &pattern;
  }
  return present == nullptr ? patterns.front() : *present;
}

bool may_be_absent(const Weight& weight) {
  return weight.kind == WeightKind::buffer || weight.path == "head.language_model.weight";
}

std::optional<std::int64_t> layer_number(std::string_view name) {
  for (const std::string_view word : {"layers.", "blk."}) {
    const auto at = name.rfind(word);
    if (at == std::string_view::npos) continue;
    std::string_view rest = name.substr(at + word.size());
    if (const auto layer = take_integer(rest)) return layer;
  }
  return std::nullopt;
}

}  // namespace headroom::detail
