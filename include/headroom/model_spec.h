// ModelSpec: a model as independent choices. A family (bert, llama, …) is a short function from
// config.json to a ModelSpec; one builder turns any ModelSpec into a graph.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "headroom/attention_spec.h"
#include "headroom/storage_rules.h"

namespace headroom {

/// Placement of a layer's norms. `pre`: x + f(norm(x)); `post`: norm(x + f(x)); `sandwich`:
/// x + norm(f(norm(x))) (Gemma 2); `output`: x + norm(f(x)) (OLMo 2); `residual`: n + f(n) with
/// n = norm(x) (MiniMax).
enum class NormPlacement { pre, post, none, sandwich, output, residual };
/// Order of attention f and feed-forward network g. Sequential: x' = x + f(x), y = x' + g(x').
/// Parallel: x + f(norm(x)) + g(norm(x)), with one norm for both or one each.
enum class ResidualKind { sequential, parallel_one_norm, parallel_two_norms };
/// Plain: down(act(up(x))). Gated: down(act(gate(x)) · up(x)).
enum class FfnKind { none, plain, gated };
/// Cell of a recurrent layer, which computes the next state h from the input and the last state.
/// `rnn`: tanh of the sum of both GEMMs; `lstm`: a memory cell and three gates (Hochreiter &
/// Schmidhuber 1997, doi 10.1162/neco.1997.9.8.1735, with the forget gate of Gers et al. 2000);
/// `gru`: two gates (Cho et al. 2014, arXiv 1406.1078). Gates and their order follow torch.nn.RNN,
/// LSTM and GRU.
enum class RecurrentCell { rnn, lstm, gru };
/// Position encoding. MPNet adds a table of positions to the embeddings and a table of relative
/// position biases to the scores.
enum class PositionKind {
  none,
  learned,
  sinusoidal,
  rotary,
  relative_bias,
  learned_and_relative_bias,
};
enum class InputKind { tokens, patches, audio, waveform, hidden_states };
enum class WeightSharing { separate, shared };

/// Router scores to expert weights: softmax over all experts, sigmoid of each, softmax over the
/// selected ones, PhiMoE's SparseMixer (arXiv 2409.12136; 2 experts only), or √softplus of each
/// (DeepSeek-V4).
enum class RouterScoring { softmax, sigmoid, softmax_of_chosen, sparse_mixer, sqrt_softplus };
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
  /// The dense network runs too, and both are added, each after a norm of its own; router and
  /// experts read the residual stream (Gemma 4).
  bool beside_dense = false;
  ExpertSelection selection = ExpertSelection::best_scores;
  std::optional<ActivationKind> activation{};  ///< of routed experts where shared ones differ
};

struct FfnSpec {
  FfnKind kind = FfnKind::none;
  std::int64_t intermediate_size = 0;
  ActivationKind activation = ActivationKind::gelu;
  bool bias = false;
  std::optional<ExpertsSpec> experts{};  ///< in place of one network
  double gate_multiplier = 1;            ///< of the gate before its activation (FalconH1)
  double output_multiplier = 1;
  double residual_multiplier = 1;  ///< of the residual that the output is added to (MiniMax)

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

/// Hyper-connections (arXiv 2409.19606): `streams` residual streams instead of one. Before a
/// sublayer they are summed to its input; after it they are mixed by a matrix and its output is
/// added to each. All weights are functions of the streams; the matrix is made doubly stochastic by
/// `sinkhorn_iterations` normalisations of its rows and columns (DeepSeek-V4).
struct HyperConnectionSpec {
  std::int64_t streams = 0;
  std::int64_t sinkhorn_iterations = 0;

