// How an operator's features are divided decides its communication (arXiv 1909.08053, section 3):
//
//   column      whole features in, divided out (attention.qkv, mlp.up, logits): reads the whole
//               sequence; all-reduces the gradient of its input
//   row         divided in, whole out (attention.out, mlp.down): all-reduces its partial sums
//   local       divided in and out (attention, activation): no communication, but for a norm over
//               divided features
//   partial     row-parallel GEMMs of routed experts: with sequence parallelism their partial sums
//               are reduced before they return to the ranks of their tokens, otherwise after the
//               experts of a token are combined
//   replicated  whole in and out (norms, residuals): equal on every rank or, with sequence
//               parallelism, each rank's shard of the tokens
//
// Serving adds a shared expert's partial sums to those of the routed experts and reduces both at
// once (vLLM, DeepseekV2MoE and Qwen3NextSparseMoeBlock, whose shared experts have reduce_results
// off). Megatron-LM reduces each for itself.
//
// A served adapter adds B·(A·x) to the output of the rank's own part of a matrix, and reads the
// input of that part, so it needs no collective of its own (vLLM, RowParallelLinearWithLoRA and
// ColumnParallelLinearWithLoRA). A trained adapter's are layers of their own, as in PEFT.
#include "tensor_parallel.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "divided_norm.h"
#include "op_exprs.h"
#include "op_kind.h"

namespace headroom::detail {
namespace {

/// Bytes per row that a loss over a divided vocabulary reduces: the largest logit, the sum of
/// exponentials and the target's logit, in float32.
constexpr Integer kLossBytesPerRow = 12;

enum class Role { column, row, local, partial, replicated };

/// Tensors of served adapters.
struct ServedAdapters {
  std::set<TensorId> products;  ///< A·x and B·(A·x)
  std::set<TensorId> of_whole;  ///< A·x of matrices with divided columns
  std::set<TensorId> sums;      ///< W·x + B·(A·x)
  std::set<TensorId> unsummed;  ///< W·x, and sums that a further one reads
};

ServedAdapters served_adapters(const Graph& graph) {
  ServedAdapters adapters;
  const auto is_served = [&](WeightId id) { return graph.weights[id].held_adapters > 0; };
  for (const Block& block : graph.blocks) {
    for (const Node& node : block.nodes) {
      if (std::ranges::any_of(node.weights, is_served)) {
        adapters.products.insert(node.output);
        const bool divides = mentions_divided(std::get<Linear>(node.op).out_features);
        if (divides) adapters.of_whole.insert(node.inputs.front());
      } else if (!node.inputs.empty() && adapters.products.contains(node.inputs.back())) {
        adapters.unsummed.insert(node.inputs.front());
        adapters.sums.insert(node.output);
      }
    }
  }
  return adapters;
}

/// Partial sums of routed and shared experts that are reduced together.
struct JoinedExperts {
  std::map<TensorId, TensorId> shared;  ///< the shared expert's GEMM -> the routed experts' sum
  std::set<TensorId> routed;
  std::set<TensorId> sums;  ///< of both
};

/// Adds what `sum`, the sum of routed and shared experts, joins: `producer` makes a tensor.
template <class Producer>
void join(const Node& sum, const Producer& producer, JoinedExperts& joined) {
  const Node* const routed = producer(sum.inputs.front());
  const Node* shared = producer(sum.inputs.back());
  if (shared != nullptr && std::holds_alternative<RowGate>(shared->op)) {
    shared = producer(shared->inputs.front());
  }
  const bool joins = routed != nullptr && shared != nullptr &&
                     kind_of(routed->op) == OpKind::expert_combine &&
                     kind_of(shared->op) == OpKind::linear;
  if (!joins) return;
  joined.shared.emplace(shared->output, routed->output);
  joined.routed.insert(routed->output);
  joined.sums.insert(sum.output);
}

JoinedExperts joined_experts(const Graph& graph) {
  JoinedExperts joined;
  std::map<TensorId, const Node*> producers;
  const auto producer = [&](TensorId tensor) {
    const auto found = producers.find(tensor);
    return found == producers.end() ? nullptr : found->second;
  };
  for (const Block& block : graph.blocks) {
    for (const Node& node : block.nodes) {
      const bool is_sum = node.component.part == Part::mlp_shared_expert &&
                          std::holds_alternative<ResidualAdd>(node.op);
      if (is_sum) join(node, producer, joined);
      producers.emplace(node.output, &node);
    }
  }
  return joined;
}

/// The role of a GEMM by its features. `row` is the role for divided inputs and whole outputs.
template <class Gemm>
Role gemm_role(const Gemm& gemm, Role row) {
  const bool in = mentions_divided(gemm.in_features);
  const bool out = mentions_divided(gemm.out_features);
  if (in != out) return in ? row : Role::column;
  return in ? Role::local : Role::replicated;
}

Role role_of(const Node& node, const Graph& graph) {
  const bool divided_weight = std::ranges::any_of(
      node.weights, [&](WeightId id) { return mentions_divided(graph.weights[id].elements()); });
  // A window may lie on two ranks, so every rank sums all of them.
  if (std::holds_alternative<KeyCompression>(node.op)) return Role::local;
  switch (kind_of(node.op)) {
    case OpKind::linear:
      return gemm_role(std::get<Linear>(node.op), Role::row);
    case OpKind::expert_linear:
      return gemm_role(std::get<ExpertLinear>(node.op), Role::partial);
    case OpKind::word_embedding:
      // A rank looks up zeros for the words of other ranks.
      return divided_weight ? Role::row : Role::replicated;
    case OpKind::indexer:
      return Role::local;
    case OpKind::relative_position_bias:
    case OpKind::expert_combine:
    case OpKind::eager_attention:
    case OpKind::fused_attention:
    case OpKind::linear_attention:
    case OpKind::activation:
    case OpKind::loss:
    case OpKind::collective:
    case OpKind::other:
      break;
  }
  return mentions_divided(node.op) || divided_weight ? Role::local : Role::replicated;
}

class TensorParallelPass {
 public:
  TensorParallelPass(const Graph& source, std::int64_t ranks, SequenceParallel sequence)
      : source_(source),
        ranks_(ranks),
        sequence_(sequence == SequenceParallel::on),
        training_(source.options.phase == Phase::train),
        adapters_(served_adapters(source)),
        joined_(training_ || sequence_ ? JoinedExperts{} : joined_experts(source)),
        result_(source) {}

