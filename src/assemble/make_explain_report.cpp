// Selects the formulas of a figure and evaluates them.
#include <fmt/format.h>

#include <algorithm>

#include "analyze_model.h"
#include "derivation_steps.h"
#include "headroom/complexity.h"
#include "headroom/crossover.h"
#include "headroom/error.h"
#include "headroom/report.h"
#include "mixing_words.h"
#include "rules_of_thumb.h"
#include "setting_format.h"

namespace headroom {
namespace {

constexpr const char* kAtPeak = "at its peak, p + s + G − 1 tokens";

class Explainer {
 public:
  Explainer(AnalyzeReport analyzed, Subject subject, const KvCacheRequest& kv_cache,
            std::optional<std::int64_t> new_tokens)
      : analyzed_(std::move(analyzed)), kv_cache_(kv_cache), new_tokens_(new_tokens) {
    report_.subject = subject;
    report_.values = bindings_of(analyzed_.workload, analyzed_.graph);
    report_.relations = relations_of(analyzed_.workload);
    report_.relations.insert(report_.relations.end(), analyzed_.graph.relations.begin(),
                             analyzed_.graph.relations.end());
  }

  ExplainReport explain() && {
    switch (report_.subject) {
      case Subject::flops:
        explain_flops();
        break;
      case Subject::params:
        explain_parameters();
        break;
      case Subject::activations:
        explain_activations();
        break;
      case Subject::kv:
        explain_kv_cache();
        break;
      case Subject::elementwise:
      case Subject::training:
      case Subject::states:
        explain_steps();
        break;
    }
    add_rules();
    report_.model = std::move(analyzed_.model);
    report_.workload = analyzed_.workload;
    report_.notes = notes_on(analyzed_.workload, report_.model.spec);
    for (std::string& note : generation_notes_) {
      const bool known = std::ranges::find(report_.notes, note) != report_.notes.end();
      if (!known) report_.notes.push_back(std::move(note));
    }
    if (!report_.model.name_note.empty()) {
      report_.notes.insert(report_.notes.begin(), report_.model.name_note);
    }
    if (report_.subject == Subject::activations) {
      const auto more = notes_on_saved_tensors(analyzed_.workload, report_.model.spec);
      report_.notes.insert(report_.notes.end(), more.begin(), more.end());
    }
    if (report_.kv_cache) {
      const auto more = notes_on(*report_.kv_cache, analyzed_.workload);
      report_.notes.insert(report_.notes.end(), more.begin(), more.end());
    }
    return std::move(report_);
  }

 private:
  [[nodiscard]] ExplainedFigure figure(std::string name, const Expr& formula) const {
    return {std::move(name), collapse(formula, report_.relations),
            formula.evaluate(report_.values)};
  }

  void add_part(std::string name, const Expr& formula) {
    if (!formula.is_zero()) report_.parts.push_back(figure(std::move(name), formula));
  }

  void explain_flops() {
    report_.unit = "FLOP";
    const Analysis& analysis = analyzed_.analysis;
    const bool training = analyzed_.workload.phase == Phase::train;
    report_.whole = figure(training ? "matrix FLOPs, forward" : "matrix FLOPs",
                           analysis.total.forward.matrix_flops);
    for (const ComponentAnalysis& component : analysis.components) {
      add_part(name_of(component.component), component.cost.forward.matrix_flops);
    }
    add_part("backward", analysis.total.backward.matrix_flops);
    add_part("recomputed", analysis.recompute.matrix_flops);
    add_ffn_crossover();
  }

  void add_ffn_crossover() {
    const Workload& workload = analyzed_.workload;
    const ModelSpec& spec = analyzed_.model.spec;
    if (workload.phase != Phase::prefill || spec.reads_two_sequences()) return;
    try {
      const SharesReport shares = make_shares_report(analyzed_.model, workload.attention, {});
      if (!shares.attention_side || !shares.ffn_side) return;
      const detail::MixingWords words = detail::mixing_words(analyzed_);
      report_.ffn_crossover = {
          *shares.attention_side, *shares.ffn_side, shares.attention_passes_ffn, {}};
      if (words.has_scores) report_.ffn_crossover->with = detail::listed(words.others);
    } catch (const Error& error) {
      // Costs that are no polynomial in the length, as of chunked windows, have no crossover.
      if (error.code() != ErrorCode::invalid_input) throw;
    }
  }

