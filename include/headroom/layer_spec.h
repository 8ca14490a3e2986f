// StackSpec: the layers of a stack as independent choices: norms and residuals around attention,
// feed-forward networks with or without experts, recurrences, convolutions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "headroom/attention_spec.h"

namespace headroom {

/// Order of attention f and feed-forward network g. Sequential: x' = x + f(x), y = x' + g(x').
/// Parallel: x + f(norm(x)) + g(norm(x)), with one norm for both or one each.
enum class ResidualKind { sequential, parallel_one_norm, parallel_two_norms };
/// Plain: down(act(up(x))). Gated: down(act(gate(x)) · up(x)). Channel mix (RWKV-4; arXiv
/// 2305.13048, eq. 17 and 18): sigmoid(gate(x_r)) · down(act(up(x_k))), where x_r and x_k mix each
/// position with the one before; gate is hidden_size wide, and RWKV-7 has none. Matrix: one square
/// matrix in the network's place (Nemotron-NAS).
enum class FfnKind { none, plain, gated, channel_mix, matrix };
/// Cell of a recurrent layer, which computes the next state h from the input and the last state.
/// `rnn`: tanh of the sum of both GEMMs; `lstm`: a memory cell and three gates (Hochreiter &
/// Schmidhuber 1997, doi 10.1162/neco.1997.9.8.1735, with the forget gate of Gers et al. 2000);
/// `gru`: two gates (Cho et al. 2014, arXiv 1406.1078). Gates and their order follow torch.nn.RNN,
/// LSTM and GRU.
enum class RecurrentCell { rnn, lstm, gru };

/// Router scores to expert weights: softmax over all experts, sigmoid of each, softmax over the
/// selected ones, sigmoid of each selected one (Kolibri 1), PhiMoE's SparseMixer (arXiv 2409.12136;
/// 2 experts only), or √softplus of each (DeepSeek-V4).
enum class RouterScoring {
  softmax,
  sigmoid,
  softmax_of_chosen,
  sigmoid_of_chosen,
  sparse_mixer,
  sqrt_softplus,
};
/// Rule that selects experts: the best scores, or a stored table by token id (DeepSeek-V4), in
/// which case scores only weight them.
enum class ExpertSelection { best_scores, token_table };
/// Rank of a group of experts in group-limited routing: its best score, or the sum of its two best.
enum class GroupScore { best, two_best };
/// Operand that a selected expert's weight multiplies.
enum class ExpertWeighting { output, input };

/// Mixture of experts: each token is routed to a few of many feed-forward networks.
struct ExpertsSpec {
  std::int64_t num_experts = 0;
  std::int64_t num_experts_per_tok = 0;
  std::int64_t intermediate_size = 0;
  RouterScoring scoring = RouterScoring::softmax;
  bool normalise = false;     ///< divides the selected weights by their sum
  double scaling_factor = 1;  ///< multiplies the final weights
  bool router_bias = false;
  bool correction_bias = false;  ///< a buffer added to the scores for top-k only
  bool correction_bias_is_parameter = false;
  std::int64_t num_groups = 1;
  std::int64_t chosen_groups = 1;
  GroupScore group_score = GroupScore::best;
  ExpertWeighting weighting = ExpertWeighting::output;
  bool bias = false;                          ///< of the experts' projections
  double jitter_eps = 0.01;                   ///< sparse_mixer
  std::int64_t shared_intermediate_size = 0;  ///< inner width of the shared experts; 0: none
  bool shared_gate = false;                   ///< multiplies their output by sigmoid(w·x)
  /// Width that the experts read and write, between two projections of the hidden states (Nemotron
  /// 3); 0: hidden_size.
  std::int64_t latent_size = 0;
  std::optional<NormSpec> latent_norm{};  ///< of the experts' sum in that width (Kimi K3)
  /// The dense network runs too, and both are added, each after a norm of its own; router and
  /// experts read the residual stream (Gemma 4).
  bool beside_dense = false;
  bool output_norm = false;  ///< the stack's norm of the sum of routed and shared experts (A.X K1)
  bool sum_bias = false;     ///< one vector, added to the weighted sum of experts (Nomic Embed v2)
  ExpertSelection selection = ExpertSelection::best_scores;
  std::optional<ActivationKind> activation{};  ///< of routed experts where shared ones differ
  double activation_limit = 0;                 ///< of routed experts; see FfnSpec
};

/// Caps of both factors of a gated activation (SiTU, Kimi K3): c(gate, cap)·sigmoid(gate)·c(up,
/// cap), where c(x, cap) = cap·tanh(x / cap). An up of cap 0 stays as it is.
struct TanhCaps {
  double gate = 1;
  double up = 0;
};

struct FfnSpec {
  FfnKind kind = FfnKind::none;
  std::int64_t intermediate_size = 0;
  ActivationKind activation = ActivationKind::gelu;
  bool bias = false;
  std::optional<bool> down_bias{};       ///< where it differs from `bias` (JinaBERT)
  std::optional<ExpertsSpec> experts{};  ///< in place of one network
  bool receptance = true;                ///< channel mix: the gate (none in RWKV-7)
  double gate_multiplier = 1;            ///< of the gate before its activation (FalconH1)
  double output_multiplier = 1;
  double residual_multiplier = 1;  ///< of the residual that the output is added to (MiniMax)
  /// Standard deviations above a row's mean below which gates become 0 (Gemma 3n).
  std::optional<double> gate_cutoff{};
  /// Limit of activated gates from above, and of what they multiply on both sides (Step 3.5); 0:
  /// none.
  double activation_limit = 0;
  std::optional<NormSpec> inner_norm{};  ///< of what the down projection reads (BitNet)
  std::optional<TanhCaps> tanh_caps{};   ///< of a gated network whose activation is SiLU
  std::int64_t norm_gate_rank = 0;       ///< see AttentionSpec

