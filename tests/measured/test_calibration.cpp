// Calibration: its grids, probes, gauge and cache sizes, and the pages that measured programs keep.
#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "calibrate.h"
#include "headroom/predict.h"
#include "kernels/pages.h"
#include "last_cache.h"
#include "measure.h"
#include "probes.h"
#include "support/data.h"
#include "sweep.h"

using namespace headroom;
using namespace headroom::measured;

namespace {

using SizePair = std::pair<std::int64_t, std::int64_t>;

SizePair size_pair(double a, double b) {
  return {static_cast<std::int64_t>(a), static_cast<std::int64_t>(b)};
}

/// Sizes of operators of all presets that run, where a kernel's grid could contain them.
struct PresetShapes {
  std::set<SizePair> linears;       ///< in_features, out_features
  std::set<SizePair> heads;         ///< heads, head_dim
  std::set<SizePair> cached_heads;  ///< key-value heads, head_dim
  std::set<std::int64_t> widths;    ///< of norms

  void add(const Graph& graph) {
    const auto number = [&](const Expr& expr) {
      return static_cast<std::int64_t>(expr.evaluate(graph.sizes));
    };
    for (const Block& block : graph.blocks) {
      for (const Node& node : block.nodes) {
        if (const auto* linear = std::get_if<Linear>(&node.op)) {
          linears.emplace(number(linear->in_features), number(linear->out_features));
        } else if (const auto* scores = std::get_if<AttentionScores>(&node.op)) {
          heads.emplace(number(scores->shape.heads), number(scores->shape.head_dim));
        } else if (const auto* append = std::get_if<KvCacheAppend>(&node.op)) {
          cached_heads.emplace(number(append->kv_heads), number(append->head_dim));
        } else if (const auto* norm = std::get_if<Norm>(&node.op)) {
          widths.insert(number(norm->width));
        }
      }
    }
  }
};

PresetShapes shapes_of_presets() {
  PresetShapes shapes;
  for (const Preset& preset : list_presets()) {
    const ModelSpec spec = read_preset(preset).spec;
    if (reason_not_run(spec).empty()) shapes.add(build_graph(spec, {}));
  }
  return shapes;
}

/// All pairs of sizes on two axes.
std::vector<SizePair> pairs_of(const std::vector<double>& first,
                               const std::vector<double>& second) {
  std::vector<SizePair> pairs;
  for (const double a : first) {
    for (const double b : second) pairs.push_back(size_pair(a, b));
  }
  return pairs;
}

}  // namespace

TEST_CASE("a quick calibration measures points of the full one, up to the same sizes") {
  for (const KernelInfo& info : kernel_kinds()) {
    CAPTURE(info.name);
    const KernelGrid full = calibration_axes(info.kind, Effort::full);
    if (full.empty()) continue;
    const KernelGrid quick = calibration_axes(info.kind, Effort::quick);
    REQUIRE(full.size() == info.axes.size());
    for (std::size_t i = 0; i < full.size(); ++i) {
      CHECK(std::ranges::includes(full[i], quick[i]));
      CHECK(quick[i].back() == full[i].back());
    }
  }
}

TEST_CASE("calibration measures no shape of a preset that runs") {
  const PresetShapes presets = shapes_of_presets();
  REQUIRE(presets.linears.size() > 50);
  for (const KernelInfo& info : kernel_kinds()) {
    CAPTURE(info.name);
    const KernelGrid axes = calibration_axes(info.kind, Effort::full);
    if (axes.empty()) continue;
    for (std::size_t i = 0; i + 1 < axes.size(); ++i) {
      for (const SizePair& pair : pairs_of(axes[i], axes[i + 1])) {
        if (info.axes[i] == "in_features") CHECK(!presets.linears.contains(pair));
        if (info.axes[i] == "rows" && info.axes[i + 1] == "width") {
          CHECK(!presets.widths.contains(pair.second));
        }
      }
    }
    const bool steps = info.axes.front() == "batch_kv_heads";
    if ((!steps && info.axes.front() != "batch_heads") || info.axes.back() != "head_dim") continue;
    for (const SizePair& pair : pairs_of(axes.front(), axes.back())) {
      CHECK(!(steps ? presets.cached_heads : presets.heads).contains(pair));
    }
  }
  const KernelGrid stored = stored_gemm_axes(Effort::full);
  for (const SizePair& pair : pairs_of(stored[1], stored[2])) {
    CHECK(!presets.linears.contains(pair));
  }
}

TEST_CASE("a calibration measures powers of two threads and all processors, once each") {
  CHECK(doubling_threads(1) == std::vector{1});
  CHECK(doubling_threads(2) == std::vector{1, 2});
  CHECK(doubling_threads(6) == std::vector{1, 2, 4, 6});
  CHECK(doubling_threads(16) == std::vector{1, 2, 4, 8, 16});
}

