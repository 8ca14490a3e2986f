// Inputs of a model: positions, images, audio and waveforms; and those of a diffusion transformer,
// a latent, its conditioning and text.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "headroom/attention_spec.h"
#include "headroom/layer_spec.h"

namespace headroom {

/// Position encoding. MPNet adds a table of positions to the embeddings and a table of relative
/// position biases to the scores; Qwen3-VL's tower has a table and RoPE.
enum class PositionKind {
  none,
  learned,
  sinusoidal,
  rotary,
  relative_bias,
  learned_and_relative_bias,
  learned_and_rotary,
};
enum class InputKind { tokens, patches, audio, waveform, hidden_states };
enum class WeightSharing { separate, shared };

/// Contents of a position table: trained rows, or sines in the first half of each row and cosines
/// in the second; both are stored and counted. `tensor2tensor`: such halves at frequencies from 1
/// to 1/10000 inclusive, computed and not stored; of sinusoidal positions only (fairseq, M2M-100).
/// `rows_and_columns`: a trained table of rows of patches and one of columns, which are added.
enum class PositionTable { trained, sinusoidal_halves, tensor2tensor, rows_and_columns };

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

  [[nodiscard]] bool is_rotary() const noexcept {
    return kind == PositionKind::rotary || kind == PositionKind::learned_and_rotary;
  }
  /// True if patches have a table of positions.
  [[nodiscard]] bool has_patch_table() const noexcept {
    return kind == PositionKind::learned || kind == PositionKind::learned_and_rotary;
  }
};

/// Trained tokens before the patches: none (SigLIP), a class token (ViT), or a class and a
/// distillation token (DeiT, arXiv 2012.12877, section 3).
enum class PrefixTokens { none, class_token, class_and_distillation };

/// Row of the class token in a table of positions: before those of the patches, or behind them
/// (Llama 4).
enum class ClassPosition { first, last };

/// Positions of images of another size than the config's: refused, interpolated from the table
/// bicubically (DINOv2), linearly between its corners (Qwen3-VL) or between the centres of its
/// cells (PaddleOCR-VL), or computed for any size (2-D RoPE). With antialiasing, a smaller table
/// averages over what it leaves out: bicubically (DINOv2 with registers) or linearly (SigLIP 2).
/// `linear_swapped`: linearly between the centres of cells, with zeros around the table. The grid
/// has the image's rows and columns swapped; patches take its places in raster order (Muse
/// Glimmer).
enum class PositionInterpolation {
  none,
  bicubic,
  bicubic_antialiased,
  linear,
  linear_centres,
  linear_antialiased,
  linear_swapped,
  any_size,
};

/// Storage of a model's images: pixels, or the rows of their patches, which the preprocessor cuts.
enum class PixelLayout { images, patches };
/// Range of the stored values: normalised by the preprocessor, or 0 to 1, which the model maps to
/// -1 to 1 (Gemma 4).
enum class PixelRange { normalised, unit };

struct ImageSpec {
  std::int64_t image_size = 0;
  std::int64_t patch_size = 0;
  std::int64_t num_channels = 0;
  PrefixTokens prefix = PrefixTokens::class_token;
  ClassPosition class_position = ClassPosition::first;
  /// Trained tokens between the prefix and the patches, without positions (arXiv 2309.16588).
  std::int64_t registers = 0;
  PositionInterpolation interpolation = PositionInterpolation::none;
  bool patch_bias = true;
  PixelLayout pixels = PixelLayout::images;
  PixelRange range = PixelRange::normalised;
  /// Frames of a patch, channel by channel: an image is repeated (Qwen2-VL).
  std::int64_t num_frames = 1;
  /// Side of the blocks of patches that follow each other as rows of the tower; 1: raster order.
  std::int64_t block_side = 1;
  /// Side of a window in blocks, whose rows follow each other likewise; 0: no windows (Qwen2.5-VL,
  /// arXiv 2502.13923, section 2.1.1).
  std::int64_t window_blocks = 0;

  [[nodiscard]] std::int64_t patch_elements() const noexcept {
    return num_channels * num_frames * patch_size * patch_size;
  }
  [[nodiscard]] std::int64_t num_patches() const noexcept {
    return (image_size / patch_size) * (image_size / patch_size);
  }
  /// Prefix tokens that a table has positions for.
  [[nodiscard]] std::int64_t placed_prefix_tokens() const noexcept {
    return static_cast<std::int64_t>(prefix);
  }
  /// Rows of an image before its patches.
  [[nodiscard]] std::int64_t prefix_tokens() const noexcept {
    return placed_prefix_tokens() + registers;
  }
  /// Sequence length of one image of the config's size.
  [[nodiscard]] std::int64_t num_tokens() const noexcept { return num_patches() + prefix_tokens(); }
};

/// Rows that the convolutions and norms of a clip read. `centred`: a convolution reads a row on
/// either side, and norms one place (Gemma 4). `causal_norm`: a convolution reads two rows behind,
/// and a norm all rows before (Gemma 3n).
enum class SubsamplingRows { centred, causal_norm };

/// Two 2-D convolutions of a whole clip [frames, mel bins], each with a norm of its channels and a
/// ReLU, that quarter both sides; a linear layer reads each row (Gemma 3n and 4).
struct SubsamplingSpec {
  static constexpr std::int64_t kFrames = 4;  ///< that become one row
  std::int64_t first_channels = 0;
  std::int64_t second_channels = 0;
  NormSpec norm;
  SubsamplingRows rows = SubsamplingRows::centred;
};

