#include "headroom/device_choice.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "headroom/engine_rates.h"
#include "headroom/error.h"
#include "setting_format.h"

namespace headroom {
namespace {

constexpr double kSecondsPerHour = 3600;

/// The query with weights of this type. Converted weights are multiplied in the type of the
/// activations, unless another is asked for.
PlanQuery query_with(const DeviceQuestion& question, const std::optional<WeightForm>& weights) {
  PlanQuery query = question.query;
  query.weights = weights;
  if (weights) query.arithmetic = question.arithmetic;
  return query;
}

FewestDevices priced(FewestDevices fewest, const DeviceQuestion& question,
                     const std::string& machine) {
  const auto price = question.hour_prices.find(machine);
  if (price == question.hour_prices.end()) return fewest;
  const double per_hour = price->second * static_cast<double>(fewest.choice.parallel.devices());
  fewest.price_per_hour = per_hour;
  if (fewest.time.ttft_s) {
    fewest.price_per_million_tokens = per_hour / kSecondsPerHour / fewest.time.tokens_per_s * 1e6;
  }
  return fewest;
}

/// Bytes of the weights on one device.
Integer weight_bytes_of(const DeviceQuestion& question, const PlanQuery& query) {
  const DeviceRates rates = device_rates(question.machines.front(), query.purpose, query.dtype);
  return Planner(question.model.spec, query, rates).stage_weights(PlanChoice{}).front();
}

/// Leaves out types that save less than a tenth of the stored bytes, such as 8 bits of a model that
/// is published in 8 bits.
void keep_smaller_types(DeviceQuestion& question) {
  const auto bytes_of = [&](const std::optional<WeightForm>& weights) {
    return weight_bytes_of(question, query_with(question, weights));
  };
  if (question.weights.size() < 2 || question.weights.front()) return;
  const Integer most = bytes_of(std::nullopt) / 10 * 9;
  std::erase_if(question.weights, [&](const std::optional<WeightForm>& weights) {
    return weights && bytes_of(weights) > most;
  });
}

/// True if some column has weights in ggml's blocks.
bool has_llama_cpp_column(const DeviceQuestion& question) {
  return std::ranges::any_of(question.weights, [&](const std::optional<WeightForm>& weights) {
    return runs_in_llama_cpp(question.model.spec, query_with(question, weights), {});
  });
}

/// note_on_tensor of all machines' searches.
std::optional<std::string> note_on_tensor_of(const DeviceQuestion& question) {
  const Graph graph = build_graph(question.model.spec, {Phase::prefill, question.query.attention});
  return note_on_tensor(limits_of(graph, question.load.seq_len), {}, question.most_devices);
}

/// Fills the column of one type of weights. Formulas compile once for all machines.
void add_fits(const DeviceQuestion& question, std::size_t column, std::vector<DeviceRow>& rows) {
  const PlanQuery query = query_with(question, question.weights[column]);
  const auto rates_of = [&](const MachineProfile& machine) {
    return engine_rates(machine, question.model.spec, query);
  };
  Planner planner(question.model.spec, query, rates_of(question.machines.front()));
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const DeviceRates rates = rates_of(question.machines[i]);
    rows[i].memory_bytes = rates.memory_bytes;
    planner.set_rates(rates);
    const auto plan =
        plan_on_fewest_devices(planner, question.load, FixedDegrees{}, {1, question.most_devices});
    if (!plan) continue;
    const PlanFigures figures = planner.evaluate(plan->choice, question.load);
    rows[i].fewest[column] =
        priced({plan->choice, plan->memory_bytes, figures.time, {}, {}}, question, rows[i].machine);
  }
}

bool holds_nothing(const DeviceRow& row) {
  return std::ranges::none_of(row.fewest, [](const auto& fewest) { return fewest.has_value(); });
}

bool joins_devices(const DeviceRow& row) {
  return std::ranges::any_of(row.fewest, [](const auto& fewest) {
    return fewest && fewest->choice.parallel.devices() > 1;
  });
}

/// A note on the machines whose devices are joined by an assumed link; empty without any.
std::optional<std::string> note_on_links(const DeviceQuestion& question,
                                         const std::vector<DeviceRow>& rows) {
  constexpr std::size_t kMostNames = 4;
  std::vector<std::string> names;
  for (const DeviceRow& row : rows) {
    const auto machine = std::ranges::find(question.machines, row.machine, &MachineProfile::name);
    if (!machine->interconnect && joins_devices(row)) names.push_back(row.machine);
  }
  if (names.empty()) return std::nullopt;
  const std::size_t more = names.size() - std::min(names.size(), kMostNames);
  names.resize(names.size() - more);
  const std::string others = more == 0 ? "" : fmt::format(" and {} more", more);
  return fmt::format("the interconnect of {}{} is unknown: PCIe 4 x16 is assumed",
                     fmt::join(names, ", "), others);
}

/// Orders by the first type of weights that tells two machines apart.
bool comes_before(const DeviceRow& a, const DeviceRow& b) {
  for (std::size_t i = 0; i < a.fewest.size(); ++i) {
    const auto& one = a.fewest[i];
    const auto& other = b.fewest[i];
    if (one.has_value() != other.has_value()) return one.has_value();
    if (!one) continue;
    const std::int64_t devices = one->choice.parallel.devices();
    const std::int64_t others = other->choice.parallel.devices();
    if (devices != others) return devices < others;
    if (one->time.iteration_s != other->time.iteration_s) {
      return one->time.iteration_s < other->time.iteration_s;
    }
  }
  return a.machine < b.machine;
}

void require_answerable(const DeviceQuestion& question) {
  if (question.query.purpose == Purpose::train) {
    throw_invalid_input("devices are compared for serving only", "name one machine to train on");
  }
  if (question.machines.empty()) throw_invalid_input("no machines to compare", "name at least one");
  for (const auto& priced : question.hour_prices) {
    const std::string& machine = priced.first;
    const bool known = std::ranges::any_of(
        question.machines, [&](const MachineProfile& one) { return one.name == machine; });
    if (!known) {
      throw_invalid_input(fmt::format("\"{}\" has a price but is not one of the machines", machine),
                          "leave the price out, or add the machine");
    }
  }
}

}  // namespace

bool holds_first_type(const DeviceRow& row) noexcept { return row.fewest.front().has_value(); }

bool any_holds_first_type(const DeviceChoiceReport& report) noexcept {
  return std::ranges::any_of(report.rows, holds_first_type);
}

DeviceChoiceReport make_device_choice_report(DeviceQuestion question) {
  require_answerable(question);
  keep_smaller_types(question);
  DeviceChoiceReport report;
  for (const MachineProfile& machine : question.machines) {
    report.rows.push_back({machine.name, 0, {}});
    report.rows.back().fewest.resize(question.weights.size());
  }
  for (std::size_t column = 0; column < question.weights.size(); ++column) {
    add_fits(question, column, report.rows);
  }
  std::ranges::stable_sort(report.rows, comes_before);
  for (const DeviceRow& row : report.rows) {
    if (holds_nothing(row)) report.too_small.push_back(row.machine);
  }
  std::erase_if(report.rows, holds_nothing);
  report.notes = question.notes;
  if (auto note = note_on_links(question, report.rows)) report.notes.push_back(std::move(*note));
  if (auto note = note_on_tensor_of(question)) report.notes.push_back(std::move(*note));
  if (has_llama_cpp_column(question)) {
    report.notes.emplace_back(
        "weights in ggml's blocks: times are those of llama.cpp's kernels on devices with results");
  }
  report.question = std::move(question);
  return report;
}

}  // namespace headroom
