#include "sweep_axes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "describe.h"
#include "headroom/storage.h"
#include "units.h"

namespace headroom::detail {
namespace {

/// A row's value on an axis. Numbers are for axes of plots.
struct AxisValue {
  std::string text;
  std::optional<double> number;
};

AxisValue number_value(std::int64_t number) {
  return {std::to_string(number), static_cast<double>(number)};
}

AxisValue word_value(std::string_view word) { return {std::string(word), std::nullopt}; }

/// One axis of every grid.
struct AxisKind {
  const char* key;
  const char* title;
  std::size_t (*size)(const SweepGrid& grid);
  AxisValue (*value)(const SweepRow& row);
};

/// In the order of preference for pictures.
constexpr AxisKind kAxisKinds[] = {
    {"seq_len", "seq", [](const SweepGrid& grid) { return grid.seq_len.size(); },
     [](const SweepRow& row) { return number_value(row.workload.seq_len); }},
    {"past_len", "past", [](const SweepGrid& grid) { return grid.past_len.size(); },
     [](const SweepRow& row) { return number_value(row.workload.past_len); }},
    {"batch_size", "batch", [](const SweepGrid& grid) { return grid.batch_size.size(); },
     [](const SweepRow& row) { return number_value(row.workload.batch_size); }},
    {"enc_seq_len", "enc-seq", [](const SweepGrid& grid) { return grid.enc_seq_len.size(); },
     [](const SweepRow& row) { return number_value(row.workload.enc_seq_len); }},
    {"images", "images", [](const SweepGrid& grid) { return grid.images.size(); },
     [](const SweepRow& row) { return number_value(row.workload.images.count); }},
    {"image_size", "image size", [](const SweepGrid& grid) { return grid.image_size.size(); },
     [](const SweepRow& row) {
       const WorkloadImages& images = row.workload.images;
       return word_value(images.count == 0
                             ? "none"
                             : fmt::format("{} × {}", images.size.height, images.size.width));
     }},
    {"audio", "clips", [](const SweepGrid& grid) { return grid.audio.size(); },
     [](const SweepRow& row) { return number_value(row.workload.audio.count); }},
    {"audio_seconds", "seconds of sound",
     [](const SweepGrid& grid) { return grid.audio_seconds.size(); },
     [](const SweepRow& row) {
       const WorkloadAudio& audio = row.workload.audio;
       return number_value(audio.count == 0 ? 0 : audio.seconds);
     }},
    {"weights", "weights", [](const SweepGrid& grid) { return grid.weights.size(); },
     [](const SweepRow& row) { return word_value(name_of(row.workload.weights)); }},
    {"dtype", "dtype", [](const SweepGrid& grid) { return grid.dtype.size(); },
     [](const SweepRow& row) { return word_value(name_of(row.workload.dtype)); }},
    {"arithmetic", "arithmetic", [](const SweepGrid& grid) { return grid.arithmetic.size(); },
     [](const SweepRow& row) { return word_value(name_of(row.workload.arithmetic_type())); }},
    {"kv_dtype", "KV-cache type", [](const SweepGrid& grid) { return grid.kv_types.size(); },
     [](const SweepRow& row) { return word_value(name_of_types(row.key_type, row.value_type)); }},
    {"attention", "attention", [](const SweepGrid& grid) { return grid.attention.size(); },
     [](const SweepRow& row) { return word_value(name_of(row.workload.attention)); }},
    {"recompute", "recompute", [](const SweepGrid& grid) { return grid.recompute.size(); },
     [](const SweepRow& row) { return word_value(name_of(row.workload.recompute)); }},
};

SweepAxis axis_of(const AxisKind& kind, const std::vector<SweepRow>& rows) {
  SweepAxis axis{kind.key, kind.title, {}, {}, {}};
  axis.places.reserve(rows.size());
  for (const SweepRow& row : rows) {
    const AxisValue value = kind.value(row);
    const auto found = std::ranges::find(axis.values, value.text);
    axis.places.push_back(static_cast<std::size_t>(found - axis.values.begin()));
    if (found != axis.values.end()) continue;
    axis.values.push_back(value.text);
    if (value.number) axis.numbers.push_back(*value.number);
  }
  return axis;
}

bool is_training(const SweepReport& report) {
  return !report.rows.empty() && report.rows.front().workload.phase == Phase::train;
}

SweepFigure integer_figure(const SweepReport& report, std::string title, Unit (*unit_of)(Integer),
                           const char* base_unit, Integer (*value)(const SweepRow& row)) {
  Integer largest = 0;
  for (const SweepRow& row : report.rows) largest = std::max(largest, value(row));
  const Unit unit = unit_of(largest);
  SweepFigure figure{std::move(title), std::string(unit.name), {}, {}};
  for (const SweepRow& row : report.rows) {
    figure.values.push_back(static_cast<double>(value(row)) / static_cast<double>(unit.size));
    figure.texts.push_back(with_separators(value(row)) + " " + base_unit);
  }
  return figure;
}

SweepFigure time_figure(const SweepReport& report) {
  double longest = 0;
  for (const SweepRow& row : report.rows) longest = std::max(longest, row.time_s.value_or(0));
  const std::pair<const char*, double> unit = longest >= 1      ? std::pair("s", 1.0)
                                              : longest >= 1e-3 ? std::pair("ms", 1e3)
                                                                : std::pair("µs", 1e6);
  SweepFigure figure{"Predicted time on " + report.machine, unit.first, {}, {}};
  for (const SweepRow& row : report.rows) {
    figure.values.push_back(row.time_s.value_or(0) * unit.second);
    figure.texts.push_back(duration(row.time_s.value_or(0)));
  }
  return figure;
}

Unit flop_unit(Integer flops) { return operation_unit(flops, OperationUnit::flop); }

}  // namespace

std::vector<SweepAxis> axes_of(const SweepReport& report) {
  std::vector<SweepAxis> axes;
  for (const AxisKind& kind : kAxisKinds) {
    if (kind.size(report.grid) < 2) continue;
    SweepAxis axis = axis_of(kind, report.rows);
    if (axis.values.size() > 1) axes.insert(axes.end(), std::move(axis));
  }
  std::ranges::stable_sort(axes, std::ranges::greater(),
                           [](const SweepAxis& axis) { return axis.values.size(); });
  return axes;
}

std::string fixed_settings(const SweepReport& report) {
  if (report.rows.empty()) return {};
  const Workload& workload = report.rows.front().workload;
  std::vector<std::string> words{std::string(name_of(workload.phase))};
  const auto add = [&](bool is_fixed, std::string text) {
    if (is_fixed) words.insert(words.end(), std::move(text));
  };
  const SweepGrid& grid = report.grid;
  const auto number = [](const char* name, std::int64_t value) {
    return fmt::format("{} {}", name, with_separators(value));
  };
  add(grid.batch_size.size() < 2, number("batch", workload.batch_size));
  add(grid.seq_len.size() < 2 && grid.images.size() < 2 && grid.audio.size() < 2,
      number("seq", workload.seq_len));
  const bool is_cached = report.spec.main_stack().causal() && !is_training(report);
  add(grid.past_len.size() < 2 && is_cached, number("past", workload.past_len));
  add(grid.enc_seq_len.size() < 2 && report.spec.reads_two_sequences(),
      number("enc-seq", workload.enc_seq_len));
  add(grid.weights.size() < 2, fmt::format("{} weights", name_of(workload.weights)));
  add(grid.dtype.size() < 2, std::string(name_of(workload.dtype)));
  add(grid.attention.size() < 2, fmt::format("{} attention", name_of(workload.attention)));
  add(grid.recompute.size() < 2 && is_training(report),
      fmt::format("recompute {}", name_of(workload.recompute)));
  return fmt::format("{}", fmt::join(words, " · "));
}

std::string place_of(const std::vector<SweepAxis>& axes, std::size_t row) {
  std::string text;
  for (const SweepAxis& axis : axes) {
    text +=
        fmt::format("{}{} {}", text.empty() ? "" : ", ", axis.title, axis.values[axis.places[row]]);
  }
  return text;
}

bool SweepFigure::is_constant() const {
  return std::ranges::adjacent_find(values, std::not_equal_to()) == values.end();
}

std::vector<SweepFigure> figures_of(const SweepReport& report) {
  std::vector<SweepFigure> figures;
  const auto add = [&](SweepFigure figure) { figures.insert(figures.end(), std::move(figure)); };
  if (!report.machine.empty()) add(time_figure(report));
  if (is_training(report)) {
    add(integer_figure(
        report, "Matrix FLOPs of a training step", flop_unit, "FLOP", [](const SweepRow& row) {
          return checked_add(checked_add(row.matrix_flops, row.backward_matrix_flops),
                             row.recompute_matrix_flops);
        }));
    add(integer_figure(
        report, "Weights and saved activations", byte_unit, "B",
        [](const SweepRow& row) { return checked_add(row.weight_bytes, row.activation_bytes); }));
    return figures;
  }
  add(integer_figure(report, "Matrix FLOPs", flop_unit, "FLOP",
                     [](const SweepRow& row) { return row.matrix_flops; }));
  const bool is_cached = report.spec.main_stack().causal();
  add(integer_figure(
      report, is_cached ? "Weights, peak activations and KV-cache" : "Weights and peak activations",
      byte_unit, "B", [](const SweepRow& row) {
        return checked_add(checked_add(row.weight_bytes, row.activation_bytes), row.kv_cache_bytes);
      }));
  if (is_cached) {
    add(integer_figure(report, "KV-cache", byte_unit, "B",
                       [](const SweepRow& row) { return row.kv_cache_bytes; }));
  }
  return figures;
}

}  // namespace headroom::detail
