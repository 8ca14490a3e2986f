#include "claim_terms.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "text_layers.h"

namespace headroom::detail {
namespace {

/// Collects the terms of one figure.
class TermCollector {
 public:
  TermCollector(const AnalyzeReport& report, const Bindings& values)
      : report_(report), values_(values) {}

  void add(std::string name, std::string choice, const Expr& formula) {
    const Integer value = formula.evaluate(values_);
    if (value == 0) return;
    const auto same = std::ranges::find_if(
        options_, [&](const ClaimOption& option) { return option.term.value == value; });
    if (same == options_.end()) {
      options_.push_back({{std::move(name), formula, value}, std::move(choice)});
    } else if (same->term.name.find(name) == std::string::npos) {
      same->term.name += ", or " + name;
    }
  }

  std::vector<ClaimOption> take() && { return std::move(options_); }

  void add_flops() {
    const bool trains = report_.workload.phase == Phase::train;
    const Expr tokens = Expr(Symbol::batch_size) * Symbol::seq_len;
    const Expr each = Integer{trains ? 6 : 2} * tokens;
    const char* const rate = trains ? "2 FLOP forward and 4 backward" : "2 FLOP";
    const ParameterCount& parameters = report_.analysis.parameters;
    const auto weights = [&](const std::string& name, const Expr& count) {
      add(fmt::format("{} at {} per token", name, rate), name, each * count);
    };
    weights("norm weights", parameters.norm);
    weights("embedding weights", parameters.embedding);
    weights("biases", biases());
    weights("experts that no token is routed to", parameters.total - parameters.active);
    for (const Weight& weight : report_.graph.weights) {
      if (is_one_of_tables(weight)) weights(weight.path, weight.repeat * weight.elements());
    }
    Expr pairs;
    Expr cross;
    for (const ComponentAnalysis& component : report_.analysis.components) {
      const Expr flops = component.cost.forward.matrix_flops + component.cost.backward.matrix_flops;
      const std::string name = name_of(component.component);
      add("without " + name, name, Integer{-1} * flops);
      const Part part = component.component.part;
      if (is_core(part)) pairs += flops;
      if (name.find("cross_attention") != std::string::npos) cross += flops;
    }
    add("without attention's scores and contexts", "pairs", Integer{-1} * pairs);
    add("without cross-attention", "cross", Integer{-1} * cross);
    add_half(pairs);
    const Analysis& analysis = report_.analysis;
    add("without the backward pass", "backward",
        Integer{-1} * analysis.total.backward.matrix_flops);
    add("without recomputation", "recompute", Integer{-1} * analysis.recompute.matrix_flops);
    add("layers' forward pass again", "recompute", layer_flops(report_.graph, analysis));
    add("element-wise FLOPs", "element-wise",
        analysis.total.forward.elementwise_flops + analysis.total.backward.elementwise_flops);
    add_conventions();
  }

  void add_parameters() {
    const ParameterCount& parameters = report_.analysis.parameters;
    const auto without = [&](const std::string& name, const Expr& count) {
      add("without " + name, name, Integer{-1} * count);
    };
    without("embeddings", parameters.embedding);
    without("norms", parameters.norm);
    without("the head", parameters.head);
    without("biases", biases());
    without("experts that no token is routed to", parameters.total - parameters.active);
    without("all routed experts", parameters.routed_experts);
    for (const ComponentAnalysis& component : report_.analysis.components) {
      // The head's weights have a term already.
      const bool named =
          component.component.part == Part::head && component.parameters == parameters.head;
      if (!named) without(name_of(component.component), component.parameters);
    }
    std::map<std::string, Expr> biases_of;
    for (const Weight& weight : report_.graph.weights) {
      const Expr count = weight.repeat * weight.elements();
      if (weight.kind == WeightKind::buffer) {
        add("buffer " + weight.path, weight.path, count);
        continue;
      }
      if (is_bias(weight)) biases_of[name_of(weight.component)] += count;
      if (is_one_of_tables(weight)) without(weight.path, count);
    }
    for (const auto& [name, count] : biases_of) without("biases of " + name, count);
    const auto& head = report_.model.spec.head.language_model;
    if (head && head->weight != WeightSharing::separate) {
      add("the tied head counted again", "tied head",
          Expr(Symbol::vocab_size) * (report_.model.spec.embedding.embedding_size == 0
                                          ? Expr(Symbol::hidden_size)
                                          : Expr(Symbol::embedding_size)));
    }
  }

