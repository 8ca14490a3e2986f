#include "rules_of_thumb.h"

namespace headroom::detail {
namespace {

const Expr l = Symbol::num_hidden_layers;
const Expr m = Symbol::num_encoder_layers;
const Expr b = Symbol::batch_size;
const Expr s = Symbol::seq_len;
const Expr n = Symbol::enc_seq_len;
const Expr t = Symbol::visible_keys;
const Expr d = Symbol::hidden_size;
const Expr h = Symbol::num_attention_heads;
const Expr V = Symbol::vocab_size;

std::vector<RuleOfThumb> parameter_rules(const ModelSpec& spec) {
  if (spec.kind == ModelKind::attention_layer) {
    return {{"4·d² a layer", Integer{4} * l * d * d, 0,
             "four d × d projections (arXiv 1706.03762, section 3.2.2)"}};
  }
  if (spec.kind == ModelKind::encoder_decoder) {
    return {{"(12·m + 16·l)·d² + V·d", (Integer{12} * m + Integer{16} * l) * d * d + V * d, 0,
             "4·d² an attention, 8·d² an FFN; a decoder layer has two attentions"}};
  }
  return {{"12·l·d² + V·d", Integer{12} * l * d * d + V * d, 0,
           "Kaplan et al. 2020, arXiv 2001.08361, table 1, and the word embedding"},
          {"12·l·d²", Integer{12} * l * d * d, 0,
           "Kaplan et al. 2020, arXiv 2001.08361, section 2.1: without embeddings"}};
}

std::vector<RuleOfThumb> flop_rules(const ModelSpec& spec, const Expr& parameters) {
  std::vector<RuleOfThumb> rules;
  if (spec.kind == ModelKind::encoder_decoder) {
    return {{"2·N·b·(n + s)/2", parameters * b * (n + s), 0,
             "2 FLOP a parameter and token, half of the parameters in each stack"}};
  }
  rules.push_back({"2·N·b·s", Integer{2} * parameters * b * s, 0,
                   "2 FLOP a parameter and token (Kaplan et al. 2020, arXiv 2001.08361)"});
  const Expr layers = l * (Integer{24} * b * s * d * d + Integer{4} * b * s * t * d);
  if (spec.head.language_model) {
    rules.push_back({"24·b·s·l·d²·(1 + t/(6·d) + V/(12·l·d))", layers + Integer{2} * b * s * d * V,
                     0, "Narayanan et al. 2021, arXiv 2104.04473, eq. 3, forward part"});
  } else if (spec.kind != ModelKind::attention_layer) {
    rules.push_back({"24·b·s·l·d²·(1 + t/(6·d))", layers, 0,
                     "Narayanan et al. 2021, arXiv 2104.04473, eq. 3, layers only"});
  }
  return rules;
}

std::vector<RuleOfThumb> activation_rules(const Workload& workload) {
  if (workload.phase != Phase::train) return {};
  if (workload.recompute == Recompute::full) {
    return {{"2·l·b·s·d (16 bit)", Integer{2} * l * b * s * d, 0,
             "Korthikanti et al. 2022, arXiv 2205.05198, table 2"}};
  }
  const Expr linear = Integer{34} * l * b * s * d;
  if (workload.recompute == Recompute::selective) {
    return {
        {"34·l·b·s·d (16 bit)", linear, 0, "Korthikanti et al. 2022, arXiv 2205.05198, table 2"}};
  }
  return {{"l·(34·b·s·d + 5·b·s²·h) (16 bit)", linear + Integer{5} * l * b * s * s * h, 0,
           "Korthikanti et al. 2022, arXiv 2205.05198, eq. 2"}};
}

}  // namespace

std::vector<RuleOfThumb> rules_of_thumb(const ModelSpec& spec, const Workload& workload,
                                        Subject subject, const Expr& parameters) {
  switch (subject) {
    case Subject::params:
      return parameter_rules(spec);
    case Subject::flops:
      return flop_rules(spec, parameters);
    case Subject::activations:
      return activation_rules(workload);
    case Subject::kv:
      break;
  }
  return {{"2·l·b·t·d·bytes", Integer{2} * l * b * t * d * Symbol::kv_cache_bytes, 0,
           "keys and values of every head: right for multi-head attention only"}};
}

}  // namespace headroom::detail
