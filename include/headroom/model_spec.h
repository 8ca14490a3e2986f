// ModelSpec: a model as independent choices. A family (bert, llama, …) is a short function from
// config.json to a ModelSpec; one builder turns any ModelSpec into a graph.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "headroom/attention_spec.h"
#include "headroom/expr.h"
#include "headroom/input_spec.h"
#include "headroom/layer_spec.h"
#include "headroom/projector_spec.h"
#include "headroom/weight_spec.h"

namespace headroom {

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
/// Ids whose embeddings are rows of a table of their own, behind a norm, a projection and a norm
/// without a weight (Gemma 3n's embedders of images and sound). Paths of counted weights, and of
/// the projection.
struct HardTokensSpec {
  std::int64_t first_id = 0;
  std::int64_t count = 0;
  std::int64_t width = 0;
  std::string table;
  std::string norm;
  std::string projection;
  double eps = 0;
};

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
  /// Of patches (GLM-4.1V), or of a decoder's tokens (Blenderbot's small models).
  bool norm_before_positions = false;
  std::optional<ImageSpec> image{};
  std::optional<AudioSpec> audio{};  ///< of the encoder, in an encoder-decoder
  std::optional<WaveformSpec> waveform{};
  std::optional<PerLayerInputSpec> per_layer{};
  /// Token that is looked up for placeholders of images and sound (Gemma 4: padding).
  std::optional<std::int64_t> placeholder_id{};
  std::vector<HardTokensSpec> hard_tokens{};
};

/// Language-model head: projection to the vocabulary.
struct LanguageModelHeadSpec {
  WeightSharing weight = WeightSharing::separate;  ///< shared: tied to the word embedding
  bool shared_if_absent = false;  ///< tied where the files of the weights lack it (T5)
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
  /// The class divides each stored row of the weight by its length before use (Baichuan 2); files
  /// in GGUF hold the quotients.
  bool unit_rows = false;
};

/// Hidden states that a classifier reads: of one token, of every token, the mean of all tokens, or
/// the first token followed by the mean of the others (DINOv2). `last_token`: every token is
/// classified, and the last one that is not padding counts. `end_token`: the last
/// end-of-sequence token.
enum class ClassifierInput {
  pooled_token,
  first_token,
  last_token,
  end_token,
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
  bool spans = false;   ///< two labels: the first and the last token of an answer
  std::optional<std::int64_t> token_id{};  ///< of padding (last_token) or the end (end_token)
  /// Width of a layer that projects every token before the mean (wav2vec 2.0); 0: none.
  std::int64_t projection_size = 0;
  double dropout = 0;  ///< before the projection
};

/// Pooling of a sequence to one vector: its first, second or last token, the mean of its tokens,
/// the first token followed by the mean of the others, the first or last token with a given id, the
/// last token with another id, or the first with the greatest id.
enum class TokenPooling {
  first,
  second,
  last,
  mean,
  first_and_mean,
  first_of_id,
  last_of_id,
  last_of_other_id,
  greatest_id,
};

/// Comparison of texts with images (CLIP, arXiv 2103.00020, figure 3): each text and each image
/// becomes one vector of length 1, projected from its encoder's width. Logits are the products of
/// both, times e^(trained scale), plus a trained bias (SigLIP, arXiv 2303.15343, algorithm 1).
struct SimilarityHeadSpec {
  TokenPooling pooling = TokenPooling::last;  ///< of the text
  std::int64_t token_id = 0;                  ///< used when `pooling` is first_of_id
  std::int64_t projection_dim = 0;            ///< width of both vectors
  bool projection_bias = false;               ///< of the text's projection
  bool logit_bias = false;
};

struct HeadSpec {
  bool projects_out = false;  ///< hidden_size -> embedding_size first, without bias (OPT-350m)
  bool pooler = false;        ///< activation(dense(hidden state of the first token))
  ActivationKind pooler_activation = ActivationKind::tanh;
  std::int64_t pooler_size = 0;      ///< output width; 0: hidden_size
  bool first_row_is_pooled = false;  ///< the pooled output is the normed first row (DINOv2)
  std::optional<LanguageModelHeadSpec> language_model{};
  std::optional<ClassifierSpec> classifier{};
  std::optional<SimilarityHeadSpec> similarity{};
};

