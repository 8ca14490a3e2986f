// Weights of a model apart from its operators: their role, the part they belong to, and the formats
// in which a config states that they are stored.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headroom/expr.h"

namespace headroom {

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
  projector,  ///< from a tower to the text model, or conditioning of a diffusion transformer
};

/// Part of a multimodal model that a weight belongs to. The encoder of a speech model is audio, an
/// image classifier is vision; projectors lead from a tower to the text model; an adapter (LoRA) is
/// stored beside its base model.
enum class ModelPart { text, vision, audio, projector, adapter };

/// Loading of a weight without an operator: not loaded, since its part is not run (a tower), or
/// loaded with the model, though this class's forward pass does not read it.
/// unused_cross_attention is loaded too: a decoder that runs without an encoder does not read it;
/// likewise experts that only image_tokens read.
enum class CountedUse { part_not_run, loaded, unused_cross_attention, image_tokens };

/// True for the weights of the class itself, which its files hold.
[[nodiscard]] constexpr bool is_loaded(CountedUse use) noexcept {
  return use != CountedUse::part_not_run;
}

/// A weight that is counted, but has no operator in the graph (a tower's, an adapter's).
struct CountedWeight {
  std::string path;
  std::vector<std::int64_t> shape;
  WeightRole role = WeightRole::embedding;
  std::int64_t repeat = 1;
  ModelPart part = ModelPart::vision;
  CountedUse use = CountedUse::part_not_run;
};

// Storage of the weights, as a config states it: an ordered list of rules maps modules to formats;
// everything else is stored in one plain type.

/// A block along the dimensions [out, in] of a matrix; 0 spans the whole dimension.
struct BlockShape {
  std::int64_t out = 1;
  std::int64_t in = 1;
  bool operator==(const BlockShape&) const = default;
};

/// Direction in which numbers are packed into words. `flat` takes the matrix row after row as one
/// list, in blocks of `BlockShape::in` values.
enum class PackedAlong { in, out, flat };

/// Numbers of `bits` bits, one per block of the matrix. Each row (`in`), column (`out`) or the
/// whole list (`flat`) fills whole words of `word_bits`.
struct StoredNumbers {
  std::int64_t bits = 16;
  BlockShape block{};
  PackedAlong along = PackedAlong::in;
  std::int64_t word_bits = 8;
  bool operator==(const StoredNumbers&) const = default;
};

/// Codes of stored matrices that headroom's kernels read in groups.
enum class GroupCodes {
  four_bits,  ///< integers or floats: a table gives their values
  int8,
  float8,  ///< E4M3
  float16,
  bfloat16,
};

/// Bits, scales, zero points and other companions of one stored matrix, to the byte.
struct StorageFormat {
  std::string name;                     ///< for display: "FP8, a scale per 128 × 128"
  StoredNumbers values{};               ///< one number per value, or per block of a GGUF type
  std::vector<StoredNumbers> beside{};  ///< scales, zero points, scales of scales, …
  std::optional<GroupCodes> codes{};    ///< empty: no kernel reads this packing in groups
  bool equal_zeros = false;             ///< zero points are stored, and all are equal

  /// Bytes of a matrix [out, in]; a vector is [n, 1]. Throws Error{overflow}.
  [[nodiscard]] Integer bytes(std::int64_t out, std::int64_t in) const;
  bool operator==(const StorageFormat&) const = default;
};

/// Kind of module that a weight belongs to, as quantisation methods tell them apart. `other` covers
/// vectors: norms, biases, sinks; `tower` the matrices of a vision or audio tower.
enum class ModuleKind { linear, experts, router, embedding, head, convolution, tower, other };

/// How a pattern matches the dotted name of a module, such as "model.layers.0.mlp.gate".
enum class PatternSyntax {
  words,  ///< its dotted words occur in the name: "gate", "layers.0", "model.layers.0.mlp.gate"
  glob,   ///< with * and ?, the name or a module around it
  regex,  ///< from the beginning of the name, as Python's re.match
  part,   ///< the name contains it, also within a word
};

struct ModulePattern {
  std::string text;
  PatternSyntax syntax = PatternSyntax::words;
  bool operator==(const ModulePattern&) const = default;
};

/// Weights stored in `format`: those of the listed kinds to which every other condition applies; an
/// empty list is no condition. Biases and other vectors follow a rule only if it lists `other`.
struct StorageRule {
  std::optional<StorageFormat> format{};  ///< empty: the plain type
  std::vector<ModuleKind> kinds{};
  std::vector<ModulePattern> patterns{};  ///< one of them matches the module's published name
  std::vector<std::string> weights{};     ///< the weight's path in the graph ends with one of them
  std::vector<std::int64_t> layers{};     ///< layers of the stack
  std::int64_t input_multiple = 1;        ///< the matrix's input is a multiple of it
};

/// Types that arithmetic on quantised layers, or a KV-cache, is stated to use.
enum class StatedType { float8, int8, float4, mxfp8, mxfp4, nvfp4, int4 };

/// "float8", "nvfp4", …
[[nodiscard]] std::string_view name_of(StatedType type) noexcept;

/// Type of scales per block that are powers of two ("scale_fmt": "ue8m0"): float32 (DeepSeek-V3.1),
/// or their exponents in 8 bits (DeepSeek-V4).
enum class BlockScaleStorage { float32, exponents };

/// Storage of a model's weights. The first rule that applies to a weight decides.
struct WeightStorage {
  std::string plain_type{};  ///< of weights without a rule, as torch_dtype; empty: the spec's
  std::vector<StorageRule> rules{};
  std::string origin{};              ///< "quantization_config: fp8"; empty: nothing is quantised
  std::vector<std::string> notes{};  ///< what the config states and the rules cannot express
  std::optional<StatedType> activations{};  ///< of quantised GEMMs; empty: as the rest of the model
  std::optional<StatedType> kv_cache{};     ///< empty: as the rest of the model
  bool bytes_known = true;  ///< false: a method that headroom cannot read gives other bytes
  BlockScaleStorage block_scales = BlockScaleStorage::float32;  ///< as the family stores them
};

}  // namespace headroom
