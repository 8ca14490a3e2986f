#include "rank_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "headroom/model_source.h"
#include "headroom/model_spec.h"
#include "inputs.h"

namespace headroom::rank_checks {

using namespace measured;
namespace fs = std::filesystem;

namespace {

/// Largest difference over 2e-5 + 2e-5 · the largest expected value, as of golden outputs.
double error_over_tolerance(const std::vector<float>& got, const std::vector<float>& expected) {
  if (got.size() != expected.size()) return HUGE_VAL;
  double largest = 0;
  double difference = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const auto wanted = static_cast<double>(expected[i]);
    largest = std::max(largest, std::abs(wanted));
    difference = std::max(difference, std::abs(static_cast<double>(got[i]) - wanted));
  }
  return std::isfinite(difference) ? difference / (2e-5 + 2e-5 * largest) : HUGE_VAL;
}

/// Replaces the bytes that depend on the choice of experts by the sum of all ranks.
void add_over_ranks(std::vector<WireTraffic>& rows, const RankContext& rank) {
  const auto row = std::ranges::find(rows, CollectiveKind::all_to_all, &WireTraffic::kind);
  const Integer bytes = sum_over(*rank.world, row == rows.end() ? 0 : row->bytes);
  if (row != rows.end()) row->bytes = static_cast<std::int64_t>(bytes);
}

std::string joined(const Problems& problems) {
  std::string text;
  for (const std::string& problem : problems) text += (text.empty() ? "" : "; ") + problem;
  return text;
}

}  // namespace

void compare(const NamedTensor& got, const NamedTensor& expected, Problems& problems) {
  constexpr double kAllowed = 2.5;  // sums over ranks round in another order
  const double error = error_over_tolerance(got.values, expected.values);
  if (error > kAllowed) problems.push_back(fmt::format("{} differs by {:.3g}", got.name, error));
}

void require_equal(const char* what, Integer counted, Integer planned, Problems& problems) {
  if (counted == planned) return;
  problems.push_back(fmt::format("{}: {} counted, {} planned", what, counted, planned));
}

void add_rows(const std::vector<WireTraffic>& more, std::int64_t times,
              std::vector<WireTraffic>& rows) {
  for (const WireTraffic& one : more) {
    auto row = std::ranges::find_if(rows, [&](const WireTraffic& other) {
      return other.group == one.group && other.kind == one.kind;
    });
    if (row == rows.end()) row = rows.insert(row, {one.group, one.kind, 0, 0});
    row->calls += times * one.calls;
    row->bytes += times * one.bytes;
  }
}

std::vector<WireTraffic> planned_traffic(const Graph& graph, const Bindings& values) {
  std::vector<WireTraffic> rows;
  for (const CollectiveCall& call : collectives_of(graph)) {
    if (call.backward) continue;
    const auto calls = static_cast<std::int64_t>(call.repeat.evaluate(values));
    const auto bytes = static_cast<std::int64_t>(call.bytes.evaluate(values));
    add_rows({{call.group, call.kind, calls, calls * bytes}}, 1, rows);
  }
  return rows;
}

Integer sum_over(Coordinator& world, Integer value) {
  Integer sum = 0;
  for (const std::string& text : world.exchange(std::to_string(static_cast<std::int64_t>(value)))) {
    sum += std::stoll(text);
  }
  return sum;
}

void compare_traffic(std::vector<WireTraffic> counted, const std::vector<WireTraffic>& before,
                     std::vector<WireTraffic> planned, const RankContext& rank,
                     Problems& problems) {
  for (WireTraffic& row : counted) {
    for (const WireTraffic& earlier : before) {
      if (earlier.group != row.group || earlier.kind != row.kind) continue;
      row.calls -= earlier.calls;
      row.bytes -= earlier.bytes;
    }
  }
  std::erase_if(counted, [](const WireTraffic& row) { return row.calls == 0; });
  const auto order = [](const WireTraffic& row) { return std::pair{row.group, row.kind}; };
  std::ranges::sort(counted, {}, order);
  std::ranges::sort(planned, {}, order);
  add_over_ranks(counted, rank);
  add_over_ranks(planned, rank);
  if (counted == planned) return;
  const auto list = [](const std::vector<WireTraffic>& rows) {
    std::string text;
    for (const WireTraffic& row : rows) {
      text +=
          fmt::format(" {} {} {}×{}", name_of(row.group), name_of(row.kind), row.calls, row.bytes);
    }
    return text;
  };
  problems.push_back(fmt::format("traffic:{} counted,{} planned", list(counted), list(planned)));
}

ModelSpec loaded_model(const std::filesystem::path& folder) {
  ModelSpec spec = load_model(folder.string()).spec;
  std::erase_if(spec.counted_only,
                [](const CountedWeight& weight) { return !is_loaded(weight.use); });
  return spec;
}

PlannedPass planned_pass(const ModelSpec& spec, const RankContext& rank, const Workload& workload,
                         ParallelPlan plan) {
  // One token per sequence is not shared.
  if (workload.phase == Phase::decode) plan.sequence = SequenceParallel::off;
  PlannedPass pass;
  pass.graph = rank.shard(build_graph(spec, graph_options(workload)));
  pass.values = rank_bindings(workload, pass.graph.traits, plan);
  for (const SymbolInfo& symbol : symbols()) {
    if (const auto size = pass.graph.sizes.get(symbol.symbol)) {
      pass.values.set(symbol.symbol, *size);
    }
  }
  return pass;
}

Workload sharded_workload(const ModelSpec& spec, std::int64_t batch) {
  WorkloadRequest request;
  request.batch_size = batch;
  request.seq_len = 8;
  request.dtype = DType::float32;  // of all runs, whatever the config states
  return resolve(request, spec);
}

std::vector<fs::path> models_in(const std::vector<std::string>& folders) {
  std::vector<fs::path> models;
  for (const std::string& folder : folders) {
    for (const auto& entry : fs::directory_iterator(folder)) {
      const bool is_model =
          fs::exists(entry.path() / "inputs.json") && fs::exists(entry.path() / "config.json");
      if (is_model) models.push_back(entry.path());
    }
  }
  std::ranges::sort(models);
  return models;
}

Outcome outcome_of(const std::string& model, const Problems& problems, std::size_t compared,
                   Coordinator& world) {
  Problems everywhere;
  const std::vector<std::string> all = world.exchange(joined(problems));
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (!all[i].empty()) everywhere.push_back(fmt::format("rank {}: {}", i, all[i]));
  }
  if (world.rank() == 0) {
    fmt::print("{}: {}\n", model,
               everywhere.empty() ? fmt::format("{} outputs equal", compared) : joined(everywhere));
    (void)std::fflush(stdout);
  }
  return everywhere.empty() ? Outcome::equal : Outcome::differs;
}

}  // namespace headroom::rank_checks
