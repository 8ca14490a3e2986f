#include "saved_tensors.h"

#include <set>
#include <span>
#include <string_view>
#include <utility>

#include "block_ledger.h"
#include "op_cost.h"
#include "saved_biases.h"
#include "saved_chunks.h"
#include "visit.h"

namespace headroom::detail {
namespace {

const Expr kFloat32Bytes = Integer{4};

/// Tensors saved by Hugging Face's gelu_new, which runs as elementary operations: one each for
/// input³, tanh, input/2 and 1 + tanh.
constexpr std::string_view kGeluNewSteps[] = {"input", "tanh", "input/2", "1 + tanh"};

/// Says what each operator of a block saves.
class LedgerWriter : private BlockLedger {
 public:
  LedgerWriter(const Graph& graph, const Block& block, Kernels kernels, const Producers& producers,
               const std::set<TensorId>& layer_inputs, std::vector<SavedTensor>& ledger,
               RotaryTables& rotary_tables)
      : BlockLedger(block, producers, layer_inputs, ledger),
        graph_(graph),
        kernels_(kernels),
        producers_(producers),
        rotary_tables_(rotary_tables) {}

  void write(const Node& node) {
    start(node);
    node_ = &node;
    std::visit(*this, node.op);
  }

  void operator()(const TokenEmbedding& op) {
    keep_new("word ids", op.tokens * kIndexBytes, SavedKind::input_data);
    if (op.positions == AddedPositions::learned) {
      keep_new("position ids", op.seq_len * kIndexBytes, SavedKind::input_data);
    }
    if (!op.type_rows.is_zero()) {
      keep_new("token-type ids", op.tokens * kIndexBytes, SavedKind::input_data);
    }
  }
  void operator()(const PatchEmbedding& op) {
    keep_new("pixels", op.patches * op.patch_elements * kActivationBytes, SavedKind::input_data);
  }
  void operator()(const PatchRows&) {}
  void operator()(const VisualTokens& op) {
    keep_new("places", op.rows * kIndexBytes, SavedKind::input_data);
  }
  void operator()(const PositionEmbedding& op) {
    keep_new("position ids", op.seq_len * kIndexBytes, SavedKind::input_data);
  }
  void operator()(const Convolution& op) {
    const Expr elements = op.batch * op.inputs() * op.in_channels;
    const SavedKind kind = op.channels_first ? SavedKind::input_data : SavedKind::tensor;
    if (kind == SavedKind::input_data) return keep_new("input", elements * kActivationBytes, kind);
    keep(node_->inputs.front(), "input", elements * kActivationBytes);
  }
  void operator()(const GridConvolution& op) {
    const Expr bytes = op.batch * Integer{op.rows} * Integer{op.columns} * Integer{op.in_channels} *
                       kActivationBytes;
    if (op.reads_sound) return keep_new("input", bytes, SavedKind::input_data);
    keep(node_->inputs.front(), "input", bytes);
  }
  void operator()(const RelativePositionBias& op) {
    keep_new("buckets", op.batch * op.queries * op.keys * kIndexBytes, SavedKind::input_data);
  }
  void operator()(const PositionTableRows&) {}
  void operator()(const DisentangledBias& op) {
    const bool copied = kernels_ == Kernels::reference;
    const Expr copies = copied ? op.shape.batch : Expr(Integer{1});
    keep_disentangled(op, node_->inputs, copies, *this);
  }
  void operator()(const RelativeSinusoids&) {}
  void operator()(const TransformerXlBias& op) { keep_transformer_xl(op, node_->inputs, *this); }
  void operator()(const GatedPositionBias& op) {
    keep_gated_position_bias(op, node_->inputs, *this);
  }
  void operator()(const LocalAttention& op) { keep_local_attention(op, node_->inputs, *this); }
  void operator()(const ChannelScale& op) {
    keep(node_->inputs.front(), "unscaled", op.rows * op.width * kActivationBytes);
  }
  void operator()(const Linear& op) {
    if (!is_trained(graph_, *node_)) return;  // the input's gradient needs only the weight
    keep(node_->inputs.front(), "input", op.rows * op.in_features * kActivationBytes);
  }
  void operator()(const Norm& op) { keep_norm(op.spec, op.rows, op.width); }
  void operator()(const HeadNorm& op) {
    const bool together = op.scope == QueryKeyNormScope::all_heads;
    const HeadRows& heads = op.heads;
    const Expr rows = together ? heads.rows : heads.rows * heads.heads;
    keep_norm(op.spec, rows, together ? heads.heads * heads.head_dim : heads.head_dim);
  }
  void keep_norm(const NormSpec& spec, const Expr& rows, const Expr& width) {
    const Expr elements = rows * width;
    if (spec.kind == NormKind::layer_norm) {
      keep(node_->inputs.front(), "input", elements * kActivationBytes);
      keep_new("mean", rows * kActivationBytes, SavedKind::statistic);
      keep_new("rstd", rows * kActivationBytes, SavedKind::statistic);
      return;
    }
    // Hugging Face's RMSNorm squares a float32 copy and applies the weight afterwards.
    if (kernels_ == Kernels::reference) {
      keep_new("float32 input", elements * kFloat32Bytes);
      keep_new("normalised", elements * kActivationBytes);
    } else {
      keep(node_->inputs.front(), "input", elements * kActivationBytes);
    }
    keep_new("rstd", rows * kFloat32Bytes, SavedKind::statistic);
  }
  void operator()(const Rotary& op) {
    if (!rotary_tables_.emplace(op.rope.theta, op.rope.rotary_dim).second) return;
    for (const char* const table : {"cos", "sin"}) {
      keep_shared(table, op.table_elements() * kActivationBytes);
    }
  }
  void operator()(const Clamp& op) {
    keep(node_->inputs.front(), "unclamped", op.elements * kActivationBytes);
  }
  void operator()(const TemperatureScale& op) { keep_temperature(op, node_->inputs, *this); }
  void operator()(const LatentConcat&) {}
  void operator()(const HeadLinear& op) {
    keep(node_->inputs.front(), "input", op.rows * op.heads * op.in_features * kActivationBytes);
  }
  void operator()(const GroupedLinear& op) {
    keep(node_->inputs.front(), "input", op.rows * op.groups * op.in_features * kActivationBytes);
  }
  void operator()(const KeyCompression& op) {
    const Expr bytes = op.summed() * kActivationBytes;
    keep(node_->inputs.front(), "keys to compress", bytes);
    keep_new("gate probabilities", bytes);
  }
  void operator()(const IndexScores& op) {
    const Expr rows = op.batch * op.queries * op.heads;
    keep(node_->inputs[0], "index query", rows * op.head_dim * kActivationBytes);
    keep(node_->inputs[1], "index key", op.batch * op.keys * op.head_dim * kActivationBytes);
    if (op.result == IndexHeads::separate) return;  // the products choose, and nothing else
    keep(node_->inputs[2], "index weight", rows * kActivationBytes);
    keep_new("index scores", op.pairs() * op.heads * kActivationBytes);
  }
  void operator()(const OneOf<KeySelect, PoolTokens, TimestepFeatures, TrainedShift> auto&) {}
  void operator()(const StreamWeights&) {
    const Expr elements = graph_.tensors[node_->output].elements();
    keep(node_->output, "stream weights", elements * kActivationBytes);
  }
  void operator()(const StreamStep& op) {
    if (op.kind == StreamStep::Kind::expand || op.kind == StreamStep::Kind::mean) return;
    if (op.kind == StreamStep::Kind::attend) {
      for (const TensorId stream : node_->inputs) {
        keep(stream, "input", op.rows * op.width * kActivationBytes);
      }
      return keep_new("probabilities", op.rows * op.streams * kFloat32Bytes);
    }
    const bool reads = op.kind != StreamStep::Kind::add;
    if (reads) keep(node_->inputs[0], "streams", op.elements() * kActivationBytes);
    if (op.kind == StreamStep::Kind::sum) return;
    keep(node_->inputs[1], "sublayer output", op.rows * op.width * kActivationBytes);
  }
  void operator()(const KvCacheAppend&) {}  // no KV-cache in training
  void operator()(const GlobalRows& op) {
    if (kernels_ != Kernels::reference) return;
    if (op.kind == GlobalRows::Kind::sum) {  // by a product with a row of 0 and 1 per token
      return keep_new("blocks", op.batch * op.summed * op.tokens * kActivationBytes,
                      SavedKind::input_data);
    }
    if (op.kind != GlobalRows::Kind::gather) return;
    // Places of the tokens in the batch and among the global ones, two indices each.
    keep_new("places", Integer{4} * op.batch * op.tokens * kIndexBytes, SavedKind::input_data);
  }
  void operator()(const AttentionScores& op) {
    if (copies_chunks(op.shape)) {
      keep_chunked_scores(op.shape, *this);
      return;
    }
    keep(node_->inputs[0], "query", op.shape.query_elements() * kActivationBytes);
    keep(node_->inputs[key_input(node_->inputs, op.shaping)], "key",
         shared_heads(op.shape) * op.shape.head_dim * kActivationBytes);
    if (op.shaping.soft_cap > 0) {
      keep_core("tanh of the scores", op.shape.score_elements() * kActivationBytes,
                SavedKind::tensor);
    }
  }
  void operator()(const Softmax& op) {
    const bool widened =
        op.precision == SoftmaxPrecision::float32 && kernels_ == Kernels::reference;
    if (widened) {
      keep_core("float32 probabilities", op.elements * kFloat32Bytes, SavedKind::tensor);
    } else {
      keep(node_->output, "probabilities", op.elements * kActivationBytes, KeptUnder::none);
    }
  }
  void operator()(const AttentionContext& op) {
    // A softmax in float32 is followed by a cast to the activation's type, if that differs.
    const TensorId probabilities = node_->inputs[0];
    const Expr bytes = is_cast(probabilities) ? Expr(Symbol::cast_bytes) : kActivationBytes;
    if (copies_chunks(op.shape)) {
      keep_chunked_context(op.shape, *this);
      return;
    }
    keep(probabilities, "probabilities", op.shape.score_elements() * bytes, KeptUnder::none);
    keep(node_->inputs[1], "value",
         shared_heads(op.shape) * op.shape.value_head_dim * kActivationBytes);
  }
  void operator()(const FusedAttention& op) {
    const AttentionShape& shape = op.shape;
    keep(node_->inputs[0], "query", shape.query_elements() * kActivationBytes);
    const TensorId keys = node_->inputs[key_input(node_->inputs, op.shaping)];
    keep(keys, "key", shared_heads(shape) * shape.head_dim * kActivationBytes);
    keep(keys, "value", shared_heads(shape) * shape.value_head_dim * kActivationBytes);
    keep(node_->output, "input", shape.context_elements() * kActivationBytes);
    keep_new("logsumexp", shape.batch * shape.heads * shape.queries * kFloat32Bytes,
             SavedKind::statistic);
  }
  void operator()(const FeatureMap& op) {
    // The other maps save their output, which the attention saves as its operand.
    if (op.kind != FeatureMapKind::elu_plus_one) return;
    keep(node_->inputs[0], "feature-map input", op.heads.elements() * kActivationBytes);
  }
  void operator()(const LinearAttention& op) {
    const AttentionShape& shape = op.shape;
    const Expr key_sums = shape.batch * shape.heads * shape.head_dim;
    const bool causal = op.masking == Masking::causal;
    keep(node_->inputs[0], "φ(query)", shape.query_elements() * kActivationBytes);
    keep(node_->inputs[0], "φ(key)", shape.key_elements() * kActivationBytes);
    keep(node_->inputs[0], "value", shape.value_elements() * kActivationBytes);
    // A causal kernel recomputes its running state in the backward pass.
    if (!causal) keep_new("state", key_sums * shape.value_head_dim * kActivationBytes);
    keep_new("key sums", key_sums * (causal ? shape.keys : Expr(Integer{1})) * kActivationBytes);
    keep_new("denominator", shape.batch * shape.queries * shape.heads * kActivationBytes,
             SavedKind::statistic);
    keep_new("unnormalised context", shape.context_elements() * kActivationBytes);
  }
  void operator()(const ShortConvolution& op) {
    const Expr bytes = op.elements() * kActivationBytes;
    keep(node_->inputs.front(), "input", bytes);
    if (op.activation != ActivationKind::identity) keep_new("convolved", bytes);
  }
  void keep_scan_inputs() {
    for (const TensorId input : node_->inputs) {
      keep(input, "scan input", graph_.tensors[input].elements() * kActivationBytes);
    }
  }
  void operator()(const StateSpaceScan&) {
    // Saves its operands; a chunked kernel recomputes its states.
    keep_scan_inputs();
  }
  void operator()(const GatedDelta& op) {
    if (op.update != StateUpdate::delta) return keep_scan_inputs();
    // Saves queries, keys, values and rates; a chunked kernel recomputes its states.
    const Expr keys = Integer{2} * op.rows * op.heads * op.key_dim;
    const Expr values = op.rows * op.heads * op.value_dim;
    keep_new("query and key", keys * kActivationBytes);
    keep(node_->inputs.front(), "value", values * kActivationBytes);
    keep_new("rates", op.rows * (op.heads + op.decays()) * kFloat32Bytes, SavedKind::statistic);
  }
  void operator()(const GatedLinearRecurrence& op) {
    const Expr bytes = op.elements() * kActivationBytes;
    keep(node_->inputs.front(), "input", bytes);
    keep_new("gates", Integer{2} * bytes);
    keep(node_->output, "recurrent states", bytes);
  }
  void operator()(const TokenShift&) {}
  void operator()(const TokenMix& op) {
    for (const TensorId input : node_->inputs) {
      keep(input, "unmixed", op.rows * op.width * kActivationBytes);
    }
  }
  void operator()(const ValueBonus& op) {
    for (const TensorId input : std::span(node_->inputs).subspan(1)) {
      keep(input, "bonus input", graph_.tensors[input].elements() * kActivationBytes);
    }
    keep_new("bonus", op.rows * op.heads * kActivationBytes);
  }
  void operator()(const WeightedKeyValue&) {
    keep_scan_inputs();  // the kernel recomputes its states (transformers, models/rwkv)
  }
  void operator()(const Concatenate&) {}
  void operator()(const Recurrence& op) {
    // As torch.nn's kernels save them: every state and the activated gates; a GRU's state GEMM,
    // which the reset gate multiplies, and an LSTM's memory.
    const Expr states = op.output_elements() * kActivationBytes;
    keep(node_->output, "input", states);
    switch (op.cell) {
      case RecurrentCell::rnn:
        return;  // the state is the activated gate
      case RecurrentCell::lstm:
        keep_new("gates", op.gates() * states);
        keep_new("memory", states);
        return;
      case RecurrentCell::gru:
        keep_new("gates", op.gates() * states);
        keep_new("state GEMM", states);
        return;
    }
  }
  void operator()(const OutputGate& op) {
    keep(node_->inputs[0], "ungated", op.elements * kActivationBytes);
    keep(node_->inputs[1], "gate", op.gate_elements() * kActivationBytes);
  }
  void operator()(const Activation& op) { keep_activation(op.kind, op.elements, ""); }
  void operator()(const GatedActivation& op) {
    const Expr bytes = op.elements * kActivationBytes;
    keep_activation(op.kind, op.elements, "gate ");
    keep(node_->inputs[0], "up", bytes);
    const bool output_saved = op.kind == ActivationKind::relu || op.kind == ActivationKind::tanh;
    if (kernels_ != Kernels::reference) return;
    if (!output_saved) keep_new("activated gate", bytes);
    if (op.limit > 0) {
      keep_new("clamped gate", bytes);
      keep_new("clamped up", bytes);
    }
    if (op.caps) keep_new("capped gate", bytes);
    if (op.caps && op.caps->up > 0) keep_new("capped up", bytes);
  }
  void operator()(const RouterSelect& op) {
    const Expr scores = op.rows * op.num_experts;
    keep_new("router probabilities",
             scores * (kernels_ == Kernels::reference ? kFloat32Bytes : kActivationBytes));
    keep_new("chosen experts", op.rows * op.per_token * kIndexBytes, SavedKind::input_data);
  }
  void operator()(const ExpertLinear& op) {
    // Every expert reads a copy of the rows routed to it.
    const Expr bytes = op.rows * op.per_token * op.in_features * kActivationBytes;
    switch (op.source) {
      case ExpertLinear::Source::tokens:
        keep_new("routed rows", bytes);
        break;
      case ExpertLinear::Source::experts:
        keep(node_->inputs.front(), "input", bytes);
        break;
    }
  }
  void operator()(const ExpertCombine& op) {
    if (op.weighting == ExpertWeighting::input) return;
    // Fused kernels weight the activation, before the second GEMM (Megatron-LM's
    // weighted_bias_swiglu_impl), so the combination is a sum.
    if (kernels_ == Kernels::reference) {
      keep(node_->inputs.front(), "expert output",
           op.rows * op.per_token * op.width * kActivationBytes);
    }
    keep_new("expert weights", op.rows * op.per_token * kActivationBytes);
  }
  void operator()(const RowGate& op) {
    keep(node_->inputs[0], "ungated", op.rows * op.width * kActivationBytes);
    keep_new("gate", op.rows * kActivationBytes);
  }
  void operator()(const ResidualAdd&) {}
  void operator()(const Dropout& op) {
    const Expr bytes = op.elements * Symbol::mask_bytes;
    if (in_attention_core(*node_)) {
      keep_core("mask", bytes, SavedKind::mask);
    } else {
      keep_new("mask", bytes, SavedKind::mask);
    }
  }
  void operator()(const SelectToken&) {}
  void operator()(const UnitLength& op) {
    keep(node_->inputs.front(), "input", op.rows * op.width * kActivationBytes);
    keep_new("length", op.rows * kActivationBytes, SavedKind::statistic);
  }
  void operator()(const RepeatedRow&) {}
  void operator()(const SimilarityLogits& op) {
    keep(node_->inputs[0], "text", op.texts * op.width * kActivationBytes);
    keep(node_->inputs[1], "image", op.images * op.width * kActivationBytes);
    keep_new("products", op.elements() * kActivationBytes);
  }
  void operator()(const Scale&) {}
  void operator()(const AltUpStep& op) {
    const bool copies = op.kind == AltUpStep::Kind::select || op.kind == AltUpStep::Kind::spread;
    if (copies) return;
    for (const TensorId input : node_->inputs) {
      keep(input, "input", graph_.tensors[input].elements() * kActivationBytes);
    }
  }
  void operator()(const TrainedScale& op) {
    keep(node_->inputs.front(), "unscaled", op.rows * op.width * kActivationBytes);
  }
  void operator()(const Modulation& op) {
    const Expr vector = op.batch * op.width * kActivationBytes;
    keep(node_->inputs[0], "unmodulated", op.elements() * kActivationBytes);
    if (op.kind == Modulation::Kind::scale_and_shift) return keep_new("1 + scale", vector);
    keep(node_->inputs[1], "gate", vector);
  }
  void operator()(const SequenceRows&) {}
  void operator()(const SoftCap& op) {
    keep(node_->output, "capped", op.elements * kActivationBytes);
  }
  void operator()(const CrossEntropy& op) {
    const bool widened =
        op.precision == SoftmaxPrecision::float32 && kernels_ == Kernels::reference;
    const Expr bytes = widened ? kFloat32Bytes : kActivationBytes;
    keep_new("log-probabilities", op.rows * op.classes * bytes);
    keep_new("targets", op.rows * kIndexBytes, SavedKind::input_data);
    keep_new("total weight", bytes, SavedKind::statistic);
  }
  void operator()(const Collective&) {}

