#include "rules_of_thumb.h"

#include "rule_differences.h"

namespace headroom::detail {
namespace {

/// The letters of expr.h, in a namespace of their own: other files name variables alike.
namespace letters {
const Expr l = Symbol::num_hidden_layers;
const Expr m = Symbol::num_encoder_layers;
const Expr b = Symbol::batch_size;
const Expr s = Symbol::seq_len;
const Expr n = Symbol::enc_seq_len;
const Expr t = Symbol::visible_keys;
const Expr d = Symbol::hidden_size;
const Expr h = Symbol::num_attention_heads;
const Expr V = Symbol::vocab_size;
}  // namespace letters

RuleOfThumb rule(std::string name, Expr formula, std::string estimates, Expr exact,
                 std::string source, Differences differences) {
  return {std::move(name),   std::move(formula),    0, std::move(estimates), std::move(exact), 0,
          std::move(source), std::move(differences)};
}

Expr layer_flops(const Analysis& analysis) {
  Expr flops;
  for (const NodeAnalysis& node : analysis.nodes) {
    const bool in_layer = node.path.find(".layers.") != std::string::npos;
    if (in_layer) flops += node.cost.forward.matrix_flops;
  }
  return flops;
}

/// Bytes that the layers save for the backward pass, without embeddings, head and loss.
Expr layer_saved_bytes(const Analysis& analysis, Recompute recompute) {
  const Expr all = saved_bytes(analysis, recompute);
  Expr outside;
  for (const SavedTensor& saved : analysis.saved) {
    if (saved.kept == KeptUnder::every_recompute) outside += saved.repeat * saved.bytes;
  }
  return all - outside;
}

std::vector<RuleOfThumb> parameter_rules(const ModelSpec& spec, const ParameterCount& count) {
  using namespace letters;
  switch (spec.kind) {
    case ModelKind::attention_layer:
    case ModelKind::cross_attention_layer:
      return {rule("4·l·d²", Integer{4} * l * d * d, "parameters", count.total,
                   "four d × d projections (arXiv 1706.03762, section 3.2.2)",
                   layer_parameter_differences(spec))};
    case ModelKind::recurrent_layer: {
      const Expr matrices = Integer{2} * gates_of(spec.main_stack().recurrent->cell) * l * d * d;
      return {rule(format(matrices), matrices, "parameters", count.total,
                   "two d × d matrices per gate: for the input and for the state", {"biases"})};
    }
    case ModelKind::convolution_layer:
      return {rule("κ·l·d²", l * d * d * Symbol::kernel_size, "parameters", count.total,
                   "a d × d matrix per kernel position (arXiv 1706.03762, table 1)", {"biases"})};
    case ModelKind::feed_forward_layer:
      return {rule("8·l·d²", Integer{8} * l * d * d, "parameters", count.total,
                   "intermediate size 4·d (arXiv 1706.03762, section 3.3)",
                   layer_parameter_differences(spec))};
    case ModelKind::denoiser:
      return {};
    case ModelKind::encoder:
    case ModelKind::decoder:
    case ModelKind::encoder_decoder:
      break;
  }
  if (spec.kind == ModelKind::encoder_decoder) {
    return {rule("(12·m + 16·l)·d² + V·d", (Integer{12} * m + Integer{16} * l) * d * d + V * d,
                 "parameters", count.total,
                 "4·d² per attention, 8·d² per FFN; a decoder layer has two attentions",
                 parameter_differences(spec))};
  }
  return {
      rule("12·l·d² + V·d", Integer{12} * l * d * d + V * d, "parameters", count.total,
           "Kaplan et al. 2020, arXiv 2001.08361, table 1, plus the word embedding",
           parameter_differences(spec)),
      rule("12·l·d²", Integer{12} * l * d * d, "layers", count.attention + count.mlp + count.norm,
           "Kaplan et al. 2020, arXiv 2001.08361, section 2.1", layer_parameter_differences(spec))};
}

/// N as Kaplan counts it: without embeddings and head. Of routed experts, only those that a token
/// uses compute.
Expr computing_parameters(const ParameterCount& count) {
  return count.active - count.embedding - count.relative_position_bias - count.head;
}

RuleOfThumb flops_per_parameter_rule(const ModelSpec& spec, const Workload& workload,
                                     const Analysis& analysis) {
  using namespace letters;
  const Expr parameters = computing_parameters(analysis.parameters);
  const Expr& whole = analysis.total.forward.matrix_flops;
  Differences differences = forward_per_parameter_differences(spec);
  if (spec.kind == ModelKind::encoder_decoder) {
    differences.emplace_back("more parameters in the decoder than in the encoder");
    if (workload.phase == Phase::decode) {
      return rule("2·N·b·s/2", parameters * b * s, "matrix FLOPs", whole,
                  "2 FLOP per token and parameter, N without embeddings; half of N in the decoder, "
                  "the only stack that a step runs",
                  std::move(differences));
    }
    return rule("2·N·b·(n + s)/2", parameters * b * (n + s), "matrix FLOPs", whole,
                "2 FLOP per token and parameter, N without embeddings; half of N in each stack",
                std::move(differences));
  }
  const bool routed = !analysis.parameters.routed_experts.is_zero();
  return rule(routed ? "2·N_active·b·s" : "2·N·b·s", Integer{2} * parameters * b * s,
              "matrix FLOPs", whole,
              routed ? "2 FLOP per token and parameter that it uses, N_active without embeddings"
                     : "2 FLOP per token and parameter, N without embeddings (Kaplan et al. 2020, "
                       "arXiv 2001.08361, section 2.1)",
              std::move(differences));
}

std::vector<RuleOfThumb> flop_rules(const ModelSpec& spec, const Workload& workload,
                                    const Analysis& analysis) {
  using namespace letters;
  if (spec.kind == ModelKind::denoiser) return {};
  std::vector<RuleOfThumb> rules{flops_per_parameter_rule(spec, workload, analysis)};
  if (spec.kind == ModelKind::encoder_decoder || spec.is_layer()) return rules;
  const Expr layers = l * (Integer{24} * b * s * d * d + Integer{4} * b * s * t * d);
  Differences differences = layer_flop_differences(spec, workload);
  rules.push_back(rule("24·b·s·l·d²·(1 + t/(6·d))", layers, "layers", layer_flops(analysis),
                       "Narayanan et al. 2021, arXiv 2104.04473, eq. 3, forward part",
                       differences));
  if (!spec.head.language_model) return rules;
  if (spec.head.language_model->transform) differences.emplace_back("a dense layer in the head");
  if (spec.embedding.embedding_size != 0) differences.emplace_back("a narrower embedding");
  rules.push_back(
      rule("24·b·s·l·d²·(1 + t/(6·d) + V/(12·l·d))", layers + Integer{2} * b * s * d * V,
           "matrix FLOPs", analysis.total.forward.matrix_flops,
           "Narayanan et al. 2021, arXiv 2104.04473, eq. 3, forward part", std::move(differences)));
  return rules;
}

/// 6·N·D: per token and parameter 2 FLOP forward, and twice that backward.
std::vector<RuleOfThumb> training_rules(const ModelSpec& spec, const Workload& workload,
                                        const Analysis& analysis) {
  using namespace letters;
  Differences differences = training_per_parameter_differences(spec);
  const bool recomputes = workload.recompute != Recompute::none;
  if (recomputes) differences.emplace_back("recomputation, a forward pass again");
  const Expr tokens = spec.kind == ModelKind::encoder_decoder ? b * (s + n) : b * s;
  const Expr exact = analysis.total.forward.matrix_flops + analysis.total.backward.matrix_flops +
                     analysis.recompute.matrix_flops;
  return {rule("6·N·D", Integer{6} * tokens * analysis.parameters.active, "training", exact,
               "2 FLOP per parameter and token forward and 4 backward, N active parameters with "
               "embeddings, D tokens (Kaplan et al. 2020, arXiv 2001.08361, section 2.1)",
               differences)};
}

std::vector<RuleOfThumb> activation_rules(const ModelSpec& spec, const Workload& workload,
                                          const Analysis& analysis) {
  using namespace letters;
  // The rules assume whole layers, in 16 bit.
  const bool applies = workload.phase == Phase::train && bytes_of(workload.dtype) == 2 &&
                       !spec.is_layer() && spec.kind != ModelKind::denoiser &&
                       spec.main_stack().ffn.kind != FfnKind::none;
  if (!applies) return {};
  const Expr layers = layer_saved_bytes(analysis, workload.recompute);
  const Expr linear = Integer{34} * l * b * s * d;
  switch (workload.recompute) {
    case Recompute::none:
      return {rule("l·(34·b·s·d + 5·b·s²·h)", linear + Integer{5} * l * b * s * s * h, "layers",
                   layers, "Korthikanti et al. 2022, arXiv 2205.05198, eq. 1",
                   saved_differences(spec, workload))};
    case Recompute::selective:
      return {rule("34·l·b·s·d", linear, "layers", layers,
                   "Korthikanti et al. 2022, arXiv 2205.05198, table 2",
                   saved_differences(spec, workload))};
    case Recompute::full:
      break;
  }
  return {rule("2·l·b·s·d", Integer{2} * l * b * s * d, "layers", layers,
               "Korthikanti et al. 2022, arXiv 2205.05198, table 2",
               saved_differences(spec, workload))};
}

}  // namespace

std::vector<RuleOfThumb> rules_of_thumb(const ModelSpec& spec, const Workload& workload,
                                        Subject subject, const Analysis& analysis) {
  using namespace letters;
  switch (subject) {
    case Subject::params:
      return parameter_rules(spec, analysis.parameters);
    case Subject::flops:
      return flop_rules(spec, workload, analysis);
    case Subject::activations:
      return activation_rules(spec, workload, analysis);
    case Subject::training:
      return training_rules(spec, workload, analysis);
    case Subject::elementwise:
    case Subject::states:
      return {};
    case Subject::kv:
      break;
  }
  return {rule("2·l·b·t·d·bytes", Integer{2} * l * b * t * d * Symbol::kv_cache_bytes, "KV-cache",
               kv_cache_bytes(analysis),
               "keys and values of all heads and tokens, of d dimensions each",
               kv_differences(spec))};
}

}  // namespace headroom::detail
