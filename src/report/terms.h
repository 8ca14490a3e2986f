// Terms of the field that a newcomer lacks: each report explains those that it uses. Internal to
// src/report.
//
//   terms     MFU: model FLOPs over peak · TTFT: time to the first token
#pragma once

#include <span>
#include <string_view>

#include "document.h"

namespace headroom::detail {

struct GlossaryTerm {
  std::string_view name;
  std::string_view meaning;
};

/// All terms that reports explain, in the order in which a line lists them.
[[nodiscard]] std::span<const GlossaryTerm> terms() noexcept;

/// The document with a line "terms" under each table, and one at the end, for the terms that occur
/// since the last. A term is explained once.
[[nodiscard]] Document with_terms(Document document);

}  // namespace headroom::detail
