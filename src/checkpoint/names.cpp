#include "names.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "headroom/error.h"
#include "names/family_names.h"

namespace headroom::checkpoint {
namespace {

struct Family {
  std::string_view model_type;
  FamilyNames names;
};

constexpr std::array kFamilies{
    Family{"albert", albert_names},
    Family{"bart", bart_names},
    Family{"bert", bert_names},
    Family{"bloom", bloom_names},
    Family{"cohere", qwen3_names},
    Family{"cohere2", llama_names},
    Family{"convolution", convolution_names},
    Family{"deepseek_v2", deepseek_names},
    Family{"deepseek_v3", deepseek_names},
    Family{"distilbert", distilbert_names},
    Family{"electra", electra_names},
    Family{"falcon", falcon_names},
    Family{"gemma", llama_names},
    Family{"gemma2", gemma_names},
    Family{"gemma3_text", gemma_names},
    Family{"glm", glm_names},
    Family{"glm4", glm_names},
    Family{"gemma3", gemma_names},
    Family{"gpt2", gpt2_names},
    Family{"llama4", llama4_names},
    Family{"minimax_m2", mixtral_names},
    Family{"glm4_moe", glm4_moe_names},
    Family{"glm_moe_dsa", deepseek_names},
    Family{"gpt_bigcode", gpt_bigcode_names},
    Family{"gpt_neo", gpt_neo_names},
    Family{"gpt_neox", gpt_neox_names},
    Family{"gpt_oss", gpt_oss_names},
    Family{"gptj", gptj_names},
    Family{"gru", recurrent_names},
    Family{"granite", llama_names},
    Family{"granitemoe", granitemoe_names},
    Family{"kimi_k2", deepseek_names},
    Family{"linear_transformer", linear_transformer_names},
    Family{"llama", llama_names},
    Family{"llama4_text", llama4_names},
    Family{"lstm", recurrent_names},
    Family{"marian", bart_names},
    Family{"mistral", llama_names},
    Family{"mixtral", mixtral_names},
    Family{"modernbert", modernbert_names},
    Family{"mpt", mpt_names},
    Family{"olmo", llama_names},
    Family{"olmo2", olmo2_names},
    Family{"opt", opt_names},
    Family{"pegasus", bart_names},
    Family{"phi", phi_names},
    Family{"phi3", phi3_names},
    Family{"phimoe", mixtral_names},
    Family{"qwen2", llama_names},
    Family{"qwen2_moe", qwen_moe_names},
    Family{"qwen3", qwen3_names},
    Family{"qwen3_moe", qwen_moe_names},
    Family{"RefinedWeb", falcon_names},
    Family{"RefinedWebModel", falcon_names},
    Family{"rnn", recurrent_names},
    Family{"roberta", roberta_names},
    Family{"smollm3", llama_names},
    Family{"stablelm", stablelm_names},
    Family{"starcoder2", starcoder2_names},
    Family{"t5", t5_names},
    Family{"transformer", transformer_names},
    Family{"vit", vit_names},
    Family{"whisper", whisper_names},
    Family{"xlm-roberta", roberta_names},
};

// Buffers that older versions of the library stored, and parts of models for text and images.
constexpr std::array kCommonExtras{
    ExtraRule{"position_ids", ExtraKind::position_ids},
    ExtraRule{"rotary_emb.inv_freq", ExtraKind::rotary_buffer},
    ExtraRule{"attn.masked_bias", ExtraKind::causal_mask},
    ExtraRule{"attention.masked_bias", ExtraKind::causal_mask},
    ExtraRule{"e_score_correction_bias", ExtraKind::router_bias},
    ExtraRule{"expert_bias", ExtraKind::router_bias},
    ExtraRule{".k_scale", ExtraKind::kv_cache_scale},
    ExtraRule{".v_scale", ExtraKind::kv_cache_scale},
    ExtraRule{"vision_tower.", ExtraKind::vision_tower, NamePart::beginning},
    ExtraRule{"model.vision_tower.", ExtraKind::vision_tower, NamePart::beginning},
    ExtraRule{"vision_model.", ExtraKind::vision_tower, NamePart::beginning},
    ExtraRule{"model.vision_model.", ExtraKind::vision_tower, NamePart::beginning},
    ExtraRule{"visual.", ExtraKind::vision_tower, NamePart::beginning},
    ExtraRule{"model.visual.", ExtraKind::vision_tower, NamePart::beginning},
    ExtraRule{"audio_tower.", ExtraKind::vision_tower, NamePart::beginning},
    ExtraRule{"model.audio_tower.", ExtraKind::vision_tower, NamePart::beginning},
    ExtraRule{"multi_modal_projector.", ExtraKind::vision_tower, NamePart::beginning},
    ExtraRule{"model.multi_modal_projector.", ExtraKind::vision_tower, NamePart::beginning},
    ExtraRule{"mtp.", ExtraKind::multi_token_prediction, NamePart::beginning},
    ExtraRule{"model.mtp", ExtraKind::multi_token_prediction, NamePart::beginning},
};

// A text model inside one for text and images.
constexpr std::array<std::string_view, 3> kCommonPrefixes{
    "language_model.model.", "model.language_model.", "language_model."};

constexpr std::array<std::string_view, 2> kKinds{"weight", "bias"};

std::string replaced(std::string_view text, std::string_view placeholder, std::string_view value) {
  std::string result(text);
  const auto at = result.find(placeholder);
  if (at != std::string::npos) result.replace(at, placeholder.size(), value);
  return result;
}

/// One rule with "%" filled.
struct ConcreteRule {
  std::string canonical;
  StoredName stored;
};

std::vector<ConcreteRule> concrete_rules(const NameRule& rule) {
  std::vector<ConcreteRule> concrete;
  for (const std::string_view kind : kKinds) {
    concrete.push_back(
        {replaced(rule.canonical, "%", kind), {replaced(rule.stored, "%", kind), rule.layout}});
    if (rule.canonical.find('%') == std::string_view::npos) break;
  }
  return concrete;
}

/// What stands before the end of `path` that the rule is about; empty when the rule is about
/// another path. Linear attention's encoder and decoder are stored under one name.
std::optional<std::string_view> prefix_of(std::string_view path, std::string_view canonical) {
  if (!path.ends_with(canonical)) return std::nullopt;
  const std::string_view prefix = path.substr(0, path.size() - canonical.size());
  if (!prefix.empty() && !prefix.ends_with('.')) return std::nullopt;
  return prefix;
}

std::size_t common_length(std::string_view a, std::string_view b) {
  return static_cast<std::size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
}

/// The whole path that `canonical`, the end of one, means in the stack that `path` is in.
std::string beside(std::string_view path, std::string_view canonical) {
  const std::string_view first = canonical.substr(0, canonical.find('.') + 1);
  const auto at = path.starts_with(first) ? 0 : path.find("." + std::string(first));
  if (at == 0 || at == std::string_view::npos) return std::string(canonical);
  return std::string(path.substr(0, at + 1)) + std::string(canonical);
}

template <class Visit>
void for_each_rule(const NameTable& table, Visit visit) {
  for (const auto& rules : table.rules) {
    for (const NameRule& rule : rules) {
      for (const ConcreteRule& concrete : concrete_rules(rule)) visit(concrete);
    }
  }
}

}  // namespace

NameTable name_table(const ModelSpec& spec) {
  const auto* const found =
      std::ranges::find(kFamilies, std::string_view(spec.model_type), &Family::model_type);
  if (found == kFamilies.end()) {
    throw Error(ErrorCode::invalid_input,
                fmt::format("models of type {} have no checkpoints", spec.model_type), spec.name,
                "use random weights");
  }
  NameTable table = found->names(spec);
  table.extras.insert(table.extras.end(), kCommonExtras.begin(), kCommonExtras.end());
  table.optional_prefixes.insert(table.optional_prefixes.end(), kCommonPrefixes.begin(),
                                 kCommonPrefixes.end());
  return table;
}

std::string_view name_of(ExtraKind kind) noexcept {
  switch (kind) {
    case ExtraKind::causal_mask:
      return "causal mask buffer";
    case ExtraKind::position_ids:
      return "position ids buffer";
    case ExtraKind::rotary_buffer:
      return "rotary buffer";
    case ExtraKind::router_bias:
      return "router bias buffer";
    case ExtraKind::kv_cache_scale:
      return "KV-cache scale";
    case ExtraKind::head_buffer:
      return "head's bias buffer";
    case ExtraKind::tied_copy:
      return "tied weight stored again";
    case ExtraKind::untied_head:
      return "untied head";
    case ExtraKind::unused_head:
      return "head that the model does not use";
    case ExtraKind::multi_token_prediction:
      return "multi-token prediction layer";
    case ExtraKind::vision_tower:
      return "vision or audio tower";
  }
  return "";
}

std::span<const ExtraRule> common_extras() { return kCommonExtras; }

namespace {

/// Whether `name` ends with whole words: "attn.bias" is no end of "h.0.c_attn.bias".
bool ends_with_words(std::string_view name, std::string_view words) {
  if (!name.ends_with(words)) return false;
  const std::size_t before = name.size() - words.size();
  return before == 0 || words.front() == '.' || name[before - 1] == '.';
}

/// One character tells most names apart.
bool fits(const ExtraRule& rule, std::string_view name) {
  if (name.empty()) return false;
  switch (rule.where) {
    case NamePart::ending:
      return name.back() == rule.text.back() && ends_with_words(name, rule.text);
    case NamePart::beginning:
      return name.front() == rule.text.front() && name.starts_with(rule.text);
  }
  return false;
}

}  // namespace

std::optional<ExtraKind> extra_kind(const NameTable& table, std::string_view name) {
  const auto found =
      std::ranges::find_if(table.extras, [&](const ExtraRule& rule) { return fits(rule, name); });
  if (found == table.extras.end()) return std::nullopt;
  return found->kind;
}

std::vector<StoredName> stored_names(const NameTable& table, std::string_view path) {
  std::vector<StoredName> names;
  for_each_rule(table, [&](const ConcreteRule& rule) {
    if (prefix_of(path, rule.canonical)) names.push_back(rule.stored);
  });
  if (names.empty()) {
    throw Error(ErrorCode::internal, fmt::format("no stored name is known for {}", path));
  }
  return names;
}

std::vector<std::string> stacked_paths(const NameTable& table, std::string_view path,
                                       const StoredName& name) {
  // Blocks of other layers may store their weights by the same pattern: of all weights that are the
  // same part, the one whose path is most like this one is meant.
  std::map<std::uint8_t, std::string> parts;
  for_each_rule(table, [&](const ConcreteRule& rule) {
    const StoredLayout& layout = rule.stored.layout;
    if (rule.stored.pattern != name.pattern || layout.stacking == Stacking::alone) return;
    const std::string found = beside(path, rule.canonical);
    std::string& best = parts[layout.part];
    if (common_length(found, path) > common_length(best, path) || best.empty()) best = found;
  });
  std::vector<std::string> paths;
  paths.reserve(parts.size());
  for (const auto& [place, found] : parts) paths.push_back(found);
  return paths;
}

std::string filled(std::string_view pattern, std::int64_t layer, std::int64_t expert) {
  return replaced(replaced(pattern, "{}", std::to_string(layer)), "{e}", std::to_string(expert));
}

bool names_experts(std::string_view pattern) {
  return pattern.find("{e}") != std::string_view::npos;
}

}  // namespace headroom::checkpoint