  void explain_parameters() {
    report_.unit = "parameters";
    report_.whole = figure("parameters", analyzed_.analysis.parameters.total);
    for (const ComponentAnalysis& component : analyzed_.analysis.components) {
      add_part(name_of(component.component), component.parameters);
    }
  }

  void explain_activations() {
    report_.unit = "B";
    const Analysis& analysis = analyzed_.analysis;
    if (analyzed_.workload.phase == Phase::train) {
      explain_saved();
      return;
    }
    if (analysis.live.empty()) {
      throw Error(
          ErrorCode::invalid_input,
          fmt::format("{} has no operators, so it has no activations", analyzed_.model.spec.name),
          {}, fmt::format("choose another {}", Setting::subject));
    }
    const LiveBytes& peak = analysis.live[analyzed_.figures.peak_index];
    report_.whole = figure("peak at " + peak.path, peak.bytes);
    for (const LiveBytes& live : analysis.live) add_part(live.path, live.bytes);
  }

  void explain_saved() {
    const Recompute recompute = analyzed_.workload.recompute;
    report_.whole = figure("saved for backward", saved_bytes(analyzed_.analysis, recompute));
    if (recompute == Recompute::full) add_part("layer inputs", analyzed_.analysis.layer_inputs);
    for (const SavedTensor& saved : analyzed_.analysis.saved) {
      if (stays_saved(saved, recompute)) {
        add_part(fmt::format("{}: {}", saved.path, saved.what), saved.repeat * saved.bytes);
      }
    }
  }

  void explain_kv_cache() {
    report_.unit = "B";
    if (analyzed_.analysis.kv_cache.empty()) {
      throw Error(ErrorCode::invalid_input,
                  fmt::format("{} has no KV-cache in the {} phase", analyzed_.model.spec.name,
                              name_of(analyzed_.workload.phase)),
                  {},
                  fmt::format("choose another {}, or a decoder with {} prefill or decode",
                              Setting::subject, Setting::phase));
    }
    report_.kv_cache = analyzed_.kv_cache;
    const KvCacheUse& use = report_.kv_cache.value();
    const bool compresses = std::ranges::any_of(
        use.rows, [](const KvCacheRow& row) { return row.growth == KvGrowth::compressed; });
    const bool plain = has_plain_values(use) && !compresses;  // less than one entry per token
    plain ? explain_plain_cache() : explain_stored_cache(use);
    report_.cache_passes_weights = cache_passes_weights(analyzed_, kv_cache_);
  }

  void explain_plain_cache() {
    report_.whole = figure("KV-cache", kv_cache_bytes(analyzed_.analysis));
    const auto& entries = analyzed_.analysis.kv_cache;
    for (const CacheEntry& entry : entries) {
      if (entries.size() > 1) add_part(entry.path, entry.repeat * entry.bytes);
    }
    const WindowFill fill = window_fill(analyzed_.workload, analyzed_.graph.traits);
    report_.parts.push_back(
        figure("each further token", kv_cache_bytes_per_token(analyzed_.analysis, fill)));
    if (new_tokens_) explain_generation();
  }

  /// The last step of the generation, whose cache holds the prompt and all new tokens but the last,
  /// which no pass reads.
  [[nodiscard]] Workload last_step() {
    require_generates(analyzed_.model.spec);
    const Workload& prompt = analyzed_.workload;
    if (prompt.phase != Phase::prefill) {
      throw_invalid_input("a generation starts with the prefill of its prompt",
                          fmt::format("leave out {}, or the new tokens", Setting::phase));
    }
    Workload step = decode_step(prompt, *new_tokens_ - 1);
    generation_notes_ = notes_on(step, analyzed_.model.spec);
    return step;
  }

  void explain_generation() {
    const Workload step = last_step();
    const Graph graph = build_graph(analyzed_.model.spec, graph_options(step));
    report_.values.set(Symbol::new_tokens, *new_tokens_);
    // Windows and chosen keys have their values at that length.
    const Bindings at_end = bindings_of(step, graph);
    Expr bytes = kv_cache_bytes(analyze(graph))
                     .substitute(Symbol::visible_keys, Expr(Symbol::past_len) + Symbol::seq_len +
                                                           Symbol::new_tokens - Integer{1});
    for (const SymbolInfo& symbol : symbols()) {
      const bool depends = symbol.symbol != Symbol::past_len && symbol.symbol != Symbol::seq_len &&
                           !report_.values.get(symbol.symbol);
      const auto value = at_end.get(symbol.symbol);
      if (depends && value) bytes = bytes.substitute(symbol.symbol, *value);
    }
    for (const Symbol window : {Symbol::windowed_keys, Symbol::compressed_keys,
                                Symbol::heavily_compressed_keys, Symbol::chosen_keys}) {
      if (const auto value = at_end.get(window)) bytes = bytes.substitute(window, *value);
    }
    report_.parts.push_back(figure(kAtPeak, bytes));
  }

