// TensorFinder: finds the tensors of a model's files by stored names, under any optional prefix.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "logical_tensors.h"
#include "weight_places.h"

namespace headroom::detail {

class TensorFinder {
 public:
  TensorFinder(const LogicalTensors& tensors, const NameTable& names);

  /// The tensor of this name under any optional prefix. The last successful prefix is tried first,
  /// since most tensors share it.
  [[nodiscard]] std::optional<std::size_t> find(const std::string& name);

  /// Prefers the first pattern with a tensor of the right shape, then the first with any tensor,
  /// then the first pattern.
  [[nodiscard]] const WeightPattern& stored_pattern(std::span<const WeightPattern> patterns,
                                                    std::int64_t layer);

 private:
  const LogicalTensors& tensors_;
  std::vector<std::string> prefixes_;
  std::string buffer_;
};

/// Returns true for a weight that files may lack: a buffer of zeros, or a head that they tie.
[[nodiscard]] bool may_be_absent(const Weight& weight);

/// The number after the last "layers." or "blk." of a name, if there is one.
[[nodiscard]] std::optional<std::int64_t> layer_number(std::string_view name);

}  // namespace headroom::detail
