#include "headroom/report.h"

namespace headroom {
namespace {

/// Tolerance for a rounded publication: the 2017 Transformer's "65 M" and "213 M" depend on a
/// vocabulary that the paper gives as "about 37000" (arXiv 1706.03762, section 5.1).
constexpr Integer kRoundedTolerancePercent = 5;

}  // namespace

ReferenceCheck check_reference(const Model& model, Integer parameters) noexcept {
  if (!model.reference) return ReferenceCheck::none;
  const Integer published = model.reference->parameters;
  if (parameters == published && !model.reference->rounded) return ReferenceCheck::match;
  const Integer distance = parameters > published ? parameters - published : published - parameters;
  const bool close = distance <= published / 100 * kRoundedTolerancePercent;
  if (model.reference->rounded && close) return ReferenceCheck::match_rounded;
  return ReferenceCheck::mismatch;
}

}  // namespace headroom
