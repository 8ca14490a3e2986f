#include "names.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "headroom/error.h"
#include "stored_form.h"

namespace headroom::detail {
namespace {

// Buffers of older library versions, and parts of multimodal models.
constexpr std::array kCommonExtras{
    ExtraRule{"position_ids", ExtraKind::position_ids},
    ExtraRule{"rotary_emb.inv_freq", ExtraKind::rotary_buffer},
    ExtraRule{"attn.masked_bias", ExtraKind::causal_mask},
    ExtraRule{"attention.masked_bias", ExtraKind::causal_mask},
    ExtraRule{"e_score_correction_bias", ExtraKind::router_bias},
    ExtraRule{"expert_bias", ExtraKind::router_bias},
    ExtraRule{".k_scale", ExtraKind::kv_cache_scale},
    ExtraRule{".v_scale", ExtraKind::kv_cache_scale},
    ExtraRule{".q_scale", ExtraKind::kv_cache_scale},  // of the queries that read it
    ExtraRule{"k_proj.output_scale", ExtraKind::kv_cache_scale},
    ExtraRule{"v_proj.output_scale", ExtraKind::kv_cache_scale},
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

// Prefixes of the text model in a multimodal one.
constexpr std::array<std::string_view, 3> kCommonPrefixes{
    "language_model.model.", "model.language_model.", "language_model."};

// Tensors of queries, keys and values that are rows of one weight.
constexpr std::string_view kJoined = "{qkv}";
constexpr std::string_view kJoinedLetters = "qkv";

constexpr std::array<std::string_view, 2> kKinds{"weight", "bias"};

std::string replaced(std::string_view text, std::string_view placeholder, std::string_view value) {
  std::string result(text);
  const auto at = result.find(placeholder);
  if (at != std::string::npos) result.replace(at, placeholder.size(), value);
  return result;
}

/// One rule with % replaced.
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

/// Prefix of `path` before the rule's suffix; empty if the rule does not match. Linear attention's
/// encoder and decoder share their stored names.
std::optional<std::string_view> prefix_of(std::string_view path, std::string_view canonical) {
  if (!path.ends_with(canonical)) return std::nullopt;
  const std::string_view prefix = path.substr(0, path.size() - canonical.size());
  if (!prefix.empty() && !prefix.ends_with('.')) return std::nullopt;
  return prefix;
}

/// Likeness of two paths: the length of their common beginning, then equal numbers of words (those
/// of a dense network beside those of a shared expert).
std::pair<std::ptrdiff_t, bool> likeness(std::string_view a, std::string_view b) {
  return {std::ranges::mismatch(a, b).in1 - a.begin(),
          std::ranges::count(a, '.') == std::ranges::count(b, '.')};
}

/// Expands the suffix `canonical` to a path in the stack of `path`.
std::string path_in_stack_of(std::string_view path, std::string_view canonical) {
  const std::string first(canonical.substr(0, canonical.find('.') + 1));
  const auto dot = path.starts_with(first) ? std::string_view::npos : path.find("." + first);
  // npos + 1 is 0: nothing stands before the suffix.
  return std::string(path.substr(0, dot + 1)) + std::string(canonical);
}

/// The number among the words of `path`, of which none begins with a digit otherwise; empty if
/// there is none.
std::string_view number_in(std::string_view path) {
  constexpr std::string_view kDigits = "0123456789";
  for (auto dot = path.find('.'); dot != std::string_view::npos; dot = path.find('.', dot + 1)) {
    const std::string_view rest = path.substr(dot + 1);
    const std::string_view digits = rest.substr(0, rest.find_first_not_of(kDigits));
    if (!digits.empty()) return digits;
  }
  return {};
}

/// `rule` with {i} replaced by `number`.
ConcreteRule numbered(ConcreteRule rule, std::string_view number) {
  if (number.empty()) return rule;
  return {replaced(rule.canonical, "{i}", number),
          {replaced(rule.stored.pattern, "{i}", number), rule.stored.layout}};
}

template <class Visit>
void for_each_rule(const NameTable& table, Visit visit) {
  for (const auto& rules : table.rules) {
    for (const NameRule& rule : rules) visit(rule);
  }
}

/// `path` without "weight" or "bias" at its end.
std::string_view without_kind(std::string_view path) {
  for (const std::string_view kind : kKinds) {
    if (path.ends_with(kind)) return path.substr(0, path.size() - kind.size());
  }
  return path;
}

/// Returns false if no concrete rule of `rule`, which has % at its end only, matches `path`.
/// Rejects most rules without a copy of their text.
bool may_match(std::string_view path, const NameRule& rule) {
  const std::string_view text = rule.canonical;
  if (text.find('{') != std::string_view::npos) return true;
  if (text.ends_with('%')) return without_kind(path).ends_with(text.substr(0, text.size() - 1));
  return path.ends_with(text);
}

}  // namespace

NameTable name_table(const ModelSpec& spec) {
  NameTable table = safetensors_names(spec);
  table.extras.insert(table.extras.end(), kCommonExtras.begin(), kCommonExtras.end());
  table.optional_prefixes.insert(table.optional_prefixes.end(), kCommonPrefixes.begin(),
                                 kCommonPrefixes.end());
  return table;
}

std::span<const ExtraRule> common_extras() { return kCommonExtras; }

namespace {

/// Returns true if `name` ends with whole words: "h.0.c_attn.bias" does not end with "attn.bias".
bool ends_with_words(std::string_view name, std::string_view words) {
  if (!name.ends_with(words)) return false;
  const std::size_t before = name.size() - words.size();
  return before == 0 || words.front() == '.' || name[before - 1] == '.';
}

/// Comparing one character first rejects most names.
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

std::vector<StoredName> find_stored_names(const NameTable& table, std::string_view path) {
  std::vector<StoredName> names;
  const std::string_view number = number_in(path);
  for_each_rule(table, [&](const NameRule& general) {
    if (!may_match(path, general)) return;
    for (const ConcreteRule& concrete : concrete_rules(general)) {
      const ConcreteRule rule = numbered(concrete, number);
      if (prefix_of(path, rule.canonical)) names.push_back(rule.stored);
    }
  });
  return names;
}

std::vector<StoredName> stored_names(const NameTable& table, std::string_view path) {
  std::vector<StoredName> names = find_stored_names(table, path);
  if (names.empty()) {
    throw Error(ErrorCode::internal, fmt::format("no stored name for {}", path));
  }
  return names;
}

std::vector<std::string> stacked_paths(const NameTable& table, std::string_view path,
                                       const StoredName& name) {
  // Layers of other kinds may use one pattern: among weights of one part, take the path most like
  // this one.
  std::map<std::uint8_t, std::string> parts;
  for_each_rule(table, [&](const NameRule& general) {
    if (general.layout.stacking == Stacking::alone) return;
    for (const ConcreteRule& rule : concrete_rules(general)) {
      if (rule.stored.pattern != name.pattern) continue;
      const std::string found = path_in_stack_of(path, rule.canonical);
      std::string& best = parts[general.layout.part];
      if (best.empty() || likeness(found, path) > likeness(best, path)) best = found;
    }
  });
  std::vector<std::string> paths;
  paths.reserve(parts.size());
  for (const auto& [place, found] : parts) paths.push_back(found);
  return paths;
}

std::int64_t joined_tensors(std::string_view pattern) {
  return pattern.find(kJoined) == std::string_view::npos ? 1 : std::ssize(kJoinedLetters);
}

std::string filled(std::string_view pattern, std::int64_t layer, std::int64_t expert) {
  if (joined_tensors(pattern) > 1) {
    const std::string_view letter = kJoinedLetters.substr(static_cast<std::size_t>(expert), 1);
    return replaced(replaced(pattern, "{}", std::to_string(layer)), kJoined, letter);
  }
  return replaced(replaced(pattern, "{}", std::to_string(layer)), "{e}", std::to_string(expert));
}

bool names_layer(std::string_view pattern) { return pattern.find("{}") != std::string_view::npos; }

bool names_experts(std::string_view pattern) {
  return pattern.find("{e}") != std::string_view::npos;
}

}  // namespace headroom::detail
