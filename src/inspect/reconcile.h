// Every tensor of the files has an owner in the graph, and every weight of the graph a tensor.
#pragma once

#include <vector>

#include "headroom/inspect.h"
#include "logical_tensors.h"
#include "names.h"

namespace headroom::detail {

/// What the files hold beside what `model` asks for.
struct Reconciled {
  std::vector<ComponentRow> components;
  std::vector<ExtraRow> extras;
  Reconciliation result;
};

/// Lays the tensors beside the graph of `model`, whose names in the files are those of `names`.
[[nodiscard]] Reconciled reconcile(const LogicalTensors& tensors, Model model,
                                   detail::NameTable names);

/// Adds a tensor to the row of its kind.
void add_extra(std::vector<ExtraRow>& rows, detail::ExtraKind kind, const LogicalTensor& tensor);

}  // namespace headroom::detail
