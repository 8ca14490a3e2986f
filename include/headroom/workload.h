// Workload: phase, sizes and types of one run. Every field has a stated default; none is inferred
// later.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "headroom/group_format.h"
#include "headroom/model_spec.h"

namespace headroom {

enum class Phase {
  prefill,  ///< one forward pass over all new tokens
  decode,   ///< one step of `seq_len` tokens after `past_len` tokens in the KV-cache
  train,    ///< forward and backward pass, with dropout, without a KV-cache
};
/// Types of activations (16 and 32 bits), KV-cache (8 and more) and GEMMs (all). float4 is MXFP4
/// and NVFP4, which a device computes at one rate.
enum class DType { float32, float16, bfloat16, float8, int8, float4, int4 };
/// Types that a model's weights can be converted to. Each stands for a recipe with its real mix of
/// formats: `q4_k_m` keeps some matrices in Q6_K, `float8` the embeddings and the head in 16 bit.
/// Those from `q8_0` on are mixes of llama.cpp's quantize.
enum class WeightType {
  float32,
  bfloat16,
  float16,
  float8,
  int8,
  int4,
  nf4,
  mxfp4,
  nvfp4,
  q8_0,
  q6_k,
  q5_k_m,
  q4_k_m,
  q4_0,
  q4_1,
  q5_0,
  q5_1,
  q2_k,
  q3_k_m,
  iq4_nl,
  iq4_xs,
};
/// A named type, or a form of groups with scales for the matrices of the layers, beside which all
/// else has 16 bits.
using WeightForm = std::variant<WeightType, GroupFormat>;
enum class AttentionImplementation {
  eager,  ///< scores, softmax and context in sequence, over all s × t pairs
  fused,  ///< one kernel that never stores s × t scores and skips masked pairs
};
/// Decode algorithm of multi-head latent attention (arXiv 2405.04434).
enum class LatentAttention {
  absorbed,  ///< attention in the latent space: the KV-cache stores latent vectors
  naive,     ///< the KV-cache stores expanded keys and values of every head, as in Hugging Face
};
/// Tokens whose logits a language-model head computes.
enum class Logits {
  all,   ///< every new token's
  last,  ///< those of the last token of each sequence: all that a generation needs of its prompt
};
/// Activation recomputation: tensors saved for the backward pass (arXiv 2205.05198).
enum class Recompute {
  none,       ///< saves every tensor that the backward pass needs
  selective,  ///< recomputes the attention core (in_attention_core), saves all other tensors
  full,       ///< saves each layer's input and recomputes the layer
};
/// Kernels of a training step. Decides the tensors saved for the backward pass.
enum class Kernels {
  reference,  ///< as the family's Hugging Face code runs in eager PyTorch
  fused,      ///< one kernel per operator of the graph
};

/// Pixels of an image.
struct ImageSize {
  std::int64_t height = 0;
  std::int64_t width = 0;
};

/// Patches of one image, by rows and columns.
struct ImageGrid {
  std::int64_t rows = 0;
  std::int64_t columns = 0;

