#include "gguf_mix.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <string_view>
#include <utility>

#include "family.h"
#include "headroom/error.h"
#include "stored/names.h"

namespace headroom::detail {
namespace {

using checkpoint::GgmlType;

constexpr std::int64_t kMixtralExperts = 8;  // n_expert == 8 has rules of its own

struct MixBase {
  WeightType mix;
  GgmlType base;
};

/// Types of most matrices of each mix.
constexpr std::array<MixBase, 12> kMixes{{{WeightType::q8_0, GgmlType::q8_0},
                                          {WeightType::q6_k, GgmlType::q6_k},
                                          {WeightType::q5_k_m, GgmlType::q5_k},
                                          {WeightType::q4_k_m, GgmlType::q4_k},
                                          {WeightType::q4_0, GgmlType::q4_0},
                                          {WeightType::q4_1, GgmlType::q4_1},
                                          {WeightType::q5_0, GgmlType::q5_0},
                                          {WeightType::q5_1, GgmlType::q5_1},
                                          {WeightType::q2_k, GgmlType::q2_k},
                                          {WeightType::q3_k_m, GgmlType::q3_k},
                                          {WeightType::iq4_nl, GgmlType::iq4_nl},
                                          {WeightType::iq4_xs, GgmlType::iq4_xs}}};

GgmlType base_type(WeightType mix) {
  const auto* const found = std::ranges::find(kMixes, mix, &MixBase::mix);
  if (found != kMixes.end()) return found->base;
  throw Error(ErrorCode::internal, fmt::format("{} is no mix of quantize", name_of(mix)));
}

/// tensor_type_fallback: the type of blocks of 32 where rows are no multiple of 256.
GgmlType fallback_of(GgmlType type) {
  if (type == GgmlType::q4_k) return GgmlType::q5_0;
  if (type == GgmlType::q5_k) return GgmlType::q5_1;
  if (type == GgmlType::q6_k) return GgmlType::q8_0;
  if (type == GgmlType::q2_k || type == GgmlType::q3_k) return GgmlType::q4_0;
  if (type == GgmlType::iq4_xs) return GgmlType::iq4_nl;
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
  Mix(const ModelSpec& spec, WeightType mix) : spec_(spec), mix_(mix), base_(base_type(mix)) {}

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

  [[nodiscard]] bool is_k_mix() const {
    return mix_ == WeightType::q4_k_m || mix_ == WeightType::q5_k_m;
  }

  [[nodiscard]] bool is_iq4() const {
    return mix_ == WeightType::iq4_nl || mix_ == WeightType::iq4_xs;
  }

  [[nodiscard]] std::int64_t num_layers() const { return spec_.main_stack().num_layers; }

  [[nodiscard]] std::int64_t num_experts() const {
    const StackSpec& stack = spec_.main_stack();
    std::int64_t most = stack.ffn.experts ? stack.ffn.experts->num_experts : 0;
    for (const LayerVariant& variant : stack.variants) {
      if (variant.ffn.experts) most = std::max(most, variant.ffn.experts->num_experts);
    }
    return most;
  }

  [[nodiscard]] bool is_falcon() const { return spec_.model_type == "falcon"; }

  /// n_gqa() >= 4: heads of queries per head of keys.
  [[nodiscard]] bool shares_keys() const {
    constexpr std::int64_t kHeadsPerKey = 4;
    const AttentionSpec& attention = spec_.main_stack().self_attention;
    return attention.num_attention_heads >= kHeadsPerKey * attention.num_key_value_heads;
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

  [[nodiscard]] static std::vector<std::int64_t> first_layers(std::int64_t count) {
    std::vector<std::int64_t> layers(static_cast<std::size_t>(count));
    std::iota(layers.begin(), layers.end(), std::int64_t{0});
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

  /// As add, for the first `count` layers; nothing for none.
  void add_first(Selection selection, std::int64_t count, GgmlType type) {
    selection.layers = first_layers(count);
    if (count > 0) add(selection, type);
  }

  /// The head, and the embedding if it serves as head, have 6 bits at least; Falcon's head has 8.
  void add_head_and_embedding() {
    const GgmlType head = base_ == GgmlType::q8_0 || is_falcon() ? GgmlType::q8_0 : GgmlType::q6_k;
    const bool untied =
        spec_.head.language_model && spec_.head.language_model->weight == WeightSharing::separate;
    add({{ModuleKind::head}}, head);
    add({{ModuleKind::embedding}, {"word_embeddings.weight"}}, untied ? base_ : head);
  }

  void add_values_and_keys() {
    const std::string value = "attention.value.weight";
    const std::string key = "attention.key.weight";
    if (num_experts() == kMixtralExperts) {
      add({layer_kinds(), {value, key}}, GgmlType::q8_0);
      return;
    }
    Selection values{layer_kinds(), {value}};
    if (has_fused_attention()) {
      values.weights = {"attention.query.weight", key, value};
      add_values_of_fewer_bits(values);
      if (is_k_mix()) add(values, mix_ == WeightType::q4_k_m ? GgmlType::q5_k : GgmlType::q6_k);
      return;
    }
    add_values_of_fewer_bits(values);
    if (!is_k_mix()) return;
    add({layer_kinds(), {value}, layers_with_more_bits()}, GgmlType::q6_k);
    if (is_70b() && mix_ == WeightType::q4_k_m) add(values, GgmlType::q5_k);
  }

  /// Values, alone or in one tensor with queries and keys, of the mixes of less than Q4_K.
  void add_values_of_fewer_bits(const Selection& values) {
    if (mix_ == WeightType::q2_k) {
      const GgmlType type = shares_keys() ? GgmlType::q4_k : GgmlType::q3_k;
      add(values, is_70b() ? GgmlType::q5_k : type);
    } else if (mix_ == WeightType::q3_k_m) {
      add_first(values, std::min<std::int64_t>(2, num_layers()), GgmlType::q5_k);
      add(values, is_70b() ? GgmlType::q5_k : GgmlType::q4_k);
    } else if (is_iq4() && shares_keys()) {
      add(values, GgmlType::q5_k);
    }
  }

  void add_down() {
    const Selection down{
        layer_kinds(),
        {"mlp.down.weight", "mlp.experts.down.weight", "mlp.shared_expert.down.weight"}};
    if (mix_ == WeightType::q2_k) return add(down, GgmlType::q3_k);
    if (mix_ == WeightType::q3_k_m) return add_down_of_q3_k_m(down);
    if (is_iq4()) return add_first(down, num_layers() / 8, GgmlType::q5_k);
    if (!is_k_mix()) return;
    Selection with_more_bits = down;
    with_more_bits.layers = layers_with_more_bits();
    if (is_falcon() && mix_ == WeightType::q4_k_m) {
      add_first(down, num_layers() / 16, GgmlType::q6_k);
      return add(with_more_bits, GgmlType::q5_k);
    }
    add(with_more_bits, GgmlType::q6_k);
  }

  void add_down_of_q3_k_m(Selection down) {
    add_first(down, num_layers() / 16, GgmlType::q5_k);
    if (is_falcon()) down.layers = layers_with_more_bits();
    add(down, GgmlType::q4_k);
  }

  void add_output() {
    if (is_falcon()) return;
    const Selection output{layer_kinds(), {"attention.output.weight"}};
    const bool few_bits = mix_ == WeightType::q2_k || mix_ == WeightType::q3_k_m;
    if (num_experts() == kMixtralExperts) {
      if (few_bits || is_iq4() || mix_ == WeightType::q4_k_m) add(output, GgmlType::q5_k);
    } else if (few_bits) {
      add(output, mix_ == WeightType::q2_k ? GgmlType::q3_k : GgmlType::q4_k);
    }
  }

  const ModelSpec& spec_;
  WeightType mix_;
  GgmlType base_;
  WeightStorage storage_;
};

}  // namespace

std::optional<GgmlType> ggml_type_of(std::string_view format) {
  const auto types = checkpoint::ggml_types();
  const auto named = std::ranges::find(types, format, &checkpoint::GgmlTypeInfo::name);
  return named == types.end() ? std::nullopt : std::optional(named->type);
}

StorageFormat ggml_format(GgmlType type) {
  constexpr std::int64_t kByte = 8;
  const checkpoint::GgmlTypeInfo& layout = checkpoint::info(type);
  return {std::string(layout.name),
          {.bits = kByte * layout.block_bytes, .block = {1, layout.block_size}}};
}

WeightStorage gguf_storage(const ModelSpec& spec, WeightType mix) { return Mix(spec, mix).run(); }

}  // namespace headroom::detail
