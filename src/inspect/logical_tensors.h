// The tensors of a model, with packed weights as their unpacked tensors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headroom/model_source.h"
#include "model_files.h"
#include "packed_weights.h"

namespace headroom::detail {

struct LogicalTensor {
  std::string_view name;
  std::string_view type;
  std::span<const std::int64_t> shape;
  TensorTotals totals;  ///< stored tensors, unpacked values, stored bytes
};

/// Plain tensors by their index in the files, then packed weights.
class LogicalTensors {
 public:
  explicit LogicalTensors(const checkpoint::ModelFiles& files);

  [[nodiscard]] std::size_t size() const noexcept { return plain_ + packed_.size(); }
  /// True for a stored piece of a packed weight, which is not a tensor of its own.
  [[nodiscard]] bool is_piece(std::size_t index) const { return index < plain_ && piece_[index]; }
  [[nodiscard]] LogicalTensor operator[](std::size_t index) const;
  [[nodiscard]] std::optional<std::size_t> find(std::string_view name) const;
  [[nodiscard]] const checkpoint::ModelFiles& files() const noexcept { return *files_; }

 private:
  const checkpoint::ModelFiles* files_;
  std::vector<PackedWeight> packed_;
  std::map<std::string_view, std::size_t> packed_by_name_;
  std::vector<bool> piece_;
  std::size_t plain_ = 0;
};

}  // namespace headroom::detail