  [[nodiscard]] std::int64_t patches() const noexcept { return rows * columns; }
};

/// Arrangement of an image's tiles, and the patches of it that become visual tokens: those from
/// `first_row` and `first_column` on, interpolated to `out_rows` × `out_columns`. Of tiles before
/// the whole image, these count blocks of patches (PackStep).
struct ImageTiling {
  std::int64_t tile_rows = 0;
  std::int64_t tile_columns = 0;
  std::int64_t first_row = 0;
  std::int64_t first_column = 0;
  std::int64_t kept_rows = 0;
  std::int64_t kept_columns = 0;
  std::int64_t out_rows = 0;
  std::int64_t out_columns = 0;
};

/// Sums over the images of a pass, in all sequences of its batch.
struct ImageTotals {
  std::int64_t images = 0;
  std::int64_t patches = 0;
  std::int64_t pairs =
      0;  ///< of a row of the tower with those of its image, prefix tokens included
  std::int64_t window_pairs = 0;  ///< of a row with those of its window of patches
  std::int64_t tokens = 0;        ///< visual tokens
  /// Per sequence, where tokens of an image see each other: pairs of a visual token with a later
  /// one of its image; and in layers with a window, also those with an earlier one outside the
  /// window.
  std::int64_t later_pairs = 0;
  std::int64_t windowed_pairs = 0;
};

/// Images in every sequence of a workload; or, where images are compared with texts, all of its
/// images.
struct WorkloadImages {
  std::int64_t count = 0;
  ImageSize size;
  /// These images as the tower reads them: several tiles for one.
  std::vector<ImageGrid> grids{};
  ImageTotals totals{};
  std::vector<ImageTiling> tilings{};  ///< of each image, where a tower packs tiles
};

/// Sums over the clips of a pass, in all sequences of its batch.
struct AudioTotals {
  std::int64_t segments = 0;  ///< of sound, the last ones of clips completed with silence
  std::int64_t rows = 0;      ///< of sound in the audio tower
  std::int64_t tokens = 0;    ///< of the text model
  /// Pairs of rows of the tower that see each other, where all rows are one sequence.
  std::int64_t pairs = 0;
  std::int64_t placeholders = 0;  ///< in the texts: tokens, and padding behind those of a clip
};

/// Clips of sound in every sequence of a workload.
struct WorkloadAudio {
  std::int64_t count = 0;
  std::int64_t seconds = 0;  ///< of each
  AudioTotals totals{};
};

/// Pixels and frames of one image or video that a diffusion transformer denoises.
struct SampleSize {
  ImageSize image;
  std::int64_t frames = 1;
};

/// One run of a model, fully specified.
struct Workload {
  Phase phase = Phase::prefill;
  std::int64_t batch_size = 1;
  std::int64_t seq_len = 128;  ///< new tokens per sequence; usually 1 in decode
  /// Tokens read by an encoder-decoder's encoder, or text tokens of a diffusion transformer.
  std::int64_t enc_seq_len = 128;
  /// Tokens with global attention per sequence (GlobalAttentionSpec).
  std::int64_t global_tokens = 0;
  std::int64_t past_len = 0;           ///< tokens in the KV-cache
  WorkloadImages images{};             ///< of a multimodal model
  WorkloadAudio audio{};               ///< of a multimodal model
  std::optional<SampleSize> sample{};  ///< whose latent a diffusion transformer reads
  DType dtype = DType::float32;        ///< of activations
  DType kv_dtype = DType::float32;
  AttentionImplementation attention = AttentionImplementation::eager;
  LatentAttention latent = LatentAttention::absorbed;
  Logits logits = Logits::all;
  Recompute recompute = Recompute::none;
  Kernels kernels = Kernels::reference;
  /// Bytes per dropout-mask element: 1 as on CUDA. (PyTorch's CPU dropout stores the mask in the
  /// activation's type.)
  std::int64_t mask_bytes = 1;
  /// Form to convert weights to; empty: as stored.
  std::optional<WeightForm> weights{};
  /// Type of the layers' GEMMs (is_layer_gemm); empty: `dtype`.
  std::optional<DType> arithmetic{};