/// Stacks of the model, or the kind of a single-layer model. Decides the legal phases and the words
/// on screen.
enum class ModelKind {
  encoder,
  decoder,
  encoder_decoder,
  denoiser,  ///< a diffusion transformer
  attention_layer,
  cross_attention_layer,
  recurrent_layer,
  convolution_layer,
  feed_forward_layer,
};

/// An image as the norm of its class token (CLIP).
struct ClassTokenPooling {
  NormSpec norm;
};

/// An image as the attention of one trained query, the probe, to all its rows, plus a feed-forward
/// network of that result's norm (SigLIP: the MAP head of arXiv 2106.04560, section 3.3).
struct ProbePooling {
  AttentionSpec attention;
  FfnSpec ffn;
  NormSpec norm;
};

using ImagePooling = std::variant<ClassTokenPooling, ProbePooling>;

/// How a preprocessor prepares an image for a tower: resized to the tower's size; in its own size,
/// completed to whole blocks of patches (Pixtral); or cut into tiles of the tower's size, followed
/// by the whole image: tiles in the arrangement nearest its aspect ratio (InternVL), or after its
/// longer side is scaled to 4 tiles (Idefics3). `rounded`: in its own size, each side rounded to
/// whole blocks of patches (Qwen2-VL, within the limits of its preprocessor). `tiles_of_list`: the
/// whole image, followed by the tiles of the best size of a list (LLaVA-NeXT), by as many as its
/// longer side can fill without more than `most_tiles` (`tiles_of_most_columns`, Phi-3 Vision), or
/// by those that it fills in its own size (`tiles_of_own_size`, Phi-4 multimodal).
/// `tiles_of_best_fit`: tiles of the canvas that the image fills with the least scaling, followed
/// by the whole (Llama 4). `most_patches`: scaled to the most patches that the table of positions
/// has, in about its own aspect ratio (SigLIP 2). `rounded_or_tiles`: as `rounded`; an image of
/// more than twice the most pixels is cut into tiles too, which come first (LFM2-VL).
/// `nearest_aspect`: in its own size or scaled to the most pixels; of the grids whose sides are
/// rounded down or up, the one nearest its aspect ratio (Muse Glimmer).
/// `completed`: in its own size or scaled to the fewest or the most pixels, both sides completed to
/// whole blocks of patches (GLM-5.3).
enum class ImageRule {
  resized,
  native,
  rounded,
  rounded_or_tiles,
  tiles_by_aspect,
  tiles_of_longer_side,
  tiles_of_list,
  tiles_of_best_fit,
  tiles_of_most_columns,
  tiles_of_own_size,
  most_patches,
  nearest_aspect,
  completed,
};

/// Fewest and most pixels that a preprocessor leaves an image (preprocessor_config.json).
struct PixelLimits {
  std::int64_t least = 0;
  std::int64_t most = 0;
};

/// Sizes that an image's tiles may fill, in pixels (image_grid_pinpoints), and the most tiles whose
/// patches are kept: those of more are interpolated to as many (LLaVA-OneVision); 0: any number.
struct TileList {
  std::vector<std::int64_t> heights{};
  std::vector<std::int64_t> widths{};
  std::int64_t most_kept = 0;
};

/// Visual features beside the visual tokens: the tower's hidden states after `layer` layers,
/// projected, are added to the visual tokens after a layer of the text model (DeepStack, arXiv
/// 2406.04334, section 3.2).
struct DeepstackSpec {
  std::int64_t layer = 0;
  std::vector<ProjectorStep> steps{};
};

