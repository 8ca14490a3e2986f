#include "live_formulas.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "describe.h"
#include "factored.h"
#include "html.h"
#include "legend.h"

namespace headroom::detail {
namespace {

/// Symbols of the workload that src/page/symbols.ts derives from the reader's choices.
constexpr std::array kTriedSymbols{
    Symbol::batch_size,   Symbol::seq_len,          Symbol::past_len,       Symbol::enc_seq_len,
    Symbol::visible_keys, Symbol::visible_pairs,    Symbol::windowed_keys,  Symbol::windowed_pairs,
    Symbol::chunk_keys,   Symbol::experts_read,     Symbol::weight_bytes,   Symbol::mask_bytes,
    Symbol::cast_bytes,   Symbol::activation_bytes, Symbol::kv_cache_bytes,
};

class FigureList {
 public:
  explicit FigureList(const AnalyzeReport& report) : report_(report) {}

  void add(std::string pointer, std::string title, std::string unit, const Expr& formula) {
    add_largest(std::move(pointer), std::move(title), std::move(unit), {formula});
  }

  /// The largest of `formulas`, each once.
  void add_largest(std::string pointer, std::string title, std::string unit,
                   const std::vector<Expr>& formulas) {
    LiveFigure figure{std::move(pointer), std::move(title), std::move(unit), {}, false};
    for (const Expr& formula : formulas) {
      Expr simple = collapse(formula, report_.graph.relations);
      if (std::ranges::find(figure.formulas, simple) == figure.formulas.end()) {
        figure.formulas.push_back(std::move(simple));
      }
    }
    figures_.push_back(std::move(figure));
  }

  std::vector<LiveFigure> finish() && { return std::move(figures_); }

