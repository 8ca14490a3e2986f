// Two batches of a serving pass that run in turn, one's exchange with the experts behind the
// other's computation. Internal to src/plan.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "headroom/workload.h"
#include "rank_program.h"
#include "stage_layout.h"

namespace headroom::detail {

/// The halves of a pass: of the sequences, or of the tokens of a single one. Empty for one token.
[[nodiscard]] std::optional<std::pair<Workload, Workload>> halves_of(const Workload& workload);

/// Seconds of both batches through the layers of one kind.
struct OverlappedSeconds {
  double compute_s = 0;
  double exposed_s = 0;  ///< communication that no computation hides
};

/// Both batches through `layers` layers of one kind, of which `first` and `second` have the costs.
/// In each layer, four computations run beside an exchange of the other batch: the first batch's
/// operators outside the experts beside the second's dispatch, the second's experts beside the
/// first's dispatch, then the first's experts and the second's next operators beside combines. Each
/// pair takes as long as its longer part (vLLM, docs/design/dbo.md). Other collectives of a layer
/// count as its operators.
[[nodiscard]] OverlappedSeconds overlapped_layers(const SectionCosts& first,
                                                  const SectionCosts& second, std::int64_t layers);

/// Costs of a pass whose layers run as two batches; what is outside the layers runs over `whole`.
[[nodiscard]] RankCosts overlapped(const RankCosts& whole, const RankCosts& first,
                                   const RankCosts& second, const std::vector<LayerKind>& kinds);

}  // namespace headroom::detail