 private:
  /// Returns whether the reference code copies the operands of attention in chunks.
  [[nodiscard]] bool copies_chunks(const AttentionShape& shape) const {
    return shape.is_chunked() && kernels_ == Kernels::reference;
  }

  /// batch · keys · heads: the reference code repeats grouped keys and values for every query head.
  [[nodiscard]] Expr shared_heads(const AttentionShape& shape) const {
    const bool repeated = kernels_ == Kernels::reference;
    return shape.batch * shape.key_rows() * (repeated ? shape.heads : shape.kv_heads);
  }

  /// Index of the input with K: the last operand before a bias and a mask.
  [[nodiscard]] static std::size_t key_input(const std::vector<TensorId>& inputs,
                                             const ScoreShaping& shaping) {
    const std::size_t biases = shaping.bias == ScoreBias::relative_position ? 1 : 0;
    const std::size_t masks = shaping.mask == KeyMask::indexer ? 1 : 0;
    return inputs.size() - biases - masks - 1;
  }

  [[nodiscard]] bool is_cast(TensorId probabilities) const {
    const auto producer = producers_.find(probabilities);
    if (producer == producers_.end() || kernels_ != Kernels::reference) return false;
    const auto* softmax = std::get_if<Softmax>(&producer->second->op);
    return softmax != nullptr && softmax->precision == SoftmaxPrecision::float32;
  }

