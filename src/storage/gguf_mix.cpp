#include "gguf_mix.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "family.h"
#include "stored/names.h"

namespace headroom::detail {
namespace {

using checkpoint::GgmlType;

constexpr std::int64_t kMixtralExperts = 8;  // n_expert == 8 has rules of its own

GgmlType base_type(GgufMix mix) {
  switch (mix) {
    case GgufMix::q8_0:
      return GgmlType::q8_0;
    case GgufMix::q6_k:
      return GgmlType::q6_k;
    case GgufMix::q5_k_m:
      return GgmlType::q5_k;
    case GgufMix::q4_k_m:
      return GgmlType::q4_k;
    case GgufMix::q4_0:
      break;
  }
  return GgmlType::q4_0;
}

/// tensor_type_fallback: the type of blocks of 32 where rows are no multiple of 256.
GgmlType fallback_of(GgmlType type) {
  if (type == GgmlType::q4_k) return GgmlType::q5_0;
  if (type == GgmlType::q5_k) return GgmlType::q5_1;
  if (type == GgmlType::q6_k) return GgmlType::q8_0;
  return type;
}

/// Matrices that one choice is about, by the ends of their canonical paths.
struct Selection {
  std::vector<ModuleKind> kinds;
  std::vector<std::string> weights{};
  std::vector<std::int64_t> layers{};
};

/// Collects rules; earlier ones decide.
class Mix {
 public:
  Mix(const ModelSpec& spec, GgufMix mix) : spec_(spec), mix_(mix), base_(base_type(mix)) {}

  WeightStorage run() {
    storage_.plain_type = "float32";
    add_head_and_embedding();
    add_values_and_keys();
    add_down();
    add_output();
    add({layer_kinds()}, base_);
    // Towers have a file of their own in 16 bits (mmproj).
    storage_.rules.push_back({.format = ggml_format(GgmlType::f16), .kinds = {ModuleKind::tower}});
    return std::move(storage_);
  }

 private:
  static std::vector<ModuleKind> layer_kinds() { return {ModuleKind::linear, ModuleKind::experts}; }

  [[nodiscard]] bool is_k_mix() const { return mix_ == GgufMix::q4_k_m || mix_ == GgufMix::q5_k_m; }

  [[nodiscard]] std::int64_t num_layers() const { return spec_.main_stack().num_layers; }

  [[nodiscard]] std::int64_t num_experts() const {
    const StackSpec& stack = spec_.main_stack();
    std::int64_t most = stack.ffn.experts ? stack.ffn.experts->num_experts : 0;
    for (const LayerVariant& variant : stack.variants) {
      if (variant.ffn.experts) most = std::max(most, variant.ffn.experts->num_experts);
    }
    return most;
  }

  /// LLM_TYPE_70B: 80 layers of Qwen2, or of Llama with grouped heads (src/llama-model.cpp).
  [[nodiscard]] bool is_70b() const {
    constexpr std::int64_t kLayers = 80;
    const AttentionSpec& attention = spec_.main_stack().self_attention;
    const bool grouped = attention.num_key_value_heads < attention.num_attention_heads;
    const bool llama = spec_.model_type == "llama" || spec_.model_type == "mistral";
    return num_layers() == kLayers && ((llama && grouped) || spec_.model_type == "qwen2");
  }

  /// use_more_bits: the first and last eighth of the layers and every third in between.
  [[nodiscard]] std::vector<std::int64_t> layers_with_more_bits() const {
    std::vector<std::int64_t> layers;
    const std::int64_t n = num_layers();
    for (std::int64_t i = 0; i < n; ++i) {
      if (i < n / 8 || i >= 7 * n / 8 || (i - n / 8) % 3 == 2) layers.push_back(i);
    }
    return layers;
  }