  /// The dense network of inner width `size`, without experts.
  [[nodiscard]] FfnSpec dense(std::int64_t size) const {
    FfnSpec network = *this;
    network.intermediate_size = size;
    network.experts.reset();
    return network;
  }
};

/// Dropout probabilities in training; 0: no dropout and no mask.
struct DropoutSpec {
  double embedding = 0;
  double attention_probs = 0;
  double attention_output = 0;
  double ffn_activation = 0;
  double ffn_output = 0;
  double final = 0;  ///< after the final norm of a stack
};

/// Gates of a cell: as many GEMMs with the input and as many with the state.
[[nodiscard]] constexpr std::int64_t gates_of(RecurrentCell cell) noexcept {
  switch (cell) {
    case RecurrentCell::rnn:
      return 1;
    case RecurrentCell::gru:
      return 3;  // reset, update, new
    case RecurrentCell::lstm:
      break;
  }
  return 4;  // input, forget, cell, output
}

/// State vectors that a cell carries to the next position: h, and an LSTM's memory c.
[[nodiscard]] constexpr std::int64_t states_of(RecurrentCell cell) noexcept {
  return cell == RecurrentCell::lstm ? 2 : 1;
}

/// A unidirectional recurrent layer.
struct RecurrentSpec {
  RecurrentCell cell = RecurrentCell::rnn;
  bool bias = true;  ///< of both the input and the state GEMMs
};

/// A convolution over positions, dense over channels, zero-padded. Output position i reads
/// `kernel_size` input positions `dilation` apart; i is the last of them in a causal convolution,
/// the middle one otherwise.
struct ConvolutionSpec {
  std::int64_t kernel_size = 0;
  std::int64_t dilation = 1;
  bool causal = false;
  bool bias = true;
  std::optional<ActivationKind> activation{};  ///< after it
  bool operator==(const ConvolutionSpec&) const = default;
};

/// Streams to hidden states behind the last layer: a sum by trained functions of the streams, or
/// their mean (GLM-5.3).
enum class StreamOutput { weighted, mean };

/// Hyper-connections (arXiv 2409.19606): `streams` residual streams instead of one. Before a
/// sublayer they are summed to its input; after it they are mixed by a matrix and its output is
/// added to each. All weights are functions of the streams; the matrix is made doubly stochastic by
/// `sinkhorn_iterations` normalisations of its rows and columns (DeepSeek-V4). Independent streams
/// are not mixed (Hunyuan V4).
struct HyperConnectionSpec {
  std::int64_t streams = 0;
  std::int64_t sinkhorn_iterations = 0;  ///< 0: independent streams
  double eps = 1e-6;          ///< added to the weights of the sum and to what normalises the matrix
  double addition_scale = 2;  ///< of the sigmoids that weigh a sublayer's output
  double addition_eps = 0;    ///< added to those weights
  StreamOutput output = StreamOutput::weighted;

