// Inputs of layers: all that full recomputation keeps of them.
#include "op_cost.h"
#include "saved_tensors.h"

namespace headroom::detail {

Expr layer_input_bytes(const Graph& graph) {
  Expr bytes;
  for (const Block& block : graph.blocks) {
    if (!block.is_layers()) continue;
    const Expr layers = block.repeat * Integer{block.layers_per_run};
    Expr inputs = graph.tensors[block.carried_in].elements();
    if (block.carried_text) inputs += graph.tensors[block.carried_text->in].elements();
    bytes += layers * inputs * kActivationBytes;
  }
  return bytes;
}

}  // namespace headroom::detail