  [[nodiscard]] DType arithmetic_type() const noexcept { return arithmetic.value_or(dtype); }
};

/// A workload with unset fields, which `resolve` fills in.
struct WorkloadRequest {
  Phase phase = Phase::prefill;
  std::int64_t batch_size = 1;
  /// Default: 128 and the tokens of `images` and `audio`; 1 in decode; or the tokens of an image
  /// model's image. Of a diffusion transformer: latent tokens, in place of `image_size` and
  /// `frames`.
  std::optional<std::int64_t> seq_len;
  /// Default: 128, the window of a speech encoder, or the text tokens of a diffusion pipeline.
  std::optional<std::int64_t> enc_seq_len;
  /// Default: one where the class takes the first token, else none (GlobalAttentionSpec).
  std::optional<std::int64_t> global_tokens;
  std::optional<std::int64_t> past_len;  ///< default: 0, or 127 in decode
  /// Per sequence, and their tokens are part of `seq_len`; in all, where images are compared with
  /// texts.
  std::int64_t images = 0;
  /// Of each; default: that of the tower. Of a diffusion transformer: default of its pipeline.
  std::optional<ImageSize> image_size;
  std::int64_t audio = 0;  ///< clips per sequence, whose tokens are part of `seq_len`
  std::optional<std::int64_t> audio_seconds;  ///< of each clip; default: 30
  std::optional<std::int64_t> frames;         ///< of a video; default: that of the pipeline
  /// Of activations: 16 or 32 bits. Default: the config's torch_dtype if it has 16 bits, else
  /// float32.
  std::optional<DType> dtype;
  std::optional<DType> kv_dtype;      ///< default: the config's, else `dtype`
  std::optional<WeightForm> weights;  ///< default: as stored
  /// Of the layers' GEMMs. Default: what the config states of its stored weights, else `dtype`.
  std::optional<DType> arithmetic;
  std::optional<AttentionImplementation> attention;  ///< default: eager
  LatentAttention latent = LatentAttention::absorbed;
  std::optional<Logits> logits{};  ///< default: all
  Recompute recompute = Recompute::none;
  Kernels kernels = Kernels::reference;
};

/// Fills in the defaults of `request` for `spec`. Throws Error{invalid_input} for a request that
/// the model cannot run: sizes below 1, a decode phase without a decoder, a length for an image
/// model, …
[[nodiscard]] Workload resolve(const WorkloadRequest& request, const ModelSpec& spec);

/// Returns whether `spec` is a decoder with a language-model head: one that can generate.
[[nodiscard]] bool can_generate(const ModelSpec& spec) noexcept;

/// Returns whether some layers of `spec` have multi-head latent attention.
[[nodiscard]] bool has_latent_attention(const ModelSpec& spec);

/// The request with the default of a prompt's prefill in a generation: the last token's logits.
[[nodiscard]] WorkloadRequest prompt_request(WorkloadRequest request);

/// The pass of a generation that reads the `step`-th new token, counted from 1, of each sequence of
/// `prompt`: a decode phase with p + s + step − 1 tokens in the KV-cache. Throws Error{overflow} if
/// those exceed 64 bits.
[[nodiscard]] Workload decode_step(Workload prompt, std::int64_t step);

/// The image encoder of `tower` as a model of its own.
[[nodiscard]] ModelSpec encoder_of(const TowerSpec& tower);

/// The audio encoder of `tower` as a model of its own.
[[nodiscard]] ModelSpec encoder_of(const AudioTowerSpec& tower);

/// Frames of the spectrogram of a clip, by the family's rule.
[[nodiscard]] std::int64_t frames_of_clip(const AudioTowerSpec& tower, std::int64_t seconds);

/// Rows of the tower in each run of a clip's segments that see each other. Requires
/// `attended_segments`.
[[nodiscard]] std::vector<std::int64_t> attended_rows(const AudioTowerSpec& tower,
                                                      std::int64_t clip_frames);

/// Sums over clips with so many frames each. Requires `spec.audio_tower`.
[[nodiscard]] AudioTotals audio_totals(const ModelSpec& spec,
                                       std::span<const std::int64_t> clip_frames);

/// Images of the tower that one image of this size becomes, by the family's rule: its tiles and the
/// whole, or the image alone.
[[nodiscard]] std::vector<ImageGrid> grids_of_image(const TowerSpec& tower, ImageSize size);

/// Arrangement of the tiles of an image of this size. Requires a projector that packs tiles.
[[nodiscard]] ImageTiling tiling_of_image(const TowerSpec& tower, ImageSize size);

/// The arrangement of an image whose preprocessor states `size`: its own, or that of its tiles, of
/// which all patches are kept, where those precede the whole image.
[[nodiscard]] ImageTiling stated_tiling(const TowerSpec& tower, ImageSize size);

/// Visual tokens of an image whose tiles are packed.
[[nodiscard]] std::int64_t packed_tokens(const TowerSpec& tower, const ImageTiling& tiling);

/// Place of a patch in its image.
struct PatchPlace {
  std::int64_t row = 0;
  std::int64_t column = 0;
};

/// Places of an image's patches in the order of the tower's rows.
[[nodiscard]] std::vector<PatchPlace> patch_places(const ImageSpec& spec, const ImageGrid& image);

/// Numbers of rows of an image's windows, one after the other; of the whole image without windows.
[[nodiscard]] std::vector<std::int64_t> window_rows(const ImageSpec& spec, const ImageGrid& image);

/// Number of tokens in the text model that an image becomes: one per block of merged patches; none
/// where images are compared with texts (TowerSpec::pooling).
[[nodiscard]] std::int64_t visual_tokens(const TowerSpec& tower, const ImageGrid& image);

/// Sums over `images`, those of all `sequences` of a pass. Requires `spec.tower`.
[[nodiscard]] ImageTotals image_totals(const ModelSpec& spec, std::span<const ImageGrid> images,
                                       std::int64_t sequences);

/// Caveats for the reader of the figures: positions beyond the trained context, …
[[nodiscard]] std::vector<std::string> notes_on(const Workload& workload, const ModelSpec& spec);

/// Says which sequences exceed the positions of the model and of its encoder. `notes_on` has them
/// too.
[[nodiscard]] std::vector<std::string> notes_on_positions(const Workload& workload,
                                                          const ModelSpec& spec);

/// States that a multimodal model's workload has no images; empty if it has, or reads none.
[[nodiscard]] std::string note_on_images(const Workload& workload, const ModelSpec& spec);

/// States that the workload of a model with an audio tower has no sound; empty if it has, or the
/// model reads none.
[[nodiscard]] std::string note_on_audio(const Workload& workload, const ModelSpec& spec);

/// Caveats about attention in chunks: padding of whole passes, and tokens with global attention
/// that depend on the text, which the figures leave out.
[[nodiscard]] std::vector<std::string> notes_on_chunks(const Workload& workload,
                                                       const ModelSpec& spec);

/// Caveats about the config: keys that no reader knows, sizes that the class fills in, and weights
/// without operators. `notes_on` has them too.
[[nodiscard]] std::vector<std::string> notes_on_config(const ModelSpec& spec);

/// Caveats about the tensors saved for the backward pass.
[[nodiscard]] std::vector<std::string> notes_on_saved_tensors(const Workload& workload,
                                                              const ModelSpec& spec);

/// The config's torch_dtype, if it is a type of 16 bits.
[[nodiscard]] std::optional<DType> stored_16_bit_type(const ModelSpec& spec) noexcept;

/// The type in which the config says that its quantised layers compute; empty: as the activations.
[[nodiscard]] std::optional<DType> stated_arithmetic(const ModelSpec& spec) noexcept;
/// The type of the KV-cache that the config states, such as "kv_cache_quant_algo": "FP8"; empty if
/// it states none, or one of fewer than 8 bits.
[[nodiscard]] std::optional<DType> stated_kv_dtype(const ModelSpec& spec) noexcept;

/// Bytes per element. Types of 4 bits, in which only GEMMs compute, have 1.
[[nodiscard]] std::int64_t bytes_of(DType dtype) noexcept;

/// The word for each value, on the command line, on screen and in JSON.
[[nodiscard]] std::string_view name_of(Phase phase) noexcept;
[[nodiscard]] std::string_view name_of(DType dtype) noexcept;
[[nodiscard]] std::string_view name_of(WeightType type) noexcept;
[[nodiscard]] std::string name_of(const WeightForm& form);
[[nodiscard]] std::string_view name_of(AttentionImplementation attention) noexcept;
[[nodiscard]] std::string_view name_of(LatentAttention latent) noexcept;
[[nodiscard]] std::string_view name_of(Logits logits) noexcept;
[[nodiscard]] std::string_view name_of(Recompute recompute) noexcept;
[[nodiscard]] std::string_view name_of(Kernels kernels) noexcept;

}  // namespace headroom