  [[nodiscard]] bool mixes() const noexcept { return sinkhorn_iterations > 0; }
  /// Weights of one token: a sum before and an addition after for each stream, and the matrix.
  [[nodiscard]] std::int64_t weights() const noexcept {
    return (2 + (mixes() ? streams : 0)) * streams;
  }
};

/// Alternating updates (AltUp, arXiv 2301.13310): `inputs` residual streams instead of one. Every
/// layer predicts each from all of them, computes on one, and corrects all by its difference from
/// the prediction (Gemma 3n).
struct AltUpSpec {
  std::int64_t inputs = 0;
  std::int64_t active = 0;    ///< the stream that layers compute on
  bool scales_output = true;  ///< a trained vector scales the corrected stream
};

/// Choices that may differ between the layers of one stack.
struct LayerVariant {
  AttentionSpec self_attention;
  FfnSpec ffn;
  std::optional<ConvolutionSpec> convolution{};
};

/// Blocks of attention and feed-forward network whose weights several layers share (Zamba2, arXiv
/// 2411.15242). A block reads the hidden states beside the embeddings, and its output, projected by
/// a matrix of each use, is added to the input of the layer's mixer.
struct SharedBlockSpec {
  AttentionSpec attention;
  FfnSpec ffn;
  std::int64_t num_blocks = 1;         ///< use i of a block is of block i mod num_blocks
  std::vector<std::int64_t> layers{};  ///< that use a block
  std::int64_t adapter_rank = 0;       ///< of each use's additions to the gate and up projections
  bool adapts_attention = false;       ///< likewise to the queries, keys and values
};

/// Linear layers whose inputs and outputs are clamped to stored bounds of each layer, or none.
enum class LayerBounds { none, stored };

/// Keys of a Conformer's attention. `scaled`: times ln(1 + e)/ln 2, and a row sees `earlier` keys,
/// its own among them (Gemma 4). `plain`: it sees `earlier` keys beside its own (Gemma 3n).
enum class ConformerKeys { scaled, plain };

/// Conformer layers (arXiv 2005.08100, with the attention of USM, arXiv 2303.01037, section 2.2.2):
/// a network, attention of chunks of rows, a gated causal depthwise convolution and a network. Each
/// network, and attention, has a norm before and behind it; a norm ends the layer.
struct ConformerSpec {
  std::int64_t chunk = 0;    ///< rows that read one range of keys
  std::int64_t earlier = 0;  ///< keys before a chunk that it reads
  std::int64_t later = 0;    ///< keys behind a chunk; a row sees one fewer behind it
  std::int64_t kernel_size = 0;
  NormSpec convolution_norm;    ///< before the convolution, and behind its depthwise part
  double network_factor = 0.5;  ///< of the output of either network
  double clip = 0;  ///< clamps what enters and leaves a sublayer to ±clip (gradient_clipping)
  LayerBounds bounds = LayerBounds::none;
  ConformerKeys keys = ConformerKeys::scaled;

