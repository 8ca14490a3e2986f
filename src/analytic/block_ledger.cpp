#include "block_ledger.h"

#include <limits>

namespace headroom::detail {
namespace {

/// Of tensors that have no row in their block: earlier layers have saved them, or all share one.
constexpr std::size_t kNoRow = std::numeric_limits<std::size_t>::max();

}  // namespace

BlockLedger::BlockLedger(const Block& block, const Producers& producers,
                         const std::set<TensorId>& layer_inputs, std::vector<SavedTensor>& ledger)
    : block_(block), producers_(producers), layer_inputs_(layer_inputs), ledger_(ledger) {
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
  const auto [known, is_new] = known_.emplace(std::pair(tensor, what), kNoRow);
  if (!is_new) return add_reader(known->second);
  // Attention residuals read the inputs of earlier layers, which those have saved.
  if (!made_.contains(tensor) && layer_inputs_.contains(tensor)) return;
  // A tensor from outside the block, such as the encoder's output, is one for all layers.
  if (block_.is_layers() && !made_.contains(tensor)) return keep_shared(what, bytes);
  const Node* const source = source_of(tensor);
  const bool is_made = block_.is_layers() && source != nullptr;
  const LayerPart part = is_made ? recomputed_by(*node_, source) : LayerPart::other;
  known->second = ledger_.size();
  ledger_.push_back({path(), what, SavedKind::tensor,
                     block_.is_layers() ? kept : KeptUnder::every_recompute, bytes, block_.repeat,
                     kept == KeptUnder::none ? LayerPart::attention_core : part, reader()});
}

SavedReaders BlockLedger::reader() const {
  return is_layer_gemm(block_, *node_) ? SavedReaders::layer_gemms : SavedReaders::others;
}

void BlockLedger::add_reader(std::size_t row) {
  if (row == kNoRow) return;
  SavedReaders& readers = ledger_[row].readers;
  if (readers != reader()) readers = SavedReaders::gemms_and_more;
}

const Collective* BlockLedger::gathered_by(TensorId tensor) const {
  const auto producer = producers_.find(tensor);
  if (producer == producers_.end()) return nullptr;
  const auto* collective = std::get_if<Collective>(&producer->second->op);
  const bool gathers = collective != nullptr && collective->forward == CollectiveKind::all_gather;
  return gathers ? collective : nullptr;
}

void BlockLedger::keep_new(const std::string& what, const Expr& bytes, SavedKind kind) {
  ledger_.push_back(
      {path(), what, kind, block_.is_layers() ? KeptUnder::selective : KeptUnder::every_recompute,
       bytes, block_.repeat, block_.is_layers() ? internal_part() : LayerPart::other, reader()});
}

const Node* BlockLedger::source_of(TensorId tensor) const {
  const auto producer = producers_.find(tensor);
  if (producer == producers_.end()) return nullptr;
  const auto* collective = std::get_if<Collective>(&producer->second->op);
  const bool passes_on = collective != nullptr && collective->forward == CollectiveKind::none;
  return passes_on ? source_of(producer->second->inputs.front()) : producer->second;
}

LayerPart BlockLedger::internal_part() const {
  const LayerPart part = recomputed_by(*node_, nullptr);
  // The core drops its pairs alone (keep_core).
  return part == LayerPart::attention_core ? LayerPart::other : part;
}

void BlockLedger::keep_core(const std::string& what, const Expr& bytes, SavedKind kind) {
  ledger_.push_back(
      {path(), what, kind, KeptUnder::none, bytes, block_.repeat, LayerPart::attention_core});
}

void BlockLedger::keep_shared(const std::string& what, const Expr& bytes) {
  ledger_.push_back(
      {path(), what, SavedKind::tensor, KeptUnder::every_recompute, bytes, Integer{1}});
}

}  // namespace headroom::detail
