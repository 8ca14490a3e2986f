#include "agreeing_flags.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace headroom::detail {
namespace {

template <class Predicate>
bool any_layer(const StackSpec& stack, const Predicate& has) {
  for (std::size_t variant = 0; variant <= stack.variants.size(); ++variant) {
    if (has(stack.attention_of(variant))) return true;
  }
  return false;
}

/// True if `has` holds for the attention of any layer of any stack.
template <class Predicate>
bool any_attention(const ModelSpec& spec, const Predicate& has) {
  return (spec.encoder && any_layer(*spec.encoder, has)) ||
         (spec.decoder && any_layer(*spec.decoder, has));
}

bool has_qkv_bias(const ModelSpec& spec) {
  return any_attention(spec, [](const AttentionSpec& layer) {
    return layer.qkv_bias || (layer.latent && layer.latent->bias);
  });
}

/// Latent attention normalises its latent queries and keys.
bool has_query_key_norm(const ModelSpec& spec) {
  return any_attention(spec, [](const AttentionSpec& layer) {
    return layer.query_key_norm.has_value() || layer.latent.has_value();
  });
}

bool has_head_bias(const ModelSpec& spec) {
  return spec.head.language_model && spec.head.language_model->bias;
}

bool has_score_bias(const ModelSpec& spec) {
  return spec.head.classifier && spec.head.classifier->bias;
}

/// A key, and the part of a model that it turns off.
struct Flag {
  std::string_view key;
  bool (*has)(const ModelSpec&);
};

constexpr std::array<Flag, 4> kFlags{
    Flag{"lm_head_bias", has_head_bias}, Flag{"qkv_bias", has_qkv_bias},
    Flag{"score_bias", has_score_bias}, Flag{"use_qk_norm", has_query_key_norm}};

/// The key's name, if it is one of the text model's; else empty.
std::string_view key_of_text_model(std::string_view pointer) {
  constexpr std::string_view kNested = "/text_config/";
  if (pointer.starts_with(kNested)) return pointer.substr(kNested.size());
  return pointer.substr(1);
}

/// Decoders have no types of tokens, but tiny configs of transformers' tests give a number of them.
bool is_of_encoders(std::string_view key, const ModelSpec& spec) {
  return key == "type_vocab_size" && spec.kind == ModelKind::decoder;
}

bool agrees(const UnreadKey& unread, const ModelSpec& spec) {
  const std::string_view key = key_of_text_model(unread.pointer);
  if (is_of_encoders(key, spec)) return true;
  const auto* const flag = std::ranges::find(kFlags, key, &Flag::key);
  return flag != kFlags.end() && unread.value == "false" && !flag->has(spec);
}

}  // namespace

void drop_agreeing_flags(UnreadKeys& unread, const ModelSpec& spec) {
  std::erase_if(unread.structural, [&](const UnreadKey& key) { return agrees(key, spec); });
}

}  // namespace headroom::detail