  /// Weights of one token: a sum before and an addition after for each stream, and the matrix.
  [[nodiscard]] std::int64_t weights() const noexcept { return (2 + streams) * streams; }
};

/// Choices that may differ between the layers of one stack.
struct LayerVariant {
  AttentionSpec self_attention;
  FfnSpec ffn;
  std::optional<ConvolutionSpec> convolution{};
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
  std::optional<NormSpec> final_norm{};
  bool layer_scalar = false;  ///< a stored number multiplies each layer's output (Gemma 4)
  DropoutSpec dropout;
  std::vector<LayerVariant> variants{};  ///< 1, 2, …; variant 0 is `self_attention` and `ffn`
  std::vector<std::size_t> variant_of_layer{};  ///< empty: all layers are variant 0
  /// Distinct sets of layer weights where layers share them (ALBERT).
  std::optional<std::int64_t> num_weight_groups{};
  /// Multiplies each sublayer's output by a trained weight per channel (LayerScale, arXiv
  /// 2103.17239, section 2.1).
  bool layer_scale = false;
  /// After the first layer: norm(x + activation(convolution of the stack's input)) (DeBERTa v2).
  std::optional<ConvolutionSpec> input_convolution{};
  // In place of attention, for models of a single layer kind:
  std::optional<RecurrentSpec> recurrent{};
  std::optional<ConvolutionSpec> convolution{};  ///< of variant 0
  std::optional<HyperConnectionSpec> hyper_connections{};

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
};

/// Contents of a position table: trained rows, or sines in the first half of each row and cosines
/// in the second; both are stored and counted. `tensor2tensor`: such halves at frequencies from 1
/// to 1/10000 inclusive, computed and not stored; of sinusoidal positions only (fairseq, M2M-100).
enum class PositionTable { trained, sinusoidal_halves, tensor2tensor };

/// Layers that share one table of relative position biases: all of a stack (T5), or none (UMT5).
enum class RelativeBiasSharing { stack, layer };

struct PositionSpec {
  PositionKind kind = PositionKind::none;
  std::int64_t max_position_embeddings = 0;  ///< rows of a learned table, or trained context
  std::int64_t offset = 0;  ///< unused leading rows (RoBERTa: pad_token_id + 1; OPT: 2)
  PositionTable table = PositionTable::trained;
  bool skips_padding = false;     ///< padding tokens advance no position (RoBERTa)
  std::int64_t num_buckets = 0;   ///< relative bias only
  std::int64_t max_distance = 0;  ///< relative bias only
  RelativeBiasSharing bias_sharing = RelativeBiasSharing::stack;  ///< relative bias only
  RopeSpec rope;                                                  ///< rotary only
};

/// Trained tokens before the patches: a class token (ViT), or a class and a distillation token
/// (DeiT, arXiv 2012.12877, section 3).
enum class PrefixTokens { class_token, class_and_distillation };

/// Positions of images of another size than the config's: refused, or interpolated bicubically from
/// the table (DINOv2).
enum class PositionInterpolation { none, bicubic };

struct ImageSpec {
  std::int64_t image_size = 0;
  std::int64_t patch_size = 0;
  std::int64_t num_channels = 0;
  PrefixTokens prefix = PrefixTokens::class_token;
  PositionInterpolation interpolation = PositionInterpolation::none;

