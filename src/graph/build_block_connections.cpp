// Block connections (SOLAR Pro; vLLM, solar.py): the hidden states in front of some layers are
// kept, and mixed into those in front of later ones.
#include <fmt/format.h>

#include "builder.h"

namespace headroom::detail {

std::set<std::int64_t> connection_sources(const StackSpec& stack) {
  std::set<std::int64_t> sources;
  for (std::size_t variant = 0; variant <= stack.variants.size(); ++variant) {
    for (const BlockConnection& connection : stack.attention_of(variant).connections) {
      sources.insert(connection.source);
    }
  }
  return sources;
}

TensorId GraphBuilder::connect_blocks(const StackContext& stack, std::int64_t layer,
                                      TensorId hidden) {
  kept_states_[layer] = hidden;
  std::size_t count = 0;
  for (const BlockConnection& connection : stack.attention->connections) {
    const std::string path = fmt::format("block_connection.{}", count++);
    const TensorId rest = scaled(Part::residual, path + ".scale", 1 - connection.weight, hidden);
    const ResidualAdd sum{stack.rows() * Symbol::hidden_size, connection.weight};
    hidden = emit_in_place(Part::residual, path + ".sum", sum,
                           {rest, kept_states_.at(connection.source)});
  }
  return hidden;
}

}  // namespace headroom::detail
