// DenoiserSpec: the parts of a diffusion transformer around and between its attention and
// feed-forward networks, as independent choices.
#pragma once

#include <cstdint>
#include <vector>

namespace headroom {

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
