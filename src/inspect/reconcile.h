// Reconciliation: every tensor of the files belongs to a weight of the graph, and every weight has
// a tensor.
#pragma once

#include <vector>

#include "headroom/model_source.h"
#include "logical_tensors.h"
#include "stored/names.h"

namespace headroom::detail {

/// The tensors of the files by component, and their disagreements with the graph.
struct Reconciled {
  std::vector<ComponentRow> components;
  std::vector<ExtraRow> extras;
  Reconciliation result;
};

/// Matches the tensors with the graph of `model`; `names` maps weights to tensor names.
[[nodiscard]] Reconciled reconcile(const LogicalTensors& tensors, Model model, NameTable names);

/// Adds a tensor to the row of its kind.
void add_extra(std::vector<ExtraRow>& rows, ExtraKind kind, const LogicalTensor& tensor);

}  // namespace headroom::detail