  Graph run() && {
    result_.blocks.clear();
    shard_received();
    for (const Block& block : source_.blocks) {
      Block& placed = result_.blocks.emplace_back(block);
      placed.nodes.clear();
      placed.carried_in = current(block.carried_in);
      gathered_.clear();
      for (const Node& node : block.nodes) place(node);
      result_.blocks.back().carried_out = current(block.carried_out);
    }
    for (TensorId& output : result_.outputs) output = gathered_output(output);
    return std::move(result_);
  }

 private:
  /// Hidden states and an encoder's output that come from another stage are sharded already.
  void shard_received() {
    std::set<TensorId> computed;
    for (const Block& block : source_.blocks) {
      for (const Node& node : block.nodes) computed.insert(node.output);
    }
    for (const Block& block : source_.blocks) {
      for (const Node& node : block.nodes) {
        for (const TensorId input : node.inputs) {
          const bool received =
              !computed.contains(input) && source_.tensors[input].type == ElementType::activation;
          if (received) shard_sequence(input);
        }
      }
    }
  }

  void place(Node node) {
    Role role = role_of(node, source_);
    const bool reads_partial = std::ranges::any_of(
        node.inputs, [&](TensorId input) { return partial_.contains(current(input)); });
    if (reads_partial) role = role_after_partial(node);
    role = role_beside_adapters(node, role);
    if (role == Role::row && waits_for_routed(node.output)) role = Role::partial;
    // Every rank caches all tokens, of a latent that its heads share as well.
    if (!training_ && sequence_ && std::holds_alternative<KvCacheAppend>(node.op))
      role = Role::local;
    // One token of a sequence is on one rank, and all need it.
    const bool selects = !training_ && std::holds_alternative<SelectToken>(node.op);
    for (TensorId& input : node.inputs) {
      input = current(input);
      if ((role != Role::replicated || selects) && is_whole(input)) input = gathered(input, node);
    }
    if (role == Role::local) sum_norm(node);
    if (role == Role::replicated && sequence_) {
      node.op = map_exprs(std::move(node.op), [](const Expr& expr) { return sharded(expr); });
      shard_sequence(node.output);
    }
    if (role == Role::column || role == Role::local) divided_.insert(node.output);
    if (role == Role::partial) partial_.insert(node.output);
    const TensorId output = node.output;
    const bool is_loss = role == Role::local && kind_of(node.op) == OpKind::loss;
    result_.blocks.back().nodes.push_back(node);
    if (role == Role::row) current_[output] = reduced(node, output);
    if (is_loss) reduce_loss(node);
  }