 private:
  const AnalyzeReport& report_;
  std::vector<LiveFigure> figures_;
};

std::string operation_name(const AnalyzeReport& report) {
  return std::string(info(report.analysis.convention).unit);
}

void add_flops(const AnalyzeReport& report, FigureList& list) {
  const NodeCost& total = report.analysis.total;
  const bool training = report.workload.phase == Phase::train;
  const std::string unit = operation_name(report);
  list.add("/flops/forward/matrix", "Matrix FLOPs, forward", unit, total.forward.matrix_flops);
  if (training) {
    list.add("/flops/backward/matrix", "Matrix FLOPs, backward", unit, total.backward.matrix_flops);
  }
  list.add("/flops/forward/elementwise", "Elementwise FLOPs, forward", "FLOP",
           total.forward.elementwise_flops);
  list.add("/traffic/bytes_read", "Bytes read", "B", total.forward.bytes_read);
  list.add("/traffic/bytes_written", "Bytes written", "B", total.forward.bytes_written);
}

void add_activations(const AnalyzeReport& report, FigureList& list) {
  const Analysis& analysis = report.analysis;
  if (report.workload.phase == Phase::train) {
    list.add("/memory/saved_activation_bytes", "Saved for backward", "B",
             saved_bytes(analysis, report.workload.recompute));
  } else if (!analysis.live.empty()) {
    // The first of equal peaks is the report's, so its formula leads.
    std::vector<Expr> formulas{analysis.live[report.figures.peak_index].bytes};
    for (const LiveBytes& live : analysis.live) formulas.push_back(live.bytes);
    list.add_largest("/memory/peak_activation_bytes", "Peak activations", "B", formulas);
  }
}

std::string largest_result(const LiveFigure& figure, const Bindings& values) {
  Integer largest = 0;
  for (const Expr& formula : figure.formulas) {
    largest = std::max(largest, formula.evaluate(values));
  }
  return with_separators(largest);
}

/// Element sizes as numbers. Lengths stay letters, even where two are equal at this workload.
Expr shown_formula(const LiveFigure& figure, const Bindings& values) {
  Bindings types;
  for (const Symbol symbol : {Symbol::weight_bytes, Symbol::activation_bytes,
                              Symbol::kv_cache_bytes, Symbol::mask_bytes, Symbol::cast_bytes}) {
    types.set(symbol, *values.get(symbol));
  }
  return figure.formulas.front().substitute(types);
}

std::string figure_html(const LiveFigure& figure, const Bindings& values, Legend& legend) {
  const Expr formula = shown_formula(figure, values);
  std::string steps;
  if (!formula.constant()) {
    steps =
        fmt::format("= <span class=\"symbols\">{}</span>\n= <span class=\"numbers\">{}</span>\n",
                    html_escaped(legend.note(format_factored(formula))),
                    html_escaped(format_factored_with_values(formula, values)));
  }
  return fmt::format(
      "<figure class=\"formula\" data-figure=\"{}\"><figcaption>{}</figcaption>\n"
      "<pre tabindex=\"0\">{}= <b class=\"result\">{}</b> {}</pre></figure>\n",
      html_escaped(figure.pointer), html_escaped(figure.title), steps,
      largest_result(figure, values), html_escaped(figure.unit));
}

std::string legend_html(const Legend& legend, const Bindings& values) {
  std::string html = "<dl class=\"legend\">\n";
  for (const Symbol symbol : legend.noted()) {
    const SymbolInfo& about = info(symbol);
    const auto value = values.get(symbol);
    html += fmt::format(
        "<div><dt>{} = <span data-symbol=\"{}\">{}</span></dt><dd>{}{}</dd></div>\n",
        html_escaped(about.unicode), html_escaped(about.key), value ? to_string(*value) : "–",
        html_escaped(about.key),
        about.definition.empty() ? "" : fmt::format(": {}", html_escaped(about.definition)));
  }
  return html + "</dl>\n";
}

Json polynomial_json(const Expr& formula) {
  Json terms = Json::array();
  for (const Term& term : formula.terms()) {
    Json powers = Json::object();
    for (const SymbolInfo& symbol : symbols()) {
      const unsigned power = term.powers[index(symbol.symbol)];
      if (power > 0) powers[std::string(symbol.key)] = power;
    }
    // As text: a script's numbers have 53 bits.
    terms.push_back({to_string(term.coefficient), std::move(powers)});
  }
  return terms;
}

bool uses(const std::vector<LiveFigure>& figures, Symbol symbol) {
  const auto in_formula = [&](const Expr& formula) { return formula.degree(symbol) > 0; };
  return std::ranges::any_of(figures, [&](const LiveFigure& figure) {
    return std::ranges::any_of(figure.formulas, in_formula);
  });
}

std::string_view window_name(WindowKind kind) noexcept {
  switch (kind) {
    case WindowKind::none:
      return "none";
    case WindowKind::sliding:
      return "sliding";
    case WindowKind::chunked:
      return "chunked";
    case WindowKind::centred:
      break;
  }
  return "centred";
}

Json symbols_json(const AnalyzeReport& report, const std::vector<LiveFigure>& figures) {
  const Bindings values = bindings_of(report.workload, report.graph);
  Json json = Json::array();
  for (const SymbolInfo& symbol : symbols()) {
    const auto value = values.get(symbol.symbol);
    if (!value) continue;
    json.push_back({{"key", symbol.key},
                    {"letter", symbol.unicode},
                    {"definition", symbol.definition},
                    {"value", to_string(*value)},
                    {"used", uses(figures, symbol.symbol)}});
  }
  return json;
}

/// Symbols that the reader chooses; a length that no cost depends on is none.
Json inputs_json(const AnalyzeReport& report, const std::vector<LiveFigure>& figures) {
  Json inputs = {"batch_size", "seq_len"};
  const bool cached = !report.analysis.kv_cache.empty();
  if (cached && report.workload.phase != Phase::train) inputs.push_back("past_len");
  if (uses(figures, Symbol::enc_seq_len)) inputs.push_back("enc_seq_len");
  return inputs;
}

}  // namespace

std::vector<LiveFigure> live_figures(const AnalyzeReport& report) {
  const Analysis& analysis = report.analysis;
  FigureList list(report);
  list.add("/parameters/total", "Parameters", "parameters", analysis.parameters.total);
  list.add("/memory/weight_bytes", "Weights", "B", analysis.weight_bytes);
  add_flops(report, list);
  add_activations(report, list);
  if (!analysis.kv_cache.empty()) {
    list.add("/memory/kv_cache_bytes", "KV-cache", "B", kv_cache_bytes(analysis));
  }
  for (std::size_t i = 0; i < analysis.components.size(); ++i) {
    const ComponentAnalysis& component = analysis.components[i];
    if (component.cost.forward.matrix_flops.is_zero()) continue;
    list.add(fmt::format("/components/{}/forward/matrix", i),
             fmt::format("Matrix FLOPs of {}", name_of(component.component)),
             operation_name(report), component.cost.forward.matrix_flops);
  }
  std::vector<LiveFigure> figures = std::move(list).finish();
  for (LiveFigure& figure : figures) figure.is_part = figure.pointer.starts_with("/components/");
  return figures;
}

bool can_be_tried(const AnalyzeReport& report, const std::vector<LiveFigure>& figures) {
  if (report.workload.images.totals.images > 0) return false;   // the images have fixed lengths
  if (report.workload.audio.totals.segments > 0) return false;  // so have clips
  return std::ranges::none_of(symbols(), [&](const SymbolInfo& symbol) {
    const bool derived = std::ranges::find(kTriedSymbols, symbol.symbol) != kTriedSymbols.end();
    const bool fixed = report.graph.sizes.get(symbol.symbol).has_value();
    return !derived && !fixed && uses(figures, symbol.symbol);
  });
}

Json to_json(const AnalyzeReport& report, const std::vector<LiveFigure>& figures) {
  Json json;
  json["phase"] = name_of(report.workload.phase);
  json["dtype"] = name_of(report.workload.dtype);
  json["inputs"] = inputs_json(report, figures);
  const LayerTraits& traits = report.graph.traits;
  json["window"] = {{"kind", window_name(traits.window.kind)},
                    {"size", to_string(Integer{traits.window.size})}};
  json["experts"] = {{"routed", to_string(Integer{traits.num_experts})},
                     {"per_token", to_string(Integer{traits.num_experts_per_tok})}};
  json["symbols"] = symbols_json(report, figures);
  json["figures"] = Json::array();
  for (const LiveFigure& figure : figures) {
    Json formulas = Json::array();
    for (const Expr& formula : figure.formulas) formulas.push_back(polynomial_json(formula));
    json["figures"].push_back({{"pointer", figure.pointer}, {"formulas", std::move(formulas)}});
  }
  return json;
}

std::string live_formulas(const AnalyzeReport& report) {
  const std::vector<LiveFigure> figures = live_figures(report);
  const Bindings values = bindings_of(report.workload, report.graph);
  Legend legend;
  std::string totals;
  std::string parts;
  for (const LiveFigure& figure : figures) {
    (figure.is_part ? parts : totals) += figure_html(figure, values, legend);
  }
  std::string html = "<section class=\"live\">\n<h3>Formulas</h3>\n" + legend_html(legend, values) +
                     totals + "<details><summary>Matrix FLOPs by component</summary>\n" + parts +
                     "</details>\n";
  if (can_be_tried(report, figures)) {
    html += fmt::format("<script type=\"application/json\" class=\"formulas\">{}</script>\n",
                        script_json(to_compact_json_text(to_json(report, figures))));
  } else {
    html +=
        "<p>This model's counts (whole windows, selected keys or images) are not polynomials; run "
        "headroom again for another workload.</p>\n";
  }
  return html + "</section>\n";
}

}  // namespace headroom::detail