TEST_CASE("times are normalised to the gauge's reference") {
  Gauge gauge(Backend::eigen, 1, std::int64_t{32} << 20);
  Budget budget;
  budget.min_samples = 5;
  const auto work = [](std::int64_t) {
    volatile double sum = 0;
    for (int i = 0; i < 20000; ++i) sum = sum + i;
  };
  const double raw = time_call(budget, work).seconds;
  budget.gauge = &gauge;
  const GaugeReading now = gauge.read();
  // References of a machine that is a hundred times as slow.
  const GaugeReading slow_compute{100 * now.compute_s, now.memory_s};
  const GaugeReading slow_memory{now.compute_s, 100 * now.memory_s};
  const auto seconds_at = [&](const GaugeReading& reference) {
    budget.reference = reference;
    return time_call(budget, work).seconds;
  };
  CHECK(seconds_at(slow_compute) > 20 * raw);
  CHECK(seconds_at(slow_memory) < 20 * raw);
  budget.resource = Resource::memory;
  CHECK(seconds_at(slow_compute) < 20 * raw);
  CHECK(seconds_at(slow_memory) > 20 * raw);
  // The cached part scales with compute, whatever resource the rest depends on.
  budget.cached_s = 1000;
  CHECK(seconds_at(slow_compute) > 20 * raw);
  CHECK(seconds_at(slow_memory) < 20 * raw);
}

TEST_CASE("the usual speed of a gauge is the median of its undisturbed readings") {
  Gauge gauge(Backend::eigen, 1, std::int64_t{8} << 20);  // which takes one, too
  const GaugeReading second = gauge.read();
  const GaugeReading third = gauge.read();
  const GaugeReading slowest{1e9, 1e9};
  const GaugeReading usual = gauge.usual(slowest);
  // The median of three is between any two of them.
  CHECK(usual.compute_s >= std::min(second.compute_s, third.compute_s));
  CHECK(usual.compute_s <= std::max(second.compute_s, third.compute_s));
  CHECK(usual.memory_s >= std::min(second.memory_s, third.memory_s));
  CHECK(usual.memory_s <= std::max(second.memory_s, third.memory_s));
  (void)gauge.recent(Resource::compute, -1);  // one more reading, of one resource
  CHECK(gauge.usual(slowest).memory_s == usual.memory_s);
}

TEST_CASE("a gauge whose readings all were disturbed has no usual speed but the best one") {
  const Gauge gauge(Backend::eigen, 1, std::int64_t{8} << 20);
  const GaugeReading unreachable{1e-12, 2e-12};
  CHECK(gauge.usual(unreachable).compute_s == 1e-12);
  CHECK(gauge.usual(unreachable).memory_s == 2e-12);
}

// Made-up times: 2 ms of arithmetic and 1 ms of reads at the reference, on a machine that computes
// 1.2 times as long under load and reads 3 times as long.
TEST_CASE("a GEMM that was calibrated under load is predicted under that load as it was timed") {
  const Drift load{1.2, 3};
  const auto predicted_s = [&](double timed_s, const std::optional<KernelTime>& cached) {
    OperatorTime gemm;
    gemm.time_s = at_reference(cold_gemm_budget({}, cached), timed_s, load);
    gemm.cached_s = cached.value_or(KernelTime{gemm.time_s, 0}).seconds;
    TimePrediction prediction;
    prediction.operators = {gemm};
    return std::pair(gemm.time_s, total_with(prediction, load));
  };
  const double few_rows_s = 2e-3 * load.compute + 1e-3 * load.memory;
  const auto few_rows = predicted_s(few_rows_s, KernelTime{2e-3, 0});
  CHECK(few_rows.first == doctest::Approx(3e-3));
  CHECK(few_rows.second == doctest::Approx(few_rows_s));
  const auto many_rows = predicted_s(2e-3 * load.compute, {});
  CHECK(many_rows.first == doctest::Approx(2e-3));
  CHECK(many_rows.second == doctest::Approx(2e-3 * load.compute));
}