  [[nodiscard]] std::int64_t num_patches() const noexcept {
    return (image_size / patch_size) * (image_size / patch_size);
  }
  [[nodiscard]] std::int64_t prefix_tokens() const noexcept {
    return prefix == PrefixTokens::class_token ? 1 : 2;
  }
  /// Sequence length of one image of the config's size.
  [[nodiscard]] std::int64_t num_tokens() const noexcept { return num_patches() + prefix_tokens(); }
};

/// Audio as a log-mel spectrogram; two convolutions of width 3 halve its length (Whisper).
struct AudioSpec {
  std::int64_t num_mel_bins = 0;
  ActivationKind activation = ActivationKind::gelu;
};

/// Norms of a waveform's convolutions: a group norm of each channel after the first, or a layer
/// norm after each.
enum class WaveformNorm { first_group, every_layer };

/// A strided convolution without padding, dense over channels.
struct WaveformLayer {
  std::int64_t channels = 0;
  std::int64_t kernel_size = 0;
  std::int64_t stride = 1;
};

/// Audio as samples: convolutions, each with an activation, a projection to the hidden size, and
/// positions from a grouped convolution with weight normalisation (wav2vec 2.0, arXiv 2006.11477,
/// sections 2 and 4.2).
struct WaveformSpec {
  std::vector<WaveformLayer> layers{};
  bool bias = false;
  WaveformNorm norm = WaveformNorm::first_group;
  ActivationKind activation = ActivationKind::gelu;
  bool projection_norm = true;
  std::int64_t position_kernel_size = 0;
  std::int64_t position_groups = 1;
};

/// Factor of the word embeddings. `token_dropout` (ESM): rows of mask tokens are 0; the others are
/// multiplied by (1 - 0.12) / (1 - share of mask tokens), since training masks 12 %.
enum class EmbeddingScale { none, sqrt_hidden_size, fixed, token_dropout };

/// Per-layer embeddings: every layer adds a gated projection of a token's own vector for this layer
/// (Gemma 3n).
struct PerLayerInputSpec {
  std::int64_t vocab_size = 0;
  std::int64_t hidden_size = 0;  ///< width of a layer's vector
};

/// Input embedding.
struct EmbeddingSpec {
  InputKind input = InputKind::tokens;
  std::int64_t vocab_size = 0;
  std::int64_t type_vocab_size = 0;
  std::optional<NormSpec> norm{};
  EmbeddingScale scale = EmbeddingScale::none;
  double fixed_scale = 1;           ///< used when `scale` is fixed
  std::int64_t mask_token_id = 0;   ///< used when `scale` is token_dropout
  std::int64_t embedding_size = 0;  ///< word width before a projection; 0: hidden_size
  bool projection_bias = false;
  /// Projects the word embedding before the position is added (OPT), not after.
  bool projects_before_positions = false;
  std::optional<ImageSpec> image{};
  std::optional<AudioSpec> audio{};  ///< of the encoder, in an encoder-decoder
  std::optional<WaveformSpec> waveform{};
  std::optional<PerLayerInputSpec> per_layer{};
};

/// Language-model head: projection to the vocabulary.
struct LanguageModelHeadSpec {
  WeightSharing weight = WeightSharing::separate;  ///< shared: tied to the word embedding
  bool bias = false;
  bool scale_by_inverse_sqrt_hidden = false;  ///< T5 v1.0 scales the decoder's output first
  /// BERT-like: dense, activation and norm before the projection.
  std::optional<ActivationKind> transform{};
  bool transform_bias = true;
  std::optional<NormSpec> transform_norm{};  ///< default: the embedding's norm
  bool bias_is_buffer = false;               ///< the bias is a buffer, not a parameter (BART)
  double logit_scale = 1;
  double soft_cap = 0;          ///< logits become cap·tanh(logits / cap); 0: no cap
  bool float32_logits = false;  ///< the reference code casts logits to float32 before its loss
};

/// Hidden states that a classifier reads: of one token, of every token, the mean of all tokens, or
/// the first token followed by the mean of the others (DINOv2).
enum class ClassifierInput {
  pooled_token,
  first_token,
  last_token,
  every_token,
  mean_token,
  first_and_mean,
  first_two_tokens,  ///< DeiT with teacher: a classifier each of two tokens; the mean of both
};

/// Classification head: projection to labels.
struct ClassifierSpec {
  ClassifierInput input = ClassifierInput::pooled_token;
  std::int64_t num_labels = 0;
  bool bias = true;
  std::optional<ActivationKind> dense{};  ///< a dense d × d layer with this activation comes first
  bool dense_bias = true;
  std::optional<NormSpec> dense_norm{};  ///< after that activation
  double dense_dropout = 0;              ///< before that layer
  bool scores = false;  ///< one label, without a label dimension (ELECTRA's discriminator)
  double dropout = 0;   ///< before the projection
};

struct HeadSpec {
  bool projects_out = false;  ///< hidden_size -> embedding_size first, without bias (OPT-350m)
  bool pooler = false;        ///< tanh(dense(hidden state of the first token))
  std::optional<LanguageModelHeadSpec> language_model{};
  std::optional<ClassifierSpec> classifier{};
};

/// Category that parameters are summed by.
enum class WeightRole {
  embedding,
  relative_position_bias,
  attention,
  recurrent,
  convolution,
  mlp,
  norm,
  head,
  projector,  ///< from a vision tower to the text model
};

/// Part of a multimodal model that a weight belongs to. The encoder of a speech model is audio, an
/// image classifier is vision; projectors lead from a tower to the text model; an adapter (LoRA) is
/// stored beside its base model.
enum class ModelPart { text, vision, audio, projector, adapter };

/// Loading of a weight without an operator: not loaded, since its part is not run (a tower), or
/// loaded with the model, though this class's forward pass does not read it.
enum class CountedUse { part_not_run, loaded };

/// A weight that is counted, but has no operator in the graph (a tower's, an adapter's).
struct CountedWeight {
  std::string path;
  std::vector<std::int64_t> shape;
  WeightRole role = WeightRole::embedding;
  std::int64_t repeat = 1;
  ModelPart part = ModelPart::vision;
  CountedUse use = CountedUse::part_not_run;
};

/// Stacks of the model, or the kind of a single-layer model. Decides the legal phases and the words
/// on screen.
enum class ModelKind {
  encoder,
  decoder,
  encoder_decoder,
  attention_layer,
  cross_attention_layer,
  recurrent_layer,
  convolution_layer,
  feed_forward_layer,
};

struct ModelSpec {
  std::string name;
  std::string model_type;    ///< the family, as in config.json
  std::string architecture;  ///< the class that decides the head, as in `architectures`
  std::string torch_dtype;   ///< type of the stored weights; empty if unspecified
  ModelKind kind = ModelKind::encoder;
  std::int64_t hidden_size = 0;
  EmbeddingSpec embedding;
  PositionSpec position;
  std::optional<PositionSpec> encoder_position{};  ///< where it differs from the decoder's
  std::optional<StackSpec> encoder{};
  std::optional<StackSpec> decoder{};
  WeightSharing encoder_decoder_embedding = WeightSharing::shared;
  HeadSpec head;
  std::vector<CountedWeight> counted_only;
  /// Keys of the config that no reader knows. Their names suggest no size and no operator.
  std::vector<std::string> unread_keys{};
  /// Sizes that the config leaves out and the reader took from the model's class, in words.
  std::vector<std::string> assumptions{};
  std::string not_run;  ///< reason why the model is counted but cannot be run; empty: it can
  /// Placeholders of images and sound in the token ids, which only the towers can fill.
  std::vector<std::int64_t> tower_tokens{};
  std::string quantization;  ///< quantisation method of the published weights; empty: none
  WeightStorage storage;     ///< rules of that method, and what else it states

  /// The stack whose sequence length is `seq_len`: the decoder, else the encoder.
  [[nodiscard]] const StackSpec& main_stack() const { return decoder ? *decoder : *encoder; }

  /// True if the model reads a second sequence of `enc_seq_len`: encoder tokens, or the hidden
  /// states that a cross-attention layer attends to.
  [[nodiscard]] bool reads_two_sequences() const {
    return kind == ModelKind::encoder_decoder || kind == ModelKind::cross_attention_layer;
  }

  /// True for bare layers without norms, residuals, embedding or head.
  [[nodiscard]] bool is_layer() const {
    return kind != ModelKind::encoder && kind != ModelKind::decoder &&
           kind != ModelKind::encoder_decoder;
  }

  /// True if the main stack's layers have attention.
  [[nodiscard]] bool has_attention() const {
    return main_stack().self_attention.num_attention_heads > 0;
  }

  /// The encoder's positions; by default those of the main stack.
  [[nodiscard]] const PositionSpec& encoder_positions() const {
    return encoder_position ? *encoder_position : position;
  }
};

}  // namespace headroom