  /// Relative positions with a key of their own, of the earliest key down to a row's own.
  [[nodiscard]] std::int64_t positions() const noexcept {
    switch (keys) {
      case ConformerKeys::scaled:
        return (chunk + earlier + later) / 2 + 1;
      case ConformerKeys::plain:
        break;
    }
    return earlier + 1;
  }
};

/// A stack of layers: all equal, or a sequence of variants.
struct StackSpec {
  std::int64_t num_layers = 0;
  AttentionSpec self_attention;
  std::optional<AttentionSpec> cross_attention{};
  FfnSpec ffn;
  NormPlacement norm_placement = NormPlacement::pre;
  ResidualKind residual = ResidualKind::sequential;
  double residual_multiplier = 1;  ///< scales each sublayer's output
  NormSpec norm;
  std::optional<NormSpec> output_norm{};  ///< behind a sublayer, where it differs (Muse Glimmer)
  std::optional<NormSpec> final_norm{};
  bool layer_scalar = false;  ///< a stored number multiplies each layer's output (Gemma 4)
  DropoutSpec dropout;
  std::vector<LayerVariant> variants{};  ///< 1, 2, …; variant 0 is `self_attention` and `ffn`
  std::vector<std::size_t> variant_of_layer{};  ///< empty: all layers are variant 0
  /// Distinct sets of layer weights where layers share them (ALBERT).
  std::optional<std::int64_t> num_weight_groups{};
  /// Layers in sequence that a set has weights for; a multiple of them shares the set.
  std::int64_t layers_of_group = 1;
  /// Multiplies each sublayer's output by a trained weight per channel (LayerScale, arXiv
  /// 2103.17239, section 2.1).
  bool layer_scale = false;
  /// After the first layer: norm(x + activation(convolution of the stack's input)) (DeBERTa v2).
  std::optional<ConvolutionSpec> input_convolution{};
  // In place of attention, for models of a single layer kind:
  std::optional<RecurrentSpec> recurrent{};
  std::optional<ConvolutionSpec> convolution{};  ///< of variant 0
  std::optional<HyperConnectionSpec> hyper_connections{};
  std::optional<AltUpSpec> altup{};
  std::optional<SharedBlockSpec> shared_block{};
  /// Rank of a low-rank residual beside attention (LAuReL, arXiv 2411.07501); 0: none.
  std::int64_t laurel_rank = 0;
  /// Layers of this kind in place of attention and network, whose sizes are still the stack's.
  std::optional<ConformerSpec> conformer{};

  /// Layers of a block of attention residuals (arXiv 2603.15031): each sublayer reads a weighted
  /// sum of the hidden states in front of earlier blocks and of the block's own sum (Kimi K3); 0:
  /// none.
  std::int64_t residual_block = 0;

  /// Runs whole sequences in one pass whatever the mask, and caches nothing (CLIP's texts).
  bool whole_sequences = false;

  /// True if no position sees a later one, so that a pass can continue from cached state.
  [[nodiscard]] bool causal() const {
    if (whole_sequences) return false;
    if (recurrent) return true;
    return convolution ? convolution->causal : self_attention.causal;
  }
  [[nodiscard]] std::size_t variant(std::int64_t layer) const {
    return variant_of_layer.empty() ? 0 : variant_of_layer.at(static_cast<std::size_t>(layer));
  }
  [[nodiscard]] const AttentionSpec& attention_of(std::size_t variant) const {
    return variant == 0 ? self_attention : variants.at(variant - 1).self_attention;
  }
  [[nodiscard]] const FfnSpec& ffn_of(std::size_t variant) const {
    return variant == 0 ? ffn : variants.at(variant - 1).ffn;
  }
  [[nodiscard]] const std::optional<ConvolutionSpec>& convolution_of(std::size_t variant) const {
    return variant == 0 ? convolution : variants.at(variant - 1).convolution;
  }

  // Special members are compiled once (src/base/special_members.cpp).
  StackSpec();
  StackSpec(const StackSpec& other);
  StackSpec(StackSpec&& other) noexcept;
  StackSpec& operator=(const StackSpec& other);
  StackSpec& operator=(StackSpec&& other) noexcept;
  ~StackSpec();
};

}  // namespace headroom