/// An image encoder whose outputs, projected, replace the embeddings of placeholder tokens; or,
/// with `pooling`, are one vector per image, which a similarity head compares with texts.
struct TowerSpec {
  std::int64_t hidden_size = 0;
  EmbeddingSpec embedding;
  PositionSpec position;
  StackSpec stack;
  std::optional<ImagePooling> pooling{};
  ProjectorSpec projector;
  ImageRule rule = ImageRule::resized;
  std::optional<PixelLimits> pixel_limits{};  ///< when `rule` is rounded, with tiles or native
  std::int64_t most_tiles = 0;             ///< of an image, besides the whole; 0: those of the rule
  TileList tiles{};                        ///< used when `rule` is tiles_of_list
  std::vector<DeepstackSpec> deepstack{};  ///< after the text model's first, second, … layer

  // Special members are compiled once (src/base/special_members.cpp).
  TowerSpec();
  TowerSpec(const TowerSpec& other);
  TowerSpec(TowerSpec&& other) noexcept;
  TowerSpec& operator=(const TowerSpec& other);
  TowerSpec& operator=(TowerSpec&& other) noexcept;
  ~TowerSpec();
};

/// How a clip is cut into segments: completed with silence to whole ones (Voxtral), whose rows the
/// text model may not see (`masked`, Qwen2-Audio: a SilenceStep drops them), or its last one may be
/// shorter (Qwen2.5-Omni and Qwen3-Omni): the convolutions read it with silence behind it, and its
/// rows of sound go on.
enum class ClipRule { completed, masked, shorter_last };

/// An audio encoder whose outputs, projected, replace the embeddings of placeholder tokens. A clip
/// is cut into segments of equal length; each is one sequence of the encoder, or its rows see those
/// of some neighbours.
struct AudioTowerSpec {
  std::int64_t hidden_size = 0;
  EmbeddingSpec embedding;
  PositionSpec position;
  StackSpec stack;
  std::int64_t segment_frames = 0;     ///< of the spectrogram
  std::int64_t segment_positions = 0;  ///< of the encoder
  /// Segments of a clip whose rows see each other; 0: a segment is a sequence of its own, and the
  /// last one is whole.
  std::int64_t attended_segments = 0;
  ClipRule rule = ClipRule::completed;
  std::vector<ProjectorStep> projector{};
  /// Placeholders of every clip, of which those behind its tokens read the embedding of the last id
  /// (Gemma 3n); 0: as many as tokens.
  std::int64_t padded_tokens = 0;

  /// Rows of the encoder that become one audio token.
  [[nodiscard]] std::int64_t grouped_rows() const {
    std::int64_t rows = 1;
    for (const ProjectorStep& step : projector) {
      if (const auto* const group = std::get_if<GroupStep>(&step)) rows *= group->rows;
    }
    return rows;
  }
  /// Rows of the encoder that a clip of `frames` becomes.
  [[nodiscard]] std::int64_t rows_of_clip(std::int64_t frames) const {
    const std::int64_t rest = frames % segment_frames;
    return frames / segment_frames * segment_positions + rows_of_segment(rest);
  }
  /// Rows of a segment of `frames`, which every strided convolution halves.
  [[nodiscard]] std::int64_t rows_of_segment(std::int64_t frames) const {
    const AudioSpec& audio = *embedding.audio;
    const int halvings = audio.grid_channels > 0 ? 3 : audio.subsampling ? 2 : 1;
    for (int i = 0; i < halvings; ++i) frames = (frames + 1) / 2;
    return frames;
  }
  /// Rows that are left over when a clip is grouped are dropped, or become a token too.
  [[nodiscard]] std::int64_t tokens_of_clip(std::int64_t frames) const {
    const std::int64_t group = grouped_rows();
    const std::int64_t kept = keeps_firsts() ? group - 1 : 0;
    return (rows_of_clip(frames) + kept) / group;
  }
  /// Placeholders of a clip: its tokens, and padding behind them.
  [[nodiscard]] std::int64_t placeholders_of_clip(std::int64_t frames) const {
    return padded_tokens > 0 ? padded_tokens : tokens_of_clip(frames);
  }
  [[nodiscard]] bool keeps_firsts() const {
    for (const ProjectorStep& step : projector) {
      const auto* const group = std::get_if<GroupStep>(&step);
      if (group != nullptr && group->kind == RowGroup::first) return true;
    }
    return false;
  }
  [[nodiscard]] std::int64_t segments_of_clip(std::int64_t frames) const {
    return (frames + segment_frames - 1) / segment_frames;
  }
};

