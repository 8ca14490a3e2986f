#include "rules_of_thumb.h"

#include <fmt/format.h>

#include "rule_differences.h"
#include "text_layers.h"

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

/// True if windows make `exact` less than all keys and pairs would: a window that the sequence
/// does not fill changes nothing, nor does one of a kernel that computes masked pairs.
bool windows_cut(const Expr& exact, const AnalyzeReport& report) {
  if (exact.degree(Symbol::chunked_tokens) > 0) return true;
  const Bindings values = bindings_of(report.workload, report.graph);
  const auto value = [&](Symbol symbol) { return values.get(symbol).value_or(0); };
  const bool keys = exact.degree(Symbol::windowed_keys) > 0 &&
                    value(Symbol::windowed_keys) < value(Symbol::visible_keys);
  const bool causal = report.graph.traits.window.kind != WindowKind::centred;
  const Integer all_pairs =
      causal ? value(Symbol::visible_pairs) : value(Symbol::seq_len) * value(Symbol::visible_keys);
  const bool pairs =
      exact.degree(Symbol::windowed_pairs) > 0 && value(Symbol::windowed_pairs) < all_pairs;
  return keys || pairs;
}

/// The differences of a figure of layers, with windows where these matter.
Differences with_windows(Differences differences, const Expr& exact, const AnalyzeReport& report) {
  if (windows_cut(exact, report)) differences.emplace_back("windows");
  return differences;
}

/// Adds the parts beside the text model, which only the exact figure counts.
Differences with_towers(Differences differences, const AnalyzeReport& report) {
  for (std::string& part : parts_beside_text(report.graph)) {
    differences.push_back(std::move(part));
  }
  return differences;
}

/// As above, of a figure that counts them only where the pass runs them.
Differences with_run_towers(Differences differences, const AnalyzeReport& report) {
  const bool runs = report.workload.images.count > 0 || report.workload.audio.count > 0;
  return runs ? with_towers(std::move(differences), report) : differences;
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

std::vector<RuleOfThumb> parameter_rules(const AnalyzeReport& report) {
  using namespace letters;
  const ModelSpec& spec = report.model.spec;
  const ParameterCount& count = report.analysis.parameters;
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
                 with_towers(parameter_differences(spec), report))};
  }
  return {
      rule("12·l·d² + V·d", Integer{12} * l * d * d + V * d, "parameters", count.total,
           "Kaplan et al. 2020, arXiv 2001.08361, table 1, plus the word embedding",
           with_towers(parameter_differences(spec), report)),
      rule("12·l·d²", Integer{12} * l * d * d, "layers", layer_parameters(report.graph),
           "Kaplan et al. 2020, arXiv 2001.08361, section 2.1", layer_parameter_differences(spec))};
}

/// The words behind N: those of the text model where it has parts beside it.
std::string scope_of_parameters(const AnalyzeReport& report) {
  return parts_beside_text(report.graph).empty() ? "" : " of the text model";
}

/// 2·N·b·s of an encoder-decoder, each of whose stacks has half of N.
RuleOfThumb flops_of_two_stacks(const AnalyzeReport& report) {
  using namespace letters;
  const ModelSpec& spec = report.model.spec;
  const Expr parameters = text_parameters(report.graph, spec.kind).without_embeddings;
  const Expr& whole = report.analysis.total.forward.matrix_flops;
  Differences differences = forward_per_parameter_differences(spec);
  differences.emplace_back("more parameters in the decoder than in the encoder");
  if (report.workload.phase == Phase::decode) {
    return rule("2·N·b·s/2", parameters * b * s, "matrix FLOPs", whole,
                "2 FLOP per token and parameter, N without embeddings; half of N in the decoder, "
                "the only stack that a step runs",
                std::move(differences));
  }
  return rule("2·N·b·(n + s)/2", parameters * b * (n + s), "matrix FLOPs", whole,
              "2 FLOP per token and parameter, N without embeddings; half of N in each stack",
              std::move(differences));
}

RuleOfThumb flops_per_parameter_rule(const AnalyzeReport& report) {
  using namespace letters;
  const ModelSpec& spec = report.model.spec;
  const Expr parameters = text_parameters(report.graph, spec.kind).without_embeddings;
  const std::string scope = scope_of_parameters(report);
  const bool routed = !report.analysis.parameters.routed_experts.is_zero();
  return rule(
      routed ? "2·N_active·b·s" : "2·N·b·s", Integer{2} * parameters * b * s, "matrix FLOPs",
      report.analysis.total.forward.matrix_flops,
      routed ? fmt::format("2 FLOP per token and parameter that it uses, N_active{} without "
                           "embeddings",
                           scope)
             : fmt::format("2 FLOP per token and parameter, N{} without embeddings (Kaplan et al. "
                           "2020, arXiv 2001.08361, section 2.1)",
                           scope),
      with_run_towers(forward_per_parameter_differences(spec), report));
}

