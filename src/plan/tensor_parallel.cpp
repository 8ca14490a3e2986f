// How an operator stands to the division of features decides what is exchanged around it:
//
//   column  whole features in, divided ones out (attention.qkv, mlp.up, logits): needs the whole
//           sequence; its input's gradient is summed over the ranks
//   row     divided in, whole out (attention.out, mlp.down): gives partial sums, added up behind it
//   local   divided in and out (attention, activation): nothing
//   partial routed experts of divided width: like row, but with sequence parallelism their sums are
//           added up before they go back to the ranks of their tokens, else when a row's are put
//           together
//   shared  whole in and out (norms, residuals): the same in every rank, or, with sequence
//           parallelism, a share of the tokens in each
#include "tensor_parallel.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "op_exprs.h"

namespace headroom::detail {
namespace {

/// Bytes of what ranks tell each other about the loss of a row: three float32 numbers.
constexpr Integer kLossSums = 12;

enum class Role { column, row, local, partial, shared };

Role role_of(const Node& node, const Graph& graph) {
  if (const auto* linear = std::get_if<Linear>(&node.op)) {
    const bool in = mentions_divided(linear->in_features);
    const bool out = mentions_divided(linear->out_features);
    if (in != out) return in ? Role::row : Role::column;
    return in ? Role::local : Role::shared;
  }
  if (const auto* experts = std::get_if<ExpertLinear>(&node.op)) {
    const bool in = mentions_divided(experts->in_features);
    const bool out = mentions_divided(experts->out_features);
    if (in != out) return in ? Role::partial : Role::column;
    return in ? Role::local : Role::shared;
  }
  // A divided table gives rows of zeros for the words of other ranks.
  const bool table = std::ranges::any_of(
      node.weights, [&](WeightId id) { return mentions_divided(graph.weights[id].elements()); });
  if (std::holds_alternative<TokenEmbedding>(node.op)) return table ? Role::row : Role::shared;
  return mentions_divided(node.op) || table ? Role::local : Role::shared;
}

class TensorParallelPass {
 public:
  TensorParallelPass(const Graph& source, SequenceParallel sequence)
      : source_(source),
        sequence_(sequence == SequenceParallel::on),
        training_(source.options.phase == Phase::train),
        result_(source) {}

  Graph run() && {
    result_.blocks.clear();
    narrow_received();
    for (const Block& block : source_.blocks) {
      Block& placed = result_.blocks.emplace_back(block);
      placed.nodes.clear();
      placed.carried_in = current(block.carried_in);
      gathered_.clear();
      for (const Node& node : block.nodes) place(node);
      result_.blocks.back().carried_out = current(block.carried_out);
    }
    for (TensorId& output : result_.outputs) output = finished(output);
    return std::move(result_);
  }

 private:
  /// Hidden states and an encoder's output that come from outside the graph are shares already.
  void narrow_received() {
    std::set<TensorId> made;
    for (const Block& block : source_.blocks) {
      for (const Node& node : block.nodes) made.insert(node.output);
    }
    for (const Block& block : source_.blocks) {
      for (const Node& node : block.nodes) {
        for (const TensorId input : node.inputs) {
          const bool received =
              !made.contains(input) && source_.tensors[input].type == ElementType::activation;
          if (received) narrow(input);
        }
      }
    }
  }

  void place(Node node) {
    Role role = role_of(node, source_);
    const bool reads_parts = std::ranges::any_of(
        node.inputs, [&](TensorId input) { return partial_.contains(current(input)); });
    if (reads_parts) role = role_of_parts(node);
    for (TensorId& input : node.inputs) {
      input = current(input);
      if (role != Role::shared && is_whole(input)) input = entered(input, node);
    }
    if (role == Role::shared && sequence_) {
      node.op = map_exprs(std::move(node.op), [&](const Expr& expr) { return share_of(expr); });
      narrow(node.output);
    }
    if (role == Role::column || role == Role::local) divided_.insert(node.output);
    if (role == Role::partial) partial_.insert(node.output);
    const TensorId output = node.output;
    const bool is_loss = role == Role::local && std::holds_alternative<CrossEntropy>(node.op);
    result_.blocks.back().nodes.push_back(node);
    if (role == Role::row) current_[output] = summed(node, output);
    if (is_loss) sum_loss(node);
  }

  /// Tokens come back from the experts' ranks as they went there, each tensor-parallel rank with
  /// its share, so that parts are scattered first (Megatron-LM, MoEAlltoAllTokenDispatcher:
  /// all-to-all and all-gather on the way there, reduce-scatter and all-to-all back). Without
  /// sequence parallelism every rank sends all tokens, which Megatron-LM does not allow.
  Role role_of_parts(Node& node) {
    if (std::holds_alternative<ExpertCombine>(node.op)) return Role::row;
    const bool goes_back = std::holds_alternative<Collective>(node.op);
    if (!goes_back || !sequence_) return Role::partial;
    node.inputs.front() = summed(node, current(node.inputs.front()));
    return Role::shared;
  }

  /// An activation of which every rank has all features.
  [[nodiscard]] bool is_whole(TensorId tensor) const {
    return result_.tensors[tensor].type == ElementType::activation && !divided_.contains(tensor) &&
           !partial_.contains(tensor) && !entered_.contains(tensor);
  }

  [[nodiscard]] TensorId current(TensorId tensor) const {
    const auto found = current_.find(tensor);
    return found == current_.end() ? tensor : found->second;
  }