  /// A norm reads the ranks' sums, if it needs them, as a second input.
  void sum_norm(Node& node) {
    std::optional<Collective> sums = norm_sums(node.op, ranks_);
    node.op = with_groups_of_rank(std::move(node.op), ranks_);
    if (!sums) return;
    if (!training_) sums->backward = CollectiveKind::none;
    const TensorId squares =
        add_tensor(node.path + ".squares", {sums->squares->rows, sums->squares->groups});
    add(node, node.path + ".all_reduce", std::move(*sums), node.inputs.front(), squares,
        Placement::new_buffer);
    node.inputs.push_back(squares);
  }

  /// The role of an operator that reads partial sums. An adapter's sum ends them. Experts' tokens
  /// return from their ranks as they left, each tensor-parallel rank with its shard, so the sums
  /// are reduce-scattered first (Megatron-LM, MoEAlltoAllTokenDispatcher: all-to-all and all-gather
  /// on the way there, reduce-scatter and all-to-all back). Without sequence parallelism every rank
  /// sends all tokens, which Megatron-LM does not allow.
  Role role_after_partial(Node& node) {
    if (adapters_.sums.contains(node.output)) return Role::row;
    if (joined_.sums.contains(node.output)) return Role::row;
    const OpKind kind = kind_of(node.op);
    if (kind == OpKind::expert_combine) {
      return joined_.routed.contains(node.output) ? Role::partial : Role::row;
    }
    const bool returns_tokens = kind == OpKind::collective;
    if (!returns_tokens || !sequence_) return Role::partial;
    node.inputs.front() = reduced(node, current(node.inputs.front()));
    return Role::replicated;
  }

  /// True for a shared expert's GEMM whose partial sums join those of the routed experts.
  [[nodiscard]] bool waits_for_routed(TensorId output) const {
    const auto found = joined_.shared.find(output);
    return found != joined_.shared.end() && partial_.contains(current(found->second));
  }

  /// `role` where a reduction waits for a served adapter's sum, and where A reads the sequence that
  /// is gathered for W.
  [[nodiscard]] Role role_beside_adapters(const Node& node, Role role) const {
    if (adapters_.of_whole.contains(node.output)) {
      return role == Role::replicated ? Role::local : role;
    }
    const bool waits =
        adapters_.unsummed.contains(node.output) || adapters_.products.contains(node.output);
    return role == Role::row && waits ? Role::partial : role;
  }

  /// True for activations with all features on every rank.
  [[nodiscard]] bool is_whole(TensorId tensor) const {
    return result_.tensors[tensor].type == ElementType::activation && !divided_.contains(tensor) &&
           !partial_.contains(tensor) && !gathered_outputs_.contains(tensor);
  }

  [[nodiscard]] TensorId current(TensorId tensor) const {
    const auto found = current_.find(tensor);
    return found == current_.end() ? tensor : found->second;
  }

  /// `expr` with sharded lengths; an encoder's sequence is as long as its decoder's.
  [[nodiscard]] static Expr sharded(const Expr& expr) {
    return expr.substitute(Symbol::seq_len, Symbol::sequence_shard_len)
        .substitute(Symbol::enc_seq_len, Symbol::sequence_shard_len);
  }

  /// The length that the shards of a tensor of this shape are gathered to.
  [[nodiscard]] static Symbol length_of(const std::vector<Expr>& shape) {
    const auto encoded = [](const Expr& size) { return size.degree(Symbol::enc_seq_len) > 0; };
    return std::ranges::any_of(shape, encoded) ? Symbol::enc_seq_len : Symbol::seq_len;
  }

  [[nodiscard]] bool has_token_shards(TensorId tensor) const {
    return result_.tensors[tensor].elements().degree(Symbol::sequence_shard_len) > 0;
  }

  void shard_sequence(TensorId tensor) {
    if (!sequence_) return;
    for (Expr& size : result_.tensors[tensor].shape) size = sharded(size);
  }

  [[nodiscard]] Expr bytes_of(TensorId tensor) const {
    return result_.tensors[tensor].elements() * Symbol::activation_bytes;
  }

  TensorId add_tensor(const std::string& name, std::vector<Expr> shape) {
    result_.tensors.push_back({name, std::move(shape), ElementType::activation});
    return result_.tensors.size() - 1;
  }