/// Audio as a log-mel spectrogram; two convolutions of width 3 halve its length (Whisper). With
/// `grid_channels`, three 2-D convolutions halve both of its sides, and a linear layer reads each
/// column (Qwen3-Omni).
struct AudioSpec {
  std::int64_t num_mel_bins = 0;
  ActivationKind activation = ActivationKind::gelu;
  std::int64_t grid_channels = 0;
  /// Frames of a segment, where the rows of all segments are one sequence; 0: each is a sequence.
  std::int64_t joined_frames = 0;
  std::optional<SubsamplingSpec> subsampling{};
};

/// Norms of a waveform's convolutions: a group norm of each channel after the first, or a layer
/// norm after each.
enum class WaveformNorm { first_group, every_layer };

/// Normalisation of the convolution that gives a waveform its positions: of its weight, or of each
/// channel of its input by stored statistics (HuBERT's conv_pos_batch_norm).
enum class PositionNorm { weight, batch };

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
  PositionNorm position_norm = PositionNorm::weight;

  /// Fewest inputs of layer `layer`, from 0, that fill `positions` of the encoder; of layer 0:
  /// audio samples.
  [[nodiscard]] std::int64_t fewest_inputs(std::size_t layer, std::int64_t positions) const {
    for (std::size_t i = layers.size(); i-- > layer;) {
      positions = (positions - 1) * layers[i].stride + layers[i].kernel_size;
    }
    return positions;
  }
};

/// Storage of the latent that the transformer reads: an image or video, or the rows of its patches,
/// which the pipeline cuts (FLUX).
enum class LatentLayout { image, patches };

/// The latent of an image or video, which an autoencoder makes of pixels, and its patches.
struct LatentSpec {
  std::int64_t in_channels = 0;   ///< of one position of the latent; of a patch if cut already
  std::int64_t out_channels = 0;  ///< likewise
  std::int64_t patch_size = 1;    ///< height and width of a patch in the latent
  std::int64_t patch_frames = 1;
  LatentLayout layout = LatentLayout::image;
  std::int64_t pixels = 8;          ///< height and width that one position of the latent stands for
  std::int64_t frames = 1;          ///< of a video; the first has a position of its own
  std::int64_t default_height = 0;  ///< in pixels
  std::int64_t default_width = 0;
  std::int64_t default_frames = 1;
  std::int64_t position_rows = 0;  ///< of a stored table of positions; 0: none is stored

  [[nodiscard]] bool is_video() const noexcept { return frames > 1; }
  [[nodiscard]] std::int64_t patch_positions() const noexcept {
    return layout == LatentLayout::patches ? 1 : patch_frames * patch_size * patch_size;
  }
  [[nodiscard]] std::int64_t patch_elements() const noexcept {
    return in_channels * patch_positions();
  }
  [[nodiscard]] std::int64_t output_elements() const noexcept {
    return out_channels * patch_positions();
  }
};

/// Projections of the text: one matrix, or two with an activation between them.
enum class TextProjection { one_layer, two_layers };

/// The text's part in a layer. `joint`: text and image tokens are one sequence of the attention,
/// each with weights of its own (arXiv 2403.03206, section 4). `cross`: the image tokens attend to
/// the text tokens in a second attention.
enum class TextAttention { joint, cross };

/// Source of the vectors that modulate a layer. `layer`: a projection of the conditioning in every
/// layer (adaLN-Zero, arXiv 2212.09748, section 3.2). `shared`: one projection for all layers, to
/// which each adds a trained table (adaLN-single, arXiv 2310.00426, section 2.3).
enum class ModulationSource { layer, shared };

/// Inputs of the conditioning beside the time step.
struct ConditioningSpec {
  std::int64_t frequencies = 128;     ///< of the time step's features, a cosine and a sine each
  bool guidance = false;              ///< the guidance scale, embedded like the time step
  std::int64_t pooled_text_size = 0;  ///< width of one vector of the text; 0: none
  bool image_size = false;            ///< height, width and aspect ratio (PixArt-α at 1024)
};

/// The text as the transformer reads it.
struct TextSpec {
  std::int64_t size = 0;  ///< width of a token's vector
  std::int64_t default_tokens = 0;
  TextProjection projection = TextProjection::one_layer;
  TextAttention attention = TextAttention::joint;
  bool cross_norm = false;          ///< a trained norm before cross-attention
  bool ends_in_last_joint = false;  ///< the last joint layer computes no text states (SD 3)
};

/// An image that a video continues, as the vectors of an image encoder (Wan 2.1, image to video). A
/// norm, two layers and a norm project them. A second cross-attention attends to them with the
/// queries of that to the text; the output projection reads the sum of both.
struct ReferenceImageSpec {
  std::int64_t size = 0;  ///< width of a vector; 0: no image
  std::int64_t tokens = 0;
  std::int64_t position_rows = 0;  ///< of a trained table added to the vectors; 0: none
};

/// A transformer that predicts the noise of a latent: one pass is one denoising step. The encoder's
/// StackSpec has its attention, network and number of layers: joint ones or those with
/// cross-attention first, then `num_single_layers`.
struct DenoiserSpec {
  LatentSpec latent;
  ConditioningSpec conditioning;
  TextSpec text;
  ReferenceImageSpec reference_image{};
  ModulationSource modulation = ModulationSource::layer;
  /// Layers after the joint ones that run text and image as one sequence with the same weights,
  /// attention beside the network (FLUX).
  std::int64_t num_single_layers = 0;
  /// Joint layers, from 0, with a second attention among the image tokens (SD 3.5 medium).
  std::vector<std::int64_t> dual_attention_layers{};
};

}  // namespace headroom