  /// Returns true if GGUF keeps Q, K and V in one tensor, as the original checkpoint does. In the
  /// published files such a tensor has one bit more in every layer (llama-quant.cpp up to 2025);
  /// 007dbbf treats it as it treats V, for 0.2 % more bytes.
  [[nodiscard]] bool has_fused_attention() const {
    const Family* const family = find_family(spec_.model_type);
    if (family == nullptr || !std::holds_alternative<NameTable>(family->names)) return false;
    const std::vector<StoredName> names = find_stored_names(
        std::get<NameTable>(family->names), "decoder.layers.attention.value.weight");
    return !names.empty() && names.front().layout.stacking != Stacking::alone;
  }

  /// Rules for `type` and for the types that it falls back to where rows do not fill its blocks.
  void add(const Selection& selection, GgmlType type) {
    for (const GgmlType one : {type, fallback_of(type), GgmlType::f16}) {
      storage_.rules.push_back({.format = ggml_format(one),
                                .kinds = selection.kinds,
                                .weights = selection.weights,
                                .layers = selection.layers,
                                .input_multiple = checkpoint::info(one).block_size});
    }
  }

  /// The head, and the embedding if it serves as head, have 6 bits at least; Falcon's head has 8.
  void add_head_and_embedding() {
    const bool falcon = spec_.model_type == "falcon";
    const GgmlType head = base_ == GgmlType::q8_0 || falcon ? GgmlType::q8_0 : GgmlType::q6_k;
    const bool untied =
        spec_.head.language_model && spec_.head.language_model->weight == WeightSharing::separate;
    add({{ModuleKind::head}}, head);
    add({{ModuleKind::embedding}, {"word_embeddings.weight"}}, untied ? base_ : head);
  }

  void add_values_and_keys() {
    const std::vector<std::string> values = {"attention.value.weight"};
    if (num_experts() == kMixtralExperts) {
      add({layer_kinds(), {"attention.value.weight", "attention.key.weight"}}, GgmlType::q8_0);
      return;
    }
    if (!is_k_mix()) return;
    if (has_fused_attention()) {
      add({layer_kinds(), {"attention.query.weight", "attention.key.weight", values.front()}},
          mix_ == GgufMix::q4_k_m ? GgmlType::q5_k : GgmlType::q6_k);
      return;
    }
    add({layer_kinds(), values, layers_with_more_bits()}, GgmlType::q6_k);
    if (is_70b() && mix_ == GgufMix::q4_k_m) {
      add({layer_kinds(), values}, GgmlType::q5_k);
    }
  }

  void add_down() {
    if (!is_k_mix()) return;
    const std::vector<std::string> down = {"mlp.down.weight", "mlp.experts.down.weight",
                                           "mlp.shared_expert.down.weight"};
    if (spec_.model_type == "falcon" && mix_ == GgufMix::q4_k_m) {
      std::vector<std::int64_t> first(static_cast<std::size_t>(num_layers() / 16));
      for (std::size_t i = 0; i < first.size(); ++i) first[i] = static_cast<std::int64_t>(i);
      if (!first.empty()) add({layer_kinds(), down, first}, GgmlType::q6_k);
      add({layer_kinds(), down, layers_with_more_bits()}, GgmlType::q5_k);
      return;
    }
    add({layer_kinds(), down, layers_with_more_bits()}, GgmlType::q6_k);
  }

  void add_output() {
    if (num_experts() != kMixtralExperts || mix_ != GgufMix::q4_k_m) return;
    add({layer_kinds(), {"attention.output.weight"}}, GgmlType::q5_k);
  }

  const ModelSpec& spec_;
  GgufMix mix_;
  GgmlType base_;
  WeightStorage storage_;
};

}  // namespace

StorageFormat ggml_format(GgmlType type) {
  constexpr std::int64_t kByte = 8;
  const checkpoint::GgmlTypeInfo& layout = checkpoint::info(type);
  return {std::string(layout.name),
          {.bits = kByte * layout.block_bytes, .block = {1, layout.block_size}}};
}

WeightStorage gguf_storage(const ModelSpec& spec, GgufMix mix) { return Mix(spec, mix).run(); }

}  // namespace headroom::detail