  /// Adds a collective next to `node`.
  void add(const Node& node, const std::string& path, Collective op, TensorId input,
           TensorId output, Placement placement) {
    result_.blocks.back().nodes.push_back({path,
                                           {node.component.stack, Part::communication},
                                           std::move(op),
                                           {input},
                                           output,
                                           {},
                                           placement,
                                           node.layer});
  }

  /// The whole-sequence input of a column-parallel GEMM. GEMMs with the same input share it.
  TensorId gathered(TensorId input, const Node& node) {
    const auto known = gathered_.find(input);
    if (known != gathered_.end()) return known->second;
    // A table of relative positions has no tokens, and is whole on every rank.
    const bool shards = sequence_ && has_token_shards(input);
    if (!shards && !training_) return input;
    std::vector<Expr> shape = source_.tensors[original(input)].shape;
    const Symbol length = length_of(shape);
    const TensorId output = add_tensor(node.path + ".input", std::move(shape));
    if (shards) {
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
    gathered_outputs_.insert(output);
    return gathered_[input] = output;
  }

  /// The tensor of the source that `tensor` replaces.
  [[nodiscard]] TensorId original(TensorId tensor) const {
    for (const auto& [from, to] : current_) {
      if (to == tensor) return from;
    }
    return tensor;
  }

  /// The sum of all ranks' `partial` tensors, or with sequence parallelism this rank's shard of it.
  TensorId reduced(const Node& node, TensorId partial) {
    std::vector<Expr> shape = result_.tensors[partial].shape;
    const TensorId output = add_tensor(node.path + ".sum", std::move(shape));
    if (sequence_) {
      shard_sequence(output);
      const Collective scatter{RankGroup::tensor, CollectiveKind::reduce_scatter,
                               training_ ? CollectiveKind::all_gather : CollectiveKind::none,
                               bytes_of(output)};
      add(node, node.path + ".reduce_scatter", scatter, partial, output, Placement::new_buffer);
    } else {
      const Collective sum{RankGroup::tensor, CollectiveKind::all_reduce, CollectiveKind::none,
                           bytes_of(output)};
      add(node, node.path + ".all_reduce", sum, partial, output, Placement::in_place);
    }
    return output;
  }

  /// Reduces the loss over a divided vocabulary.
  void reduce_loss(const Node& node) {
    const Expr rows = std::get<CrossEntropy>(node.op).rows;
    const Collective sums{RankGroup::tensor, CollectiveKind::all_reduce, CollectiveKind::none,
                          kLossBytesPerRow * rows};
    add(node, node.path + ".all_reduce", sums, node.output,
        add_tensor(node.path + ".sum", {Integer{1}}), Placement::in_place);
  }

  /// Gathers an output of the graph: its features if ranks divide them, its tokens if they shard
  /// these.
  TensorId gathered_output(TensorId output) {
    const TensorId tensor = current(output);
    if (training_ || result_.blocks.empty()) return tensor;
    Node last = result_.blocks.back().nodes.back();
    const bool sends_on = result_.blocks.back().path == "pipeline";
    if (has_token_shards(tensor) && !sends_on) {
      // A head's output keeps its name; without a head, the last states have one of their own.
      if (last.component.part != Part::head) last.path = "output_tokens";
      return gathered(tensor, last);
    }
    if (!divided_.contains(tensor)) return tensor;
    const Collective gather{RankGroup::tensor, CollectiveKind::all_gather, CollectiveKind::none,
                            bytes_of(tensor)};
    // The gathered copy is the caller's, as other outputs are.
    add(Node(last), "outputs.all_gather", gather, tensor, tensor, Placement::in_place);
    return tensor;
  }

  const Graph& source_;
  std::int64_t ranks_;
  bool sequence_;
  bool training_;
  ServedAdapters adapters_;
  JoinedExperts joined_;
  Graph result_;
  std::map<TensorId, TensorId> current_;   ///< from tensors of the source to those of the result
  std::map<TensorId, TensorId> gathered_;  ///< from shards to whole sequences, in this block
  std::set<TensorId> divided_;
  std::set<TensorId> partial_;           ///< sums over the ranks are pending
  std::set<TensorId> gathered_outputs_;  ///< inputs of column-parallel GEMMs
};

}  // namespace

Graph tensor_parallel(const Graph& graph, std::int64_t ranks, SequenceParallel sequence) {
  return TensorParallelPass(graph, ranks, sequence).run();
}

}  // namespace headroom::detail
