// The parts of an AnalyzeReport. Internal to src/assemble.
#pragma once

#include "headroom/report.h"

namespace headroom::detail {

/// The report with every weight in the request's type. Throws as `make_analyze_report` does.
[[nodiscard]] AnalyzeReport analyze_model(Model model, const WorkloadRequest& request,
                                          Convention convention, const KvCacheRequest& kv_cache);

/// Applies the weight bytes of the files that the model was loaded from, if there are any. A note
/// says why if they cannot be read.
void apply_stored_weights(AnalyzeReport& report);

}  // namespace headroom::detail
