// ComplexityReport -> Document: orders of growth, formulas, figures at the longest length, and
// measurements.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include "describe.h"
#include "study_words.h"
#include "units.h"
#include "with_noun.h"
#include "writers.h"

namespace headroom::detail {
namespace {

std::string sequential_order(const LayerComplexity& layer) {
  return format(layer.sequential_growth);
}

Table order_table(const ComplexityReport& report) {
  Table table;
  table.columns = {words_column("layer", "Layer"),
                   words_column("core_order", "Token mixing"),
                   words_column("order", "Whole layer"),
                   words_column("sequential_order", "Sequential ops"),
                   words_column("path_order", "Max path", Importance::optional),
                   words_column("memory_order", "Memory", Importance::optional)};
  for (const LayerStudy& study : report.layers) {
    const LayerComplexity& layer = study.layer;
    table.rows.push_back({name_of(layer),
                          std::string(layer.core ? format(layer.core->growth) : "–"),
                          format(layer.flops.growth), sequential_order(layer), layer.path.order,
                          format(layer.activation_bytes.growth)});
  }
  return table;
}

void add_formulas(const ComplexityReport& report, Document& document) {
  document.blocks.push_back(Heading{"Matrix FLOPs of one sequence"});
  for (const LayerStudy& study : report.layers) {
    const LayerComplexity& layer = study.layer;
    document.add_line(name_of(layer), format(layer.flops.formula));
    const bool differs = layer.core && layer.core->formula != layer.flops.formula;
    if (!differs) continue;
    document.add_line("", "token mixing " + format(layer.core->formula));
  }
}

Table longest_table(const ComplexityReport& report) {
  const std::int64_t longest = report.lengths.back();
  Integer flops = 0;
  Integer bytes = 0;
  for (const LayerStudy& study : report.layers) {
    flops = std::max(flops, study.layer.flops.by_length.at(longest));
    bytes = std::max(bytes, study.layer.activation_bytes.by_length.at(longest));
  }
  Table table;
  table.columns = {
      words_column("layer", "Layer"),
      number_column("matrix_flops", "Matrix",
                    in_unit(operation_unit(flops, OperationUnit::flop), 3)),
      number_column("activation_bytes", "Activations", in_unit(byte_unit(bytes), 2)),
      number_column("parameters", "Parameters"),
      number_column("path_steps", "Path", {"[steps]", 0}),
      number_column("state_bytes_per_token", "State", {"[B/token]", 0}, Importance::optional),
      number_column("state_bytes", "State", {"[B]", 0})};
  for (const LayerStudy& study : report.layers) {
    const LayerComplexity& layer = study.layer;
    const auto steps = steps_between_ends(layer.path, longest);
    table.rows.push_back({name_of(layer), layer.flops.by_length.at(longest),
                          layer.activation_bytes.by_length.at(longest), layer.parameters,
                          steps ? Cell{Integer{*steps}} : Cell{},
                          cell_or_none(layer.state_bytes_per_token),
                          cell_or_none(layer.state_bytes)});
  }
  return table;
}

/// Tokens and state of an encoder, if the layer has one.
void add_encoder_remark(const LayerComplexity& layer, Document& document) {
  if (!layer.state_bytes_per_token || !layer.state_bytes_per_encoder_token) return;
  const Integer of_encoder = *layer.state_bytes_per_encoder_token;
  document.add_line(
      name_of(layer),
      fmt::format("the encoder reads as many tokens as the decoder; a token of the decoder adds {} "
                  "B of state, a token of the encoder {} B",
                  with_separators(*layer.state_bytes_per_token - of_encoder),
                  with_separators(of_encoder)));
}

void add_remarks(const ComplexityReport& report, Document& document) {
  for (const LayerStudy& study : report.layers) {
    const LayerComplexity& layer = study.layer;
    add_encoder_remark(layer, document);
    if (layer.parallel_growth) {
      document.add_line(name_of(layer),
                        fmt::format("{} sequential operations as a running state, as it runs "
                                    "here; {} as a parallel prefix sum",
                                    sequential_order(layer), format(*layer.parallel_growth)));
    }
    if (layer.path.receptive_field && layer.path.growth != PathGrowth::never) {
      const std::size_t layers = layer.path.reaches.size();
      document.add_line(name_of(layer),
                        fmt::format("receptive field of {}: {} positions",
                                    with_noun(static_cast<Integer>(layers), "layer"),
                                    *layer.path.receptive_field));
    }
  }
}

void add_skipped(const ComplexityReport& report, Document& document) {
  for (const LayerStudy& study : report.layers) {
    for (const SkippedRun& skipped : study.times.skipped) {
      document.add_line("not run", fmt::format("{} at s = {}: {}", name_of(study.layer),
                                               skipped.seq_len, skipped.reason));
    }
  }
}

Cell measured_cell(const LayerStudy& study, std::int64_t length, double LengthRun::*time) {
  const auto& runs = study.times.runs;
  const auto run = std::ranges::find(runs, length, &LengthRun::seq_len);
  return run == runs.end() ? Cell{} : Cell{(*run).*time};
}

Cell predicted_cell(const LayerStudy& study, std::int64_t length) {
  const auto& runs = study.times.predicted;
  const auto run = std::ranges::find(runs, length, &PredictedRun::seq_len);
  return run == runs.end() ? Cell{} : Cell{run->time_s};
}

Cell measured_time(const LayerStudy& study, std::int64_t length) {
  return measured_cell(study, length, &LengthRun::time_s);
}

/// A layer's time at a length.
using TimeCell = Cell (*)(const LayerStudy&, std::int64_t);

Table time_table(std::span<const LayerStudy> layers, const std::vector<std::int64_t>& lengths,
                 TimeCell time_of) {
  Table table;
  table.columns = {number_column("seq_len", "s", {"", 0})};
  for (const LayerStudy& study : layers) {
    table.columns.push_back(milliseconds_column("time_s", name_of(study.layer)));
  }
  for (const std::int64_t length : lengths) {
    std::vector<Cell> row{Integer{length}};
    row.reserve(layers.size() + 1);
    for (const LayerStudy& study : layers) row.push_back(time_of(study, length));
    table.rows.push_back(std::move(row));
  }
  return table;
}

/// Layers at the start of `layers`, at least one, whose times fit a line of 80 columns beside
/// lengths such as 1,048,576.
std::size_t layers_side_by_side(std::span<const LayerStudy> layers) {
  constexpr std::size_t kWidth = 80;
  constexpr std::size_t kLengthWidth = 9;
  constexpr std::size_t kTimeWidth = 9;
  constexpr std::size_t kGap = 2;
  std::size_t width = kLengthWidth;
  std::size_t count = 0;
  for (const LayerStudy& study : layers) {
    width += kGap + std::max(kTimeWidth, display_width(name_of(study.layer)));
    if (width > kWidth) break;
    ++count;
  }
  return std::max<std::size_t>(1, count);
}

/// Each layer has a column; those that a line has no room for follow in further tables.
void add_times(std::string heading, TimeCell time_of, const ComplexityReport& report,
               Document& document) {
  std::span<const LayerStudy> left = report.layers;
  while (!left.empty()) {
    document.blocks.push_back(Heading{std::exchange(heading, "Further layers")});
    const std::size_t count = layers_side_by_side(left);
    document.blocks.push_back(time_table(left.first(count), report.lengths, time_of));
    left = left.subspan(count);
  }
}

bool has_predictions(const ComplexityReport& report) {
  return std::ranges::any_of(
      report.layers, [](const LayerStudy& study) { return !study.times.predicted.empty(); });
}

/// "s = 100", "s = 64 to 16384".
std::string lengths_text(const std::vector<std::int64_t>& lengths) {
  const std::string first = fmt::format("s = {}", lengths.front());
  return lengths.size() == 1 ? first : fmt::format("{} to {}", first, lengths.back());
}

std::string workload_text(const ComplexityReport& report) {
  const bool two_sequences = std::ranges::any_of(report.layers, [](const LayerStudy& study) {
    return study.layer.model.spec.reads_two_sequences();
  });
  return fmt::format("one sequence, {}{} · float32", lengths_text(report.lengths),
                     two_sequences ? " · n = s" : "");
}

}  // namespace

Legend legend_of(const ComplexityReport& report) {
  Legend legend;
  const auto note = [&](const GrowingCost& cost) {
    legend.note(format(cost.formula));
    legend.note(format(cost.growth));
  };
  legend.note(format(Symbol::seq_len));
  for (const LayerStudy& study : report.layers) {
    const LayerComplexity& layer = study.layer;
    note(layer.flops);
    if (layer.core) note(*layer.core);
    legend.note(format(layer.activation_bytes.growth));
    legend.note(layer.path.order);
    if (layer.model.spec.reads_two_sequences()) legend.note(format(Symbol::enc_seq_len));
  }
  return legend;
}

const std::string& name_of(const LayerComplexity& layer) { return layer.model.spec.name; }

void add_machines(const std::string& predicted, const std::optional<MachineContext>& measured,
                  Document& document) {
  if (measured) {
    document.add_line(
        "measured", fmt::format("{} · {} · {}", measured->cpu, describe_threads(measured->threads),
                                measured->backend));
  }
  if (!predicted.empty()) document.add_line("predicted", "for " + predicted);
}

Document to_document(const ComplexityReport& report) {
  Document document;
  add_lines(legend_of(report).lines(), document);
  document.add_line("workload", workload_text(report));
  add_machines(report.machine, report.context, document);
  document.blocks.push_back(order_table(report));
  add_remarks(report, document);
  add_formulas(report, document);
  document.blocks.push_back(Heading{fmt::format("At s = {}", report.lengths.back())});
  document.blocks.push_back(longest_table(report));
  add_crossovers(report, document);
  if (report.context) add_exponents(report, document);
  if (has_predictions(report)) {
    add_times("Predicted time", predicted_cell, report, document);
  }
  if (!report.context) return document;
  add_times("Measured time, fastest run", measured_time, report, document);
  add_skipped(report, document);
  return document;
}

Document to_length_table(const ComplexityReport& report) {
  Table table;
  table.columns = {words_column("layer", "Layer"),
                   number_column("seq_len", "s"),
                   number_column("matrix_flops", "Matrix"),
                   number_column("core_matrix_flops", "Token mixing"),
                   number_column("activation_bytes", "Activations"),
                   number_column("predicted_time_s", "Predicted"),
                   number_column("time_s", "Measured"),
                   number_column("core_time_s", "Token mixing")};
  for (const LayerStudy& study : report.layers) {
    const LayerComplexity& layer = study.layer;
    for (const std::int64_t length : report.lengths) {
      table.rows.push_back({name_of(layer), Integer{length}, layer.flops.by_length.at(length),
                            layer.core ? Cell{layer.core->by_length.at(length)} : Cell{},
                            layer.activation_bytes.by_length.at(length),
                            predicted_cell(study, length),
                            measured_cell(study, length, &LengthRun::time_s),
                            measured_cell(study, length, &LengthRun::core_time_s)});
    }
  }
  return {{std::move(table)}};
}

}  // namespace headroom::detail
