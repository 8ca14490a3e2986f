#include "rope.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "common_keys.h"

namespace headroom::detail {
namespace {

RopeScalingKind scaling_kind(ConfigReader& config) {
  // rope_type takes precedence; type is its former name.
  if (config.has("rope_type")) config.ignore({"type"});
  return config.choice_or<RopeScalingKind>({config.has("rope_type") ? "rope_type" : "type"},
                                           {{"default", RopeScalingKind::none},
                                            // Positions on three axes; equal for text.
                                            {"mrope", RopeScalingKind::none},
                                            // Over the whole head; see rotated_pairs.
                                            {"proportional", RopeScalingKind::none},
                                            {"linear", RopeScalingKind::linear},
                                            {"dynamic", RopeScalingKind::dynamic},
                                            {"xdrope", RopeScalingKind::dynamic},  // HunyuanOCR
                                            {"llama3", RopeScalingKind::llama3},
                                            {"yarn", RopeScalingKind::yarn},
                                            {"deepseek_yarn", RopeScalingKind::yarn},
                                            {"longrope", RopeScalingKind::longrope},
                                            {"su", RopeScalingKind::longrope}},
                                           RopeScalingKind::none);
}

/// Attention scale of YaRN: 0.1·k·ln(s) + 1 (arXiv 2309.00071, eq. 22).
double attention_scale(double factor, double mscale) {
  return factor <= 1 ? 1 : 0.1 * mscale * std::log(factor) + 1;
}

/// The context length in training, before RoPE scaling.
std::int64_t original_context(const RopeSpec& rope, const PositionSpec& position) {
  const std::int64_t original = rope.original_max_position_embeddings;
  return original > 0 ? original : position.max_position_embeddings;
}

void read_yarn(ConfigReader& config, const PositionSpec& position, RopeSpec& rope) {
  rope.original_max_position_embeddings = original_context(rope, position);
  if (!config.has("factor")) {
    rope.factor = static_cast<double>(position.max_position_embeddings) /
                  static_cast<double>(rope.original_max_position_embeddings);
  }
  rope.beta_fast = config.number_or({"beta_fast"}, rope.beta_fast);
  rope.beta_slow = config.number_or({"beta_slow"}, rope.beta_slow);
  rope.truncate = config.flag_or({"truncate"}, true);
  const double mscale = config.number_or({"mscale"}, 0);
  rope.mscale_all_dim = config.number_or({"mscale_all_dim"}, 0);
  const bool both = mscale != 0 && rope.mscale_all_dim != 0;
  const double derived = both ? attention_scale(rope.factor, mscale) /
                                    attention_scale(rope.factor, rope.mscale_all_dim)
                              : attention_scale(rope.factor, 1);
  rope.attention_factor = config.number_or({"attention_factor"}, derived);
}

void read_longrope(ConfigReader& config, const PositionSpec& position, RopeSpec& rope,
                   std::int64_t pairs) {
  rope.original_max_position_embeddings = original_context(rope, position);
  rope.short_factors = config.numbers("short_factor");
  rope.long_factors = config.numbers("long_factor");
  for (const auto& [key, factors] : {std::pair{"short_factor", &rope.short_factors},
                                     std::pair{"long_factor", &rope.long_factors}}) {
    if (std::ssize(*factors) == pairs) continue;
    config.fail(key,
                fmt::format("has {} factors for {} pairs of dimensions", factors->size(), pairs),
                "give one factor for each pair");
  }
  const auto original = static_cast<double>(rope.original_max_position_embeddings);
  const double factor = config.number_or(
      {"factor"}, static_cast<double>(position.max_position_embeddings) / original);
  if (factor > 1 && original <= 1 && !config.has("attention_factor")) {
    config.fail("original_max_position_embeddings", "gives no attention_factor: its logarithm is 0",
                "give the context length in training");
  }
  const double derived = factor <= 1 ? 1 : std::sqrt(1 + std::log(factor) / std::log(original));
  rope.attention_factor = config.number_or({"attention_factor"}, derived);
  // PhiMoE's names for these factors, within the original context and beyond it.
  rope.short_attention_factor = config.number_or({"short_mscale"}, rope.attention_factor);
  rope.attention_factor = config.number_or({"long_mscale"}, rope.attention_factor);
}

/// HunYuan's dynamic scaling with `alpha` grows the base once and for all: alpha^(d / (d - 2)).
void read_alpha(ConfigReader& config, std::int64_t head_dim, RopeSpec& rope) {
  const double alpha = config.number_or({"alpha"}, 0);
  if (alpha == 0 || rope.scaling != RopeScalingKind::dynamic) return;
  const auto dim = static_cast<double>(head_dim);
  rope.theta *= std::pow(alpha, dim / (dim - 2));
  rope.scaling = RopeScalingKind::none;
}

/// Positions on three axes (M-RoPE): pairs of each, consecutive or interleaved.
void read_axes(ConfigReader& config, RopeSpec& rope) {
  if (!config.has("mrope_section")) return;
  const std::vector<std::int64_t> sections = config.counts("mrope_section");
  if (sections.size() != rope.sections.size()) {
    config.fail("mrope_section", "does not have three numbers", "give the pairs of each axis");
  }
  std::ranges::copy(sections, rope.sections.begin());
  const bool interleaved = config.flag_or({"mrope_interleaved"}, false);
  rope.axes = interleaved ? RopeAxes::interleaved_sections : RopeAxes::sections;
}

void read_scaling(ConfigReader& config, const PositionSpec& position, std::int64_t head_dim,
                  RopeSpec& rope) {
  const bool proportional = config.is_text("rope_type", "proportional");
  rope.scaling = scaling_kind(config);
  rope.theta = config.number_or({"rope_theta"}, rope.theta);
  const double partial = config.number_or({"partial_rotary_factor"}, 0);
  const std::int64_t rotary_dim = truncated(config, "partial_rotary_factor", partial, head_dim);
  if (proportional && (partial != 0 || rope.rotary_dim > 0)) {
    rope.rotated_pairs = (partial != 0 ? rotary_dim : rope.rotary_dim) / 2;
    rope.rotary_dim = 0;  // the other pairs of the head have frequency 0
  } else if (partial != 0) {
    rope.rotary_dim = rotary_dim;
  }
  read_alpha(config, head_dim, rope);
  rope.factor = config.number_or({"factor"}, 1);
  rope.low_freq_factor = config.number_or({"low_freq_factor"}, 1);
  rope.high_freq_factor = config.number_or({"high_freq_factor"}, 1);
  rope.query_scaling_beta = config.number_or({"llama_4_scaling_beta"}, 0);
  const std::int64_t original = config.count_or({"original_max_position_embeddings"}, 0);
  if (original > 0) rope.original_max_position_embeddings = original;
  config.ignore({"max_position_embeddings"});  // no rule reads it here
  const std::int64_t dim = rope.rotary_dim == 0 ? head_dim : rope.rotary_dim;
  switch (rope.scaling) {
    case RopeScalingKind::none:
    case RopeScalingKind::linear:
    case RopeScalingKind::dynamic:
      break;
    case RopeScalingKind::llama3:
      for (const char* const key : {"low_freq_factor", "high_freq_factor"}) {
        if (!config.has(key)) config.fail(key, "is missing from a llama3 RoPE", "add it");
      }
      rope.original_max_position_embeddings = original_context(rope, position);
      break;
    case RopeScalingKind::yarn:
      read_yarn(config, position, rope);
      break;
    case RopeScalingKind::longrope:
      read_longrope(config, position, rope, dim / 2);
      break;
  }
  read_axes(config, rope);
  // Keys left over from other kinds of scaling.
  config.ignore({"attention_factor", "beta_fast", "beta_slow", "mscale", "mscale_all_dim",
                 "short_factor", "long_factor", "truncate", "finetuned", "attn_factor",
                 "mrope_interleaved", "interleaved", "xdrope_section"});
  config.finish();
}

}  // namespace

RopeSpec read_rope(ConfigReader& config, const PositionSpec& position, std::int64_t head_dim,
                   const RopeDefaults& defaults) {
  RopeSpec rope;
  rope.layout = defaults.layout;
  rope.theta = defaults.theta;
  const bool of_layers = defaults.by_layer_type && config.is_list("rope_theta");
  if (!of_layers) rope.theta = config.number_or({"rope_theta", "rotary_emb_base"}, rope.theta);
  const double partial =
      config.number_or({"partial_rotary_factor", "rotary_pct"}, defaults.partial_rotary_factor);
  if (partial <= 0 || partial > 1) {
    config.fail("partial_rotary_factor", fmt::format("{} is not a fraction of a head", partial),
                "write a number above 0 and at most 1");
  }
  if (partial < 1) {
    rope.rotary_dim = static_cast<std::int64_t>(static_cast<double>(head_dim) * partial);
  }
  rope.original_max_position_embeddings = config.count_or(
      {"original_max_position_embeddings"}, defaults.original_max_position_embeddings);
  auto scaling = config.object("rope_scaling");
  if (scaling && scaling->keys().empty()) scaling.reset();  // as if absent
  if (scaling) read_scaling(*scaling, position, head_dim, rope);
  auto parameters = defaults.by_layer_type ? std::nullopt : config.object("rope_parameters");
  if (scaling && parameters) {
    // Classes of transformers 4 read the first alone, and those of 5 prefer it.
    config.ignore({"rope_parameters"});
  } else if (parameters) {
    if (parameters->is_object("full_attention")) {
      config.fail("rope_parameters", "gives each kind of layer its own RoPE",
                  "write one RoPE: the layers of this family share it");
    }
    read_scaling(*parameters, position, head_dim, rope);
  }
  if (rope.rotary_dim % 2 != 0 || head_dim % 2 != 0) {
    config.fail(
        "partial_rotary_factor",
        fmt::format("{} of {} head dimensions do not form pairs", rope.rotary_dim, head_dim),
        "use an even number");
  }
  return rope;
}

RopeSpec read_rope_of(ConfigReader& config, std::string_view layer_type,
                      const PositionSpec& position, std::int64_t head_dim,
                      const RopeSpec& otherwise) {
  auto all = config.object("rope_parameters");
  if (!all) return otherwise;
  auto own = all->object(layer_type);
  if (!own) return otherwise;
  RopeSpec rope;
  rope.layout = otherwise.layout;
  rope.theta = otherwise.theta;
  read_scaling(*own, position, head_dim, rope);
  return rope;
}

std::optional<TemperatureTuning> query_scaling(const ConfigReader& config, const RopeSpec& rope) {
  if (rope.query_scaling_beta == 0) return std::nullopt;
  if (rope.original_max_position_embeddings <= 0) {
    config.fail(config.has("rope_parameters") ? "rope_parameters" : "rope_scaling",
                "has llama_4_scaling_beta, but no original_max_position_embeddings",
                "give the context length in training");
  }
  return TemperatureTuning{static_cast<double>(rope.original_max_position_embeddings),
                           rope.query_scaling_beta, TemperatureTuning::From::zero};
}

}  // namespace headroom::detail
