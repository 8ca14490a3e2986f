// RuleMatcher: the format of a module by the ordered rules of a model's storage.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headroom/model_spec.h"
#include "pattern_set.h"

namespace headroom::detail {

/// Formats by index: 0 is the plain one, i + 1 that of rule i.
using FormatId = std::size_t;

/// A weight as rules see it, common to its copies.
struct RuledWeight {
  std::string_view path;
  ModuleKind kind = ModuleKind::other;
  std::int64_t in = 1;
  std::vector<std::string> names{};  ///< of its module, with {} and {e}
};

class RuleMatcher {
 public:
  /// `storage` must outlive the matcher. Throws Error{invalid_input} for a pattern that cannot be
  /// read.
  RuleMatcher(const WeightStorage& storage, StorageFormat plain);

  [[nodiscard]] bool empty() const noexcept { return rules_.empty(); }
  /// Returns true if a rule needs the names of modules.
  [[nodiscard]] bool has_patterns() const;
  [[nodiscard]] std::size_t formats() const noexcept { return rules_.size() + 1; }
  [[nodiscard]] const StorageFormat& format(FormatId id) const;

  /// The format of one expert of `weight` in `layer`: that of the first rule that applies.
  [[nodiscard]] FormatId format_id(const RuledWeight& weight, std::int64_t layer,
                                   std::int64_t expert) const;

  /// Returns true if copies in several layers, or several experts of a layer, may differ.
  [[nodiscard]] bool tells_layers() const noexcept { return tells_layers_; }
  [[nodiscard]] bool tells_experts() const noexcept { return tells_experts_; }

 private:
  /// A rule with its patterns ready to match.
  struct ReadyRule {
    const StorageRule* rule;
    PatternSet patterns;
  };

  StorageFormat plain_;
  std::vector<ReadyRule> rules_;
  bool tells_layers_ = false;
  bool tells_experts_ = false;
};

}  // namespace headroom::detail
