// TowerWeights: collects the weights of one part of a multimodal model (a tower or its projector).
// They are counted; they have no operators in the graph.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "../common_keys.h"

namespace headroom::detail {

/// Transformer layers of a tower: pre-norm, multi-head attention over `width`, an FFN.
struct TowerLayers {
  std::int64_t count = 0;
  std::int64_t width = 0;
  std::int64_t inner = 0;        ///< inner width of the FFN
  std::int64_t heads_width = 0;  ///< of all heads; 0: width
  FfnKind ffn = FfnKind::plain;
  NormKind norm = NormKind::layer_norm;  ///< layer_norm has a bias, rms_norm has none
  bool qkv_bias = true;
  bool output_bias = true;
  bool ffn_bias = true;
  std::string path = "layers";
};

/// Sizes of an image and of its patches, in pixels.
struct PatchGrid {
  std::int64_t patches = 0;   ///< of an image of the size that the config names
  std::int64_t elements = 0;  ///< of one patch, over all channels
};

class TowerWeights {
 public:
  TowerWeights(ModelSpec& spec, ModelPart part, CountedUse use = CountedUse::part_not_run);

  void add(const std::string& name, std::vector<std::int64_t> shape, WeightRole role,
           std::int64_t repeat = 1);
  /// A weight [out, in] and its bias [out].
  void linear(const std::string& name, std::int64_t in, std::int64_t out, WeightRole role,
              std::int64_t repeat = 1);
  /// A weight [out, in], and a bias [out] if `bias`.
  void linear_if(bool bias, const std::string& name, std::int64_t in, std::int64_t out,
                 WeightRole role, std::int64_t repeat = 1);
  void norm(NormKind kind, const std::string& name, std::int64_t width, std::int64_t repeat = 1);
  void layers(const TowerLayers& layers);

 private:
  std::vector<CountedWeight>& weights_;
  ModelPart part_;
  CountedUse use_;
  std::string path_;
};

/// SigLIP's pooling head: a learned query that attends to all patches. It is loaded, not run.
void add_pooling_head(ModelSpec& spec, std::int64_t width, std::int64_t inner);

/// RoPE's base of rows and columns: a key of its own, or one of rope_parameters.
[[nodiscard]] double read_axial_theta(ConfigReader& vision, double absent);

/// Reads image_size, patch_size and the channels (`channels_key`).
[[nodiscard]] PatchGrid read_patch_grid(ConfigReader& vision, std::string_view channels_key,
                                        std::int64_t image_size, std::int64_t patch_size);

/// Square images of square patches, without a prefix. Throws Error{invalid_input} if sides differ.
[[nodiscard]] ImageSpec read_square_image(ConfigReader& vision, std::string_view channels_key,
                                          std::int64_t image_size, std::int64_t patch_size);

/// Patches of a side that become one: 1 / the ratio of `key`, 2 if absent.
[[nodiscard]] std::int64_t read_merged_side(ConfigReader& config, std::string_view key);

/// Marks the keys of a tower that change no weight as read: activations, dropout, RoPE, and sizes
/// of heads, since towers' heads share the hidden size.
void ignore_tower_keys(ConfigReader& tower);

}  // namespace headroom::detail