  void add_cache() {
    const Analysis& analysis = report_.analysis;
    const Expr ours = kv_cache_bytes(analysis);
    for (const CacheEntry& entry : analysis.kv_cache) {
      add("without " + entry.path, entry.path, Integer{-1} * (entry.repeat * entry.bytes));
    }
    const Expr layers{Integer{report_.model.spec.main_stack().num_layers}};
    const Expr entries = Expr(Symbol::batch_size) * Symbol::visible_keys * Symbol::kv_cache_bytes;
    const auto instead = [&](const std::string& name, const Expr& bytes) {
      add(name, "all layers", bytes - ours);
    };
    if (!report_.model.spec.has_attention()) return;
    instead("keys and values of d each in every layer: grouped or latent heads ignored",
            Integer{2} * layers * entries * Symbol::hidden_size);
    const AttentionSpec* attention = full_attention();
    if (attention == nullptr) return;
    const Expr key_value{Integer{attention->head_dim} + Integer{attention->value_head_dim}};
    instead("keys and values of all query heads in every layer: grouped or latent heads ignored",
            layers * entries * Integer{attention->num_attention_heads} * key_value);
    instead("full attention's cache in every layer: windows or recurrent states ignored",
            layers * entries * Integer{attention->num_key_value_heads} * key_value);
  }

  void add_saved() {
    Expr masks;
    Expr statistics;
    Expr inputs;
    Expr outside;
    Expr core;
    std::map<std::string, Expr> by_group;
    for (const SavedTensor& saved : report_.analysis.saved) {
      if (!stays_saved(saved, report_.workload.recompute)) continue;
      const Expr bytes = saved.repeat * saved.bytes;
      if (saved.kind == SavedKind::mask) masks += bytes;
      if (saved.kind == SavedKind::statistic) statistics += bytes;
      if (saved.kind == SavedKind::input_data) inputs += bytes;
      if (saved.kept == KeptUnder::every_recompute) outside += bytes;
      if (saved.kept == KeptUnder::none) core += bytes;
      by_group[saved.path.substr(0, saved.path.find('['))] += bytes;
    }
    add("without dropout masks", "masks", Integer{-1} * masks);
    add("without statistics of norms and losses", "statistics", Integer{-1} * statistics);
    add("without ids and other input data", "inputs", Integer{-1} * inputs);
    add("without all outside the layers", "outside", Integer{-1} * outside);
    add("without scores and probabilities", "core", Integer{-1} * core);
    for (const auto& [path, bytes] : by_group) add("without " + path, path, Integer{-1} * bytes);
  }

 private:
  static bool is_core(Part part) {
    return part == Part::attention_scores || part == Part::attention_context ||
           part == Part::attention_core || part == Part::cross_attention_scores ||
           part == Part::cross_attention_context || part == Part::cross_attention_core;
  }

  /// True for one table of embeddings among several: a single one has the term of all embeddings.
  [[nodiscard]] bool is_one_of_tables(const Weight& weight) const {
    return weight.role == WeightRole::embedding && weight.kind == WeightKind::parameter &&
           weight.repeat * weight.elements() != report_.analysis.parameters.embedding;
  }

  static bool is_bias(const Weight& weight) { return weight.path.ends_with(".bias"); }

  [[nodiscard]] Expr biases() const {
    Expr count;
    for (const Weight& weight : report_.graph.weights) {
      const bool counts = is_bias(weight) && weight.role != WeightRole::norm;
      if (counts && weight.kind == WeightKind::parameter)
        count += weight.repeat * weight.elements();
    }
    return count;
  }