  /// An encoder's sequence is as long as its decoder's.
  [[nodiscard]] static Expr share_of(const Expr& expr) {
    return expr.substitute(Symbol::seq_len, Symbol::sequence_shard_len)
        .substitute(Symbol::enc_seq_len, Symbol::sequence_shard_len);
  }

  /// The length that the shares of `tensor` are gathered to.
  [[nodiscard]] static Symbol length_of(const std::vector<Expr>& shape) {
    const auto encoded = [](const Expr& size) { return size.degree(Symbol::enc_seq_len) > 0; };
    return std::ranges::any_of(shape, encoded) ? Symbol::enc_seq_len : Symbol::seq_len;
  }

  void narrow(TensorId tensor) {
    if (!sequence_) return;
    for (Expr& size : result_.tensors[tensor].shape) size = share_of(size);
  }

  [[nodiscard]] Expr bytes_of(TensorId tensor) const {
    return result_.tensors[tensor].elements() * Symbol::activation_bytes;
  }

  TensorId add_tensor(const std::string& name, std::vector<Expr> shape) {
    result_.tensors.push_back({name, std::move(shape), ElementType::activation});
    return result_.tensors.size() - 1;
  }

  void add(const Node& beside, const std::string& path, Collective op, TensorId input,
           TensorId output, Placement placement) {
    result_.blocks.back().nodes.push_back({path,
                                           {beside.component.stack, Part::communication},
                                           std::move(op),
                                           {input},
                                           output,
                                           {},
                                           placement,
                                           beside.layer});
  }

  /// The input of a column-parallel product. Several products of one input share the exchange.
  TensorId entered(TensorId input, const Node& node) {
    const auto known = gathered_.find(input);
    if (known != gathered_.end()) return known->second;
    if (!sequence_ && !training_) return input;
    std::vector<Expr> shape = source_.tensors[original(input)].shape;
    const Symbol length = length_of(shape);
    const TensorId output = add_tensor(node.path + ".input", std::move(shape));
    if (sequence_) {
      const Collective gather{RankGroup::tensor,
                              CollectiveKind::all_gather,
                              training_ ? CollectiveKind::reduce_scatter : CollectiveKind::none,
                              bytes_of(input),
                              length,
                              Symbol::sequence_shard_len};
      add(node, node.path + ".all_gather", gather, input, output, Placement::new_buffer);
    } else {
      const Collective sum{RankGroup::tensor, CollectiveKind::none, CollectiveKind::all_reduce,
                           bytes_of(input)};
      add(node, node.path + ".gradient_sum", sum, input, output, Placement::in_place);
    }
    entered_.insert(output);
    return gathered_[input] = output;
  }

  /// The tensor of the source that `tensor` stands for.
  [[nodiscard]] TensorId original(TensorId tensor) const {
    for (const auto& [from, to] : current_) {
      if (to == tensor) return from;
    }
    return tensor;
  }

  /// The sum of all ranks' parts, or a share of it.
  TensorId summed(const Node& node, TensorId parts) {
    std::vector<Expr> shape = result_.tensors[parts].shape;
    const TensorId output = add_tensor(node.path + ".sum", std::move(shape));
    if (sequence_) {
      narrow(output);
      const Collective scatter{RankGroup::tensor, CollectiveKind::reduce_scatter,
                               training_ ? CollectiveKind::all_gather : CollectiveKind::none,
                               bytes_of(output)};
      add(node, node.path + ".reduce_scatter", scatter, parts, output, Placement::new_buffer);
    } else {
      const Collective sum{RankGroup::tensor, CollectiveKind::all_reduce, CollectiveKind::none,
                           bytes_of(output)};
      add(node, node.path + ".all_reduce", sum, parts, output, Placement::in_place);
    }
    return output;
  }

  /// A loss over a divided vocabulary sums three float32 numbers for each row: the largest logit,
  /// the sum of exponentials and the target's logit.
  void sum_loss(const Node& node) {
    const Expr rows = std::get<CrossEntropy>(node.op).rows;
    const Collective sums{RankGroup::tensor, CollectiveKind::all_reduce, CollectiveKind::none,
                          kLossSums * rows};
    add(node, node.path + ".all_reduce", sums, node.output,
        add_tensor(node.path + ".sum", {Integer{1}}), Placement::in_place);
  }

  /// What leaves the graph leaves it whole.
  TensorId finished(TensorId output) {
    const TensorId tensor = current(output);
    if (!divided_.contains(tensor) || training_ || result_.blocks.empty()) return tensor;
    const Node& last = result_.blocks.back().nodes.back();
    const Collective gather{RankGroup::tensor, CollectiveKind::all_gather, CollectiveKind::none,
                            bytes_of(tensor)};
    // The gathered copy belongs to the caller, as other outputs do.
    add(Node(last), "outputs.all_gather", gather, tensor, tensor, Placement::in_place);
    return tensor;
  }

  const Graph& source_;
  bool sequence_;
  bool training_;
  Graph result_;
  std::map<TensorId, TensorId> current_;   ///< what stands for a tensor of the source now
  std::map<TensorId, TensorId> gathered_;  ///< whole sequences, by their shares, in this block
  std::set<TensorId> divided_;
  std::set<TensorId> partial_;  ///< what all ranks' tensors add up to
  std::set<TensorId> entered_;  ///< whole sequences that an exchange made
};

}  // namespace

Graph tensor_parallel(const Graph& graph, SequenceParallel sequence) {
  return TensorParallelPass(graph, sequence).run();
}

}  // namespace headroom::detail