  void explain_stored_generation() {
    const Workload step = last_step();
    const ModelSpec& spec = analyzed_.model.spec;
    const Graph graph = build_graph(spec, graph_options(step));
    const Integer bytes = kv_cache_use(spec, graph, step, kv_cache_).value().used_bytes;
    report_.values.set(Symbol::new_tokens, *new_tokens_);
    report_.parts.push_back(figure(kAtPeak, Expr(bytes)));
  }

  /// Figures that are sums of steps alone.
  void explain_steps() {
    report_.unit = detail::unit_of(report_.subject);
    report_.whole = figure(std::string(name_of(report_.subject)),
                           detail::figure_of(analyzed_, report_.subject));
    for (const detail::PlacedStep& step : detail::steps_of(analyzed_, report_.subject)) {
      add_part(step.path, step.times * step.product);
    }
  }

  /// Types below 8 bits, and scales, have no whole bytes per element: bytes of a token are a
  /// number.
  void explain_stored_cache(const KvCacheUse& use) {
    const Integer batch = analyzed_.workload.batch_size;
    Expr whole;
    std::vector<ExplainedFigure> parts;
    for (std::size_t i = 0; i < use.rows.size(); ++i) {
      const KvCacheRow& row = use.rows[i];
      const Integer tokens = row.layers * batch * row.used_tokens * row.token_bytes;
      Expr formula = Integer{row.layers} * Expr(Symbol::batch_size) * tokens_of(row) *
                     Expr(Integer{row.token_bytes});
      formula += Expr(Integer{row.used_bytes - tokens});
      whole += formula;
      // Entries of the analysis are in order of the rows, and name their layers.
      parts.push_back(figure(analyzed_.analysis.kv_cache.at(i).path, formula));
    }
    report_.whole = figure("KV-cache", whole);
    if (parts.size() > 1) report_.parts = std::move(parts);
    report_.parts.push_back(figure("each further token", Expr(Integer{use.bytes_per_token})));
    if (new_tokens_) explain_stored_generation();
  }

  [[nodiscard]] static Expr tokens_of(const KvCacheRow& row) {
    switch (row.growth) {
      case KvGrowth::full:
        return Symbol::visible_keys;
      case KvGrowth::windowed:
        return Symbol::windowed_keys;
      case KvGrowth::compressed:
        return Integer{row.used_tokens};
      case KvGrowth::encoder:
        return Symbol::enc_seq_len;
      case KvGrowth::constant:
        break;
    }
    return Integer{1};
  }

  void add_rules() {
    // The rules count whole bytes per element.
    if (report_.kv_cache && !has_plain_values(*report_.kv_cache)) return;
    report_.rules = detail::rules_of_thumb(analyzed_, report_.subject);
    for (RuleOfThumb& rule : report_.rules) {
      rule.value = rule.formula.evaluate(report_.values);
      rule.exact = rule.exact_formula.evaluate(report_.values);
    }
  }

  AnalyzeReport analyzed_;
  const KvCacheRequest& kv_cache_;
  std::optional<std::int64_t> new_tokens_;
  std::vector<std::string> generation_notes_;
  ExplainReport report_;
};

}  // namespace

std::string_view name_of(Subject subject) noexcept {
  switch (subject) {
    case Subject::flops:
      return "flops";
    case Subject::params:
      return "params";
    case Subject::activations:
      return "activations";
    case Subject::kv:
      return "kv";
    case Subject::elementwise:
      return "elementwise";
    case Subject::training:
      return "training";
    case Subject::states:
      break;
  }
  return "states";
}

ExplainReport make_explain_report(Model model, const WorkloadRequest& request, Subject subject,
                                  const KvCacheRequest& kv_cache,
                                  std::optional<std::int64_t> new_tokens) {
  if (new_tokens && subject != Subject::kv) {
    throw_invalid_input("new tokens apply only to the KV-cache",
                        "leave them out, or explain the KV-cache");
  }
  AnalyzeReport analyzed =
      detail::analyze_model(std::move(model), request, Convention::headroom, kv_cache);
  return Explainer(std::move(analyzed), subject, kv_cache, new_tokens).explain();
}

}  // namespace headroom