/// Narayanan's rule with the head's V/(12·l·d).
RuleOfThumb flops_with_head_rule(const AnalyzeReport& report, const Expr& layers,
                                 Differences differences) {
  using namespace letters;
  const ModelSpec& spec = report.model.spec;
  if (spec.head.language_model->transform) differences.emplace_back("a dense layer in the head");
  if (spec.embedding.embedding_size != 0) differences.emplace_back("a narrower embedding");
  return rule("24·b·s·l·d²·(1 + t/(6·d) + V/(12·l·d))", layers + Integer{2} * b * s * d * V,
              "matrix FLOPs", report.analysis.total.forward.matrix_flops,
              "Narayanan et al. 2021, arXiv 2104.04473, eq. 3, forward part",
              with_run_towers(std::move(differences), report));
}

std::vector<RuleOfThumb> flop_rules(const AnalyzeReport& report) {
  using namespace letters;
  const ModelSpec& spec = report.model.spec;
  if (spec.kind == ModelKind::denoiser) return {};
  if (spec.kind == ModelKind::encoder_decoder) return {flops_of_two_stacks(report)};
  std::vector<RuleOfThumb> rules{flops_per_parameter_rule(report)};
  if (spec.is_layer()) return rules;
  const Expr layers = l * (Integer{24} * b * s * d * d + Integer{4} * b * s * t * d);
  const Expr exact = layer_flops(report.graph, report.analysis);
  const Differences differences =
      with_windows(layer_flop_differences(spec, report.workload), exact, report);
  rules.push_back(rule("24·b·s·l·d²·(1 + t/(6·d))", layers, "layers", exact,
                       "Narayanan et al. 2021, arXiv 2104.04473, eq. 3, forward part",
                       differences));
  if (spec.head.language_model) rules.push_back(flops_with_head_rule(report, layers, differences));
  return rules;
}

/// 6·N·D: per token and parameter 2 FLOP forward, and twice that backward.
std::vector<RuleOfThumb> training_rules(const AnalyzeReport& report) {
  using namespace letters;
  const ModelSpec& spec = report.model.spec;
  const Analysis& analysis = report.analysis;
  Differences differences = with_run_towers(training_per_parameter_differences(spec), report);
  const bool recomputes = report.workload.recompute != Recompute::none;
  if (recomputes) differences.emplace_back("recomputation, a forward pass again");
  const Expr tokens = spec.kind == ModelKind::encoder_decoder ? b * (s + n) : b * s;
  const Expr exact = analysis.total.forward.matrix_flops + analysis.total.backward.matrix_flops +
                     analysis.recompute.matrix_flops;
  const Expr parameters = text_parameters(report.graph, spec.kind).all;
  return {rule("6·N·D", Integer{6} * tokens * parameters, "training", exact,
               fmt::format("2 FLOP per parameter and token forward and 4 backward, N active "
                           "parameters{} with embeddings, D tokens (Kaplan et al. 2020, arXiv "
                           "2001.08361, section 2.1)",
                           scope_of_parameters(report)),
               std::move(differences))};
}

std::vector<RuleOfThumb> activation_rules(const AnalyzeReport& report) {
  using namespace letters;
  const ModelSpec& spec = report.model.spec;
  const Workload& workload = report.workload;
  // The rules assume whole layers, in 16 bit.
  const bool applies = workload.phase == Phase::train && bytes_of(workload.dtype) == 2 &&
                       !spec.is_layer() && spec.kind != ModelKind::denoiser &&
                       spec.main_stack().ffn.kind != FfnKind::none;
  if (!applies) return {};
  const Expr layers = layer_saved_bytes(report.analysis, workload.recompute);
  const Differences differences = with_windows(saved_differences(spec, workload), layers, report);
  const Expr linear = Integer{34} * l * b * s * d;
  switch (workload.recompute) {
    case Recompute::none:
      return {rule("l·(34·b·s·d + 5·b·s²·h)", linear + Integer{5} * l * b * s * s * h, "layers",
                   layers, "Korthikanti et al. 2022, arXiv 2205.05198, eq. 1", differences)};
    case Recompute::selective:
      return {rule("34·l·b·s·d", linear, "layers", layers,
                   "Korthikanti et al. 2022, arXiv 2205.05198, table 2", differences)};
    case Recompute::full:
      break;
  }
  return {rule("2·l·b·s·d", Integer{2} * l * b * s * d, "layers", layers,
               "Korthikanti et al. 2022, arXiv 2205.05198, table 2", differences)};
}

}  // namespace

std::vector<RuleOfThumb> rules_of_thumb(const AnalyzeReport& report, Subject subject) {
  using namespace letters;
  switch (subject) {
    case Subject::params:
      return parameter_rules(report);
    case Subject::flops:
      return flop_rules(report);
    case Subject::activations:
      return activation_rules(report);
    case Subject::training:
      return training_rules(report);
    case Subject::elementwise:
    case Subject::states:
      return {};
    case Subject::kv:
      break;
  }
  const Expr exact = kv_cache_bytes(report.analysis);
  return {rule("2·l·b·t·d·bytes", Integer{2} * l * b * t * d * Symbol::kv_cache_bytes, "KV-cache",
               exact, "keys and values of all heads and tokens, of d dimensions each",
               with_windows(kv_differences(report.model.spec), exact, report))};
}

}  // namespace headroom::detail
