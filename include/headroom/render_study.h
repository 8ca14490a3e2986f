// The complexity studies as text.
#pragma once

#include <string>

#include "headroom/report.h"
#include "headroom/studies.h"

namespace headroom {

[[nodiscard]] std::string render(const ComplexityReport& report, const RenderOptions& options);
[[nodiscard]] std::string render(const AssociativityReport& report, const RenderOptions& options);
[[nodiscard]] std::string render(const GenerationReport& report, const RenderOptions& options);
[[nodiscard]] std::string render(const SharesReport& report, const RenderOptions& options);

}  // namespace headroom
