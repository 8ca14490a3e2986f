// The parts of an AnalyzeReport. Internal to src/assemble.
#pragma once

#include "headroom/report.h"

namespace headroom::detail {

/// Throws as `make_analyze_report` does.
[[nodiscard]] AnalyzeReport analyze_model(Model model, const WorkloadRequest& request,
                                          Convention convention, const KvCacheRequest& kv_cache);

}  // namespace headroom::detail