struct ModelSpec {
  std::string name;
  std::string model_type;    ///< the family, as in config.json
  std::string text_type;     ///< the family of a multimodal model's text model; empty: none
  std::string architecture;  ///< the class that decides the head, as in `architectures`
  std::string torch_dtype;   ///< type of the stored weights; empty if unspecified
  ModelKind kind = ModelKind::encoder;
  std::int64_t hidden_size = 0;
  EmbeddingSpec embedding;
  PositionSpec position;
  std::optional<PositionSpec> encoder_position{};  ///< where it differs from the decoder's
  /// Width of an encoder-decoder's encoder, where it differs from `hidden_size`.
  std::optional<std::int64_t> encoder_hidden_size{};
  std::optional<StackSpec> encoder{};
  std::optional<StackSpec> decoder{};
  WeightSharing encoder_decoder_embedding = WeightSharing::shared;
  HeadSpec head;
  /// The decoder's tokens, where the inputs name none: this id, and the encoder's tokens before
  /// the last.
  std::optional<std::int64_t> decoder_start_id{};
  std::optional<TowerSpec> tower{};
  std::optional<AudioTowerSpec> audio_tower{};
  std::optional<DenoiserSpec> denoiser{};
  std::vector<CountedWeight> counted_only;
  /// Keys of the config that no reader knows. Their names suggest no size and no operator.
  std::vector<std::string> unread_keys{};
  /// Sizes that the config leaves out and the reader took from the model's class, in words.
  std::vector<std::string> assumptions{};
  std::string not_run;  ///< reason why the model is counted but cannot be run; empty: it can
  /// Placeholders of images and sound in the token ids, which only the towers can fill.
  std::vector<std::int64_t> tower_tokens{};
  std::vector<std::int64_t> audio_tokens{};  ///< those of sound
  std::string quantization;  ///< quantisation method of the published weights; empty: none
  WeightStorage storage;     ///< rules of that method, and what else it states

  /// The stack whose sequence length is `seq_len`: the decoder, else the encoder.
  [[nodiscard]] const StackSpec& main_stack() const { return decoder ? *decoder : *encoder; }

  /// True if the model reads a second sequence of `enc_seq_len`: encoder tokens, the hidden states
  /// that a cross-attention layer attends to, or a diffusion transformer's text.
  [[nodiscard]] bool reads_two_sequences() const {
    return kind == ModelKind::encoder_decoder || kind == ModelKind::cross_attention_layer ||
           kind == ModelKind::denoiser;
  }

  /// True for bare layers without norms, residuals, embedding or head.
  [[nodiscard]] bool is_layer() const {
    return kind != ModelKind::encoder && kind != ModelKind::decoder &&
           kind != ModelKind::encoder_decoder && kind != ModelKind::denoiser;
  }

  /// True if the main stack's layers have attention.
  [[nodiscard]] bool has_attention() const {
    return main_stack().self_attention.num_attention_heads > 0;
  }

  /// Width of an encoder-decoder's encoder.
  [[nodiscard]] std::int64_t encoder_width() const {
    return encoder_hidden_size.value_or(hidden_size);
  }

  /// Width of the last layer's output.
  [[nodiscard]] std::int64_t output_width() const {
    const AttentionSpec& attention = main_stack().self_attention;
    return attention.output_projection ? hidden_size
                                       : attention.num_attention_heads * attention.value_head_dim;
  }

  /// The encoder's positions; by default those of the main stack.
  [[nodiscard]] const PositionSpec& encoder_positions() const {
    return encoder_position ? *encoder_position : position;
  }

  // Special members are compiled once (src/base/special_members.cpp).
  ModelSpec();
  ModelSpec(const ModelSpec& other);
  ModelSpec(ModelSpec&& other) noexcept;
  ModelSpec& operator=(const ModelSpec& other);
  ModelSpec& operator=(ModelSpec&& other) noexcept;
  ~ModelSpec();
};

}  // namespace headroom