TEST_CASE("reads show the part of a shared cache that this machine gets") {
  constexpr std::int64_t kMiB = std::int64_t{1} << 20;
  const auto reads = [](std::initializer_list<std::pair<std::int64_t, double>> points) {
    std::vector<BandwidthPoint> curve;
    for (const auto& [mib, gb_per_s] : points) curve.push_back({mib * kMiB, gb_per_s * 1e9});
    return curve;
  };
  // A processor with 480 MiB in total, of which two cores got about ninety.
  const auto shared = reads({{32, 29.9},
                             {64, 28.9},
                             {91, 22.2},
                             {128, 17.8},
                             {181, 16.0},
                             {256, 15.4},
                             {362, 15.3},
                             {600, 15.2}});
  CHECK(estimated_last_level_cache_bytes(shared, 480 * kMiB) == 181 * kMiB / 2);
  CHECK(working_set_within(shared, 1.03) == 256 * kMiB);
  // An unshared cache: at most the reported size, however gradually memory takes over.
  const auto own = reads({{16, 60}, {32, 58}, {64, 40}, {91, 32}, {128, 30}});
  CHECK(estimated_last_level_cache_bytes(own, 32 * kMiB) == 32 * kMiB);
  // A disturbed read in the median does not hide the reads before it.
  const auto disturbed = reads({{16, 60}, {32, 20}, {64, 58}, {91, 30}, {128, 30}});
  CHECK(estimated_last_level_cache_bytes(disturbed, 64 * kMiB) == 91 * kMiB / 2);
  CHECK(uncached_bytes(90 * kMiB) == 180 * kMiB);
  CHECK(uncached_bytes(8 * kMiB) == 128 * kMiB);  // two processors may each have one
  CHECK(last_level_cache_bytes() <= reported_last_level_cache_bytes());
  CHECK(last_level_cache_bytes() > 0);
}

TEST_CASE("while a PageKeeper lives, a request of the same size gets the freed pages") {
  constexpr std::size_t kBytes = std::size_t{3} << 20;
  std::byte* first = nullptr;
  {
    const PageKeeper keeper;
    first = map_pages(kBytes);
    first[kBytes - 1] = std::byte{1};
    unmap_pages(first, kBytes);
    std::byte* const more = map_pages(2 * kBytes);
    CHECK(more != first);
    std::byte* const again = map_pages(kBytes);
    CHECK(again == first);
    CHECK(again[kBytes - 1] == std::byte{1});
    unmap_pages(more, 2 * kBytes);
    unmap_pages(again, kBytes);
  }
  std::byte* const fresh = map_pages(kBytes);
  CHECK(fresh[kBytes - 1] == std::byte{0});
  unmap_pages(fresh, kBytes);
}

TEST_CASE("cached pages serve smaller requests, and are cached whole again") {
  constexpr std::size_t kBytes = std::size_t{8} << 20;
  const PageKeeper keeper;
  std::byte* const first = map_pages(kBytes);
  unmap_pages(first, kBytes);
  std::byte* const half = map_pages(kBytes / 2);
  CHECK(half == first);
  unmap_pages(half, kBytes / 2);
  std::byte* const few = map_pages(kBytes / 16);
  CHECK(few != first);  // it would waste most of them
  std::byte* const whole = map_pages(kBytes);
  CHECK(whole == first);
  unmap_pages(few, kBytes / 16);
  unmap_pages(whole, kBytes);
}

TEST_CASE("rounds end when there is no time for another, but never before the first") {
  const auto count = [](std::size_t most, double most_s) {
    Rounds rounds(most, most_s);
    while (rounds.allows_another()) rounds.finish_round();
    return rounds.finished();
  };
  CHECK(count(3, 1e9) == 3);
  CHECK(count(3, 0) == 1);
}

TEST_CASE("the median of several tables is taken point by point; unmeasured points stay empty") {
  std::vector<KernelTable> tables(3, unmeasured_table(KernelKind::copy, {{1, 2, 3}}));
  const double times[3][2] = {{3, 30}, {1, 10}, {2, 90}};
  for (std::size_t i = 0; i < tables.size(); ++i) {
    store(tables[i], 0, KernelTime{times[i][0], times[i][0]});
    store(tables[i], 1, KernelTime{times[i][1], 0});
  }
  const KernelTable median = median_of(tables);
  CHECK(*median.seconds[0] == 2);
  CHECK(median.spread[0] == 3);  // the largest spread within a table
  CHECK(*median.seconds[1] == 30);
  CHECK(median.spread[1] == doctest::Approx(20.0 / 30));  // between tables: |10 − 30|, 0, |90 − 30|
  CHECK_FALSE(median.seconds[2].has_value());
}

TEST_CASE("every probe of a kernel runs and takes time") {
  // The sanitizers detect writes outside a probe's arrays.
  Budget budget = budget_of(Effort::quick);
  budget.min_samples = 1;
  budget.seconds = 0;
  std::vector<KernelTable> tables;
  probe_attention(budget, tables);
  probe_step_attention(budget, tables);
  probe_elementwise(budget, tables);
  CHECK(tables.size() == 17);  // of the 23 kernels that are timed, all but the linear layers
  for (const KernelTable& table : tables) {
    CAPTURE(info_of(table.kind).name);
    CHECK(std::ranges::any_of(table.seconds,
                              [](const auto& seconds) { return seconds.value_or(0) > 0; }));
  }
}
