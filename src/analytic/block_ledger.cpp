#include "block_ledger.h"

namespace headroom::detail {

BlockLedger::BlockLedger(const Block& block, const Producers& producers,
                         std::vector<SavedTensor>& ledger)
    : block_(block), producers_(producers), ledger_(ledger) {
  made_.insert(block.carried_in);
  if (block.carried_text) made_.insert(block.carried_text->in);
  for (const Node& node : block.nodes) made_.insert(node.output);
}

void BlockLedger::keep(TensorId tensor, const std::string& what, const Expr& bytes,
                       KeptUnder kept) {
  // A gathered tensor is saved as each rank's shard and gathered again in the backward pass
  // (arXiv 2205.05198, section 4.2.2).
  if (const Collective* gather = gathered_by(tensor)) {
    keep(producers_.at(tensor)->inputs.front(), what, bytes.substitute(gather->whole, gather->held),
         kept);
    return;
  }
  if (!known_.emplace(tensor, what).second) return;
  // A tensor from outside the block, such as the encoder's output, is one for all layers.
  if (block_.is_layers() && !made_.contains(tensor)) return keep_shared(what, bytes);
  ledger_.push_back({path(), what, SavedKind::tensor,
                     block_.is_layers() ? kept : KeptUnder::every_recompute, bytes, block_.repeat});
}

const Collective* BlockLedger::gathered_by(TensorId tensor) const {
  const auto producer = producers_.find(tensor);
  if (producer == producers_.end()) return nullptr;
  const auto* collective = std::get_if<Collective>(&producer->second->op);
  const bool gathers = collective != nullptr && collective->forward == CollectiveKind::all_gather;
  return gathers ? collective : nullptr;
}

void BlockLedger::keep_new(const std::string& what, const Expr& bytes, SavedKind kind) {
  ledger_.push_back({path(), what, kind,
                     block_.is_layers() ? KeptUnder::selective : KeptUnder::every_recompute, bytes,
                     block_.repeat});
}

void BlockLedger::keep_core(const std::string& what, const Expr& bytes, SavedKind kind) {
  ledger_.push_back({path(), what, kind, KeptUnder::none, bytes, block_.repeat});
}

void BlockLedger::keep_shared(const std::string& what, const Expr& bytes) {
  ledger_.push_back(
      {path(), what, SavedKind::tensor, KeptUnder::every_recompute, bytes, Integer{1}});
}

}  // namespace headroom::detail