  /// The first layer's attention that caches every key.
  [[nodiscard]] const AttentionSpec* full_attention() const {
    const StackSpec& stack = report_.model.spec.main_stack();
    for (std::size_t variant = 0; variant <= stack.variants.size(); ++variant) {
      const AttentionSpec& attention = stack.attention_of(variant);
      const bool full =
          attention.kind == AttentionKind::softmax && attention.num_attention_heads > 0;
      if (full && attention.window.kind == WindowKind::none) return &attention;
    }
    return nullptr;
  }

  /// Half of the pairs, where each coefficient is even.
  void add_half(const Expr& pairs) {
    std::vector<Term> terms(pairs.terms().begin(), pairs.terms().end());
    for (Term& term : terms) {
      if (term.coefficient % 2 != 0) return;
      term.coefficient /= -2;
    }
    add("half of attention's pairs, as under a causal mask", "pairs", Expr::from_terms(terms));
  }

  void add_conventions() {
    const Analysis& ours = report_.analysis;
    const Expr all = ours.total.forward.matrix_flops + ours.total.backward.matrix_flops;
    for (const ConventionInfo& convention : conventions()) {
      const bool other_unit = convention.convention == Convention::fvcore ||
                              convention.convention == Convention::headroom;
      if (other_unit) continue;
      AnalysisOptions options;
      options.convention = convention.convention;
      options.recompute = report_.workload.recompute;
      options.kernels = report_.workload.kernels;
      const Analysis theirs = analyze(report_.graph, options);
      add(fmt::format("convention of {}", convention.name), "convention",
          theirs.total.forward.matrix_flops + theirs.total.backward.matrix_flops - all);
    }
  }

  const AnalyzeReport& report_;
  const Bindings& values_;
  std::vector<ClaimOption> options_;
};

Integer tokens_of(const Workload& workload, Subject subject) {
  const Integer length = subject == Subject::kv
                             ? Integer{workload.past_len} + Integer{workload.seq_len}
                             : Integer{workload.seq_len};
  return Integer{workload.batch_size} * length;
}

}  // namespace

std::vector<ClaimOption> claim_options(const AnalyzeReport& report, Subject subject,
                                       const Bindings& values) {
  TermCollector terms(report, values);
  switch (subject) {
    case Subject::flops:
    case Subject::training:
      terms.add_flops();
      break;
    case Subject::params:
      terms.add_parameters();
      break;
    case Subject::kv:
      terms.add_cache();
      break;
    case Subject::activations:
      terms.add_saved();
      break;
    case Subject::elementwise:
    case Subject::states:
      break;
  }
  return std::move(terms).take();
}

std::vector<ClaimScale> claim_scales(const AnalyzeReport& report, Subject subject) {
  std::vector<ClaimScale> scales{{}};
  const Integer tokens = tokens_of(report.workload, subject);
  const Integer batch = report.workload.batch_size;
  const auto add = [&](const char* name, Integer numerator, Integer denominator) {
    if (numerator != denominator) scales.push_back({name, numerator, denominator});
  };
  switch (subject) {
    case Subject::flops:
    case Subject::training:
    case Subject::elementwise:
      add("per token", 1, tokens);
      add("per sequence", 1, batch);
      add("in multiply–adds", 1, 2);
      add("in multiply–adds per token", 1, 2 * tokens);
      break;
    case Subject::kv:
    case Subject::activations:
      add("per token", 1, tokens);
      add("per sequence", 1, batch);
      add("with half the bytes per element, or keys or values alone", 1, 2);
      add("with half the bytes per element, or keys or values alone, per token", 1, 2 * tokens);
      add("with twice the bytes per element", 2, 1);
      add("with twice the bytes per element, per token", 2, tokens);
      break;
    case Subject::params:
      add("as bytes of 2 per parameter", 2, 1);
      add("as bytes of 4 per parameter", 4, 1);
      add("as packed 4-bit values in 32-bit words", 1, 8);
      break;
    case Subject::states:
      add("per parameter", 1, report.figures.parameters);
      break;
  }
  return scales;
}

}  // namespace headroom::detail