  void keep_activation(ActivationKind kind, const Expr& elements, const std::string& prefix) {
    const Expr bytes = elements * kActivationBytes;
    switch (kind) {
      case ActivationKind::identity:
        return;
      case ActivationKind::relu:
      case ActivationKind::tanh:
      case ActivationKind::sigmoid:
        // The gradient follows from the output, which the next GEMM usually saves anyway.
        if (prefix.empty()) {
          keep(node_->output, "input", bytes);
        } else {
          keep_new(prefix + "output", bytes);
        }
        return;
      case ActivationKind::relu_squared:
        // One kernel saves its input; two save the ReLU's output, which both need.
        if (kernels_ == Kernels::fused) break;
        keep_new(prefix + "relu output", bytes);
        return;
      case ActivationKind::gelu_new:
        if (kernels_ == Kernels::fused) break;
        for (const std::string_view step : kGeluNewSteps) {
          keep_new(prefix + "activation step " + std::string(step), bytes);
        }
        return;
      case ActivationKind::quick_gelu:
        // Hugging Face's runs as elementary operations, and the product saves both factors.
        if (kernels_ == Kernels::reference) keep_new(prefix + "activation sigmoid", bytes);
        break;
      case ActivationKind::gelu:
      case ActivationKind::gelu_tanh:
      case ActivationKind::silu:
      case ActivationKind::clamped_swiglu:
      case ActivationKind::clamped_silu:
      case ActivationKind::xielu:
      case ActivationKind::softplus:
        break;
    }
    keep(node_->inputs.front(), prefix + "activation input", bytes);
  }

  const Graph& graph_;
  Kernels kernels_;
  const Producers& producers_;
  RotaryTables& rotary_tables_;
  const Node* node_ = nullptr;
};

}  // namespace

std::vector<SavedTensor> saved_tensors(const Graph& graph, Kernels kernels) {
  Producers producers;
  for (const Block& block : graph.blocks) {
    for (const Node& node : block.nodes) producers[node.output] = &node;
  }
  std::vector<SavedTensor> ledger;
  RotaryTables rotary_tables;
  std::set<TensorId> layer_inputs;
  for (const Block& block : graph.blocks) {
    LedgerWriter writer(graph, block, kernels, producers, layer_inputs, ledger, rotary_tables);
    for (const Node& node : block.nodes) writer.write(node);
    if (block.is_layers()) layer_inputs.insert(block.carried_in);
  }
  return ledger;
}

}  // namespace headroom::detail
