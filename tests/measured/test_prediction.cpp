// Predictions against real runs: counts and bytes exactly, and the rules of calibration.
#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "calibrate.h"
#include "headroom/compare.h"
#include "headroom/weight_storage.h"
#include "kernel_calls.h"
#include "kernels/pages.h"
#include "last_cache.h"
#include "measure.h"
#include "operator_time.h"
#include "probes.h"
#include "row_policy.h"
#include "support/data.h"
#include "sweep.h"

using namespace headroom;
using namespace headroom::measured;

namespace {

struct PredictedRun {
  MeasuredPhase phase = MeasuredPhase::prefill;
  WorkloadRequest request;
};

WorkloadRequest request_of(Phase phase, std::int64_t batch, std::int64_t length) {
  WorkloadRequest request;
  request.phase = phase;
  request.batch_size = batch;
  (phase == Phase::decode ? request.past_len : request.seq_len) = length;
  return request;
}

/// Predicts and runs a tiny model with random weights.
Comparison compare_tiny(const std::string& name, const PredictedRun& one) {
  Model model = load_model((test::data_folder() / "golden/models" / name).string());
  AnalyzeReport report = make_analyze_report(model, one.request);
  TimeRequest time{0, one.phase, 5, false};
  add_prediction(report, find_machine("t4"), time);
  const auto source = random_weights(1);
  MeasureOptions options;
  options.phase = one.phase;
  options.new_tokens = 5;
  options.runs = 1;
  options.warmup = 0;
  const Measurement measurement = measure(std::move(model), report.workload, *source, std::nullopt,
                                          options, [](int, int) { return true; });
  return compare(predicted_run(report), measured_run(measurement), {});
}

/// Kernel call of the only operator `Op` in the prefill of a preset.
template <class Op>
detail::KernelCall only_call(const char* preset, const Workload& workload,
                             AttentionImplementation attention) {
  const Graph graph = build_graph(load_model(preset).spec, {Phase::prefill, attention});
  const Bindings sizes = bindings_of(workload, graph);
  std::vector<detail::KernelCall> found;
  for (const Block& block : graph.blocks) {
    for (const Node& node : block.nodes) {
      if (!std::holds_alternative<Op>(node.op)) continue;
      const auto calls = detail::kernel_calls({graph, block, node}, sizes, {});
      found.insert(found.end(), calls.begin(), calls.end());
    }
  }
  REQUIRE(found.size() == 1);
  return found.front();
}

detail::KernelCall fused_attention_call(const char* preset, const Workload& workload) {
  return only_call<FusedAttention>(preset, workload, AttentionImplementation::fused);
}

detail::KernelCall softmax_call(const char* preset, const Workload& workload) {
  return only_call<Softmax>(preset, workload, AttentionImplementation::eager);
}

}  // namespace

TEST_CASE("a run counts exactly what was predicted") {
  const PredictedRun cases[] = {{MeasuredPhase::prefill, request_of(Phase::prefill, 2, 7)},
                                {MeasuredPhase::decode, request_of(Phase::decode, 3, 6)},
                                {MeasuredPhase::generate, request_of(Phase::prefill, 1, 6)}};
  for (const char* name : {"gpt2", "t5"}) {
    for (const PredictedRun& one : cases) {
      CAPTURE(name);
      CAPTURE(name_of(one.phase));
      int exact = 0;
      for (const ComparisonRow& row : compare_tiny(name, one).rows) {
        if (row.tolerance != 0.0) continue;
        CAPTURE(row.quantity);
        CHECK(row.result == RowResult::pass);
        ++exact;
      }
      CHECK(exact == 5);  // parameters, FLOPs, weights, KV-cache and activations
    }
  }
}

TEST_CASE("packed weights use exactly the predicted number of bytes") {
  static_assert(detail::kFewRows == PackedLinear::kFewRows);
  // Every size is a multiple of steps and blocks, so that no layout is padded.
  const std::string gpt2 = R"({"model_type": "gpt2", "n_embd": 64, "n_head": 4, "n_inner": 256,
                               "n_layer": 2, "n_positions": 64, "vocab_size": 512)";
  struct Rows {
    RowRange range;
    std::int64_t seq_len;
    MeasuredPhase phase;
  };
  const Rows row_ranges[] = {{RowRange::few, 8, MeasuredPhase::prefill},
                             {RowRange::many, 9, MeasuredPhase::prefill},
                             {RowRange::both, 9, MeasuredPhase::generate}};
  const std::string mixtral = R"({"model_type": "mixtral", "hidden_size": 64,
                                  "num_attention_heads": 4, "num_key_value_heads": 4,
                                  "intermediate_size": 64, "num_hidden_layers": 2,
                                  "vocab_size": 512, "max_position_embeddings": 64,
                                  "num_local_experts": 64, "num_experts_per_tok": 2})";
  const std::string convolution = R"({"model_type": "convolution", "architectures": ["Conv1d"],
                                      "hidden_size": 64, "kernel_size": 3, "is_causal": true,
                                      "num_layers": 2, "hidden_act": "relu"})";
  for (const std::string& config :
       {gpt2 + R"(, "tie_word_embeddings": true})", gpt2 + R"(, "tie_word_embeddings": false})",
        mixtral, convolution}) {
    const ModelSpec spec = read_model_spec(config, "config.json", "test");
    for (const Backend backend : {Backend::eigen, Backend::onednn}) {
      if (!is_available(backend)) continue;
      for (const Rows& rows : row_ranges) {
        for (const measured::HeldType storage :
             {measured::HeldType::float32, measured::HeldType::bfloat16}) {
          CAPTURE(config);
          CAPTURE(static_cast<int>(backend));
          CAPTURE(rows.seq_len);
          CAPTURE(name_of(rows.phase));
          CAPTURE(static_cast<int>(storage));
          const auto source = random_weights(1);
          const ModelWeights weights(spec, *source, {backend, storage, rows.range, 16});
          Workload workload;
          workload.seq_len = rows.seq_len;
          if (storage == measured::HeldType::bfloat16) workload.weights = WeightType::bfloat16;
          TimeRequest request;
          request.phase = rows.phase;
          request.opaque_layout = backend == Backend::onednn;
          CHECK(weights.held_bytes() == predict_held_weight_bytes(spec, workload, request));
        }
      }
    }
  }
}

TEST_CASE("inputs and scratch of a run are part of its resident memory") {
  const auto extra_bytes = [](const char* name, std::int64_t length) {
    const ModelSpec spec = load_model(name).spec;
    Workload workload;
    workload.batch_size = 4;
    workload.seq_len = workload.enc_seq_len = length;
    TimeRequest request;
    request.opaque_layout = false;
    const RunFigures run = predict_run(spec, workload, request);
    return run.rss_growth_bytes - predict_held_weight_bytes(spec, workload, request) -
           run.peak_activation_bytes - run.kv_cache_bytes.value_or(0);
  };
  CHECK(extra_bytes("bert-base", 128) == 0);
  // Pixels, and the patches extracted from them: 3 · 224² per image.
  CHECK(extra_bytes("vit-base-patch16-224", 197) == Integer{4} * 2 * 4 * 3 * 224 * 224);
  // Hidden states as given, and the copy that the layer works on.
  CHECK(extra_bytes("layer-multi-head-attention", 50) == Integer{4} * 2 * 4 * 50 * 512);
  CHECK(extra_bytes("layer-cross-attention", 50) == Integer{4} * 2 * 4 * (50 + 50) * 512);
  // 80 bins of 2 · 1500 frames, with one frame of padding on either side for three taps, of stride
  // 1 and 2; the second convolution's input has 384 channels. With several sequences the rows of a
  // tap are copied.
  const Integer first = 80 * (2 * 3000 + 2 + 3000);
  const Integer second = 384 * (2 * 1499 + 3 + 1500);
  CHECK(extra_bytes("whisper-tiny", 1500) == Integer{4} * 4 * (first + second));
}

TEST_CASE("an operator has more overhead if weights have filled every cache") {
  ThreadProfile threads;
  threads.step_overhead_s = 1e-7;
  threads.cold_step_overhead_s = 2e-6;
  threads.read = threads.write = {{1 << 20, 1e10}};
  for (const KernelInfo& info : kernel_kinds()) {
    KernelTable table = unmeasured_table(info.kind, KernelGrid(info.axes.size(), {1, 2}));
    for (std::size_t i = 0; i < table.seconds.size(); ++i) store(table, i, KernelTime{1e-6, 0});
    threads.tables.push_back(std::move(table));
  }
  const detail::KernelCall norm{KernelKind::layer_norm, {1, 1}, {}};
  const detail::KernelCall linear{
      KernelKind::stream_float32_cold, {1, 1, 1}, KernelKind::stream_float32_warm};
  const auto seconds = [&](const detail::KernelCall& call, double model_bytes) {
    return detail::measured_time(threads, {call}, {}, {model_bytes, 32e6}).time_s;
  };
  CHECK(seconds(norm, 1e6) == doctest::Approx(1.1e-6));
  CHECK(seconds(norm, 1e9) == doctest::Approx(3.1e-6));
  CHECK(seconds(linear, 1e6) == doctest::Approx(1.1e-6));
  CHECK(seconds(linear, 1e9) == doctest::Approx(3.1e-6));
}

TEST_CASE("fused attention with a window is timed by the keys that a query sees") {
  Workload workload;
  workload.seq_len = 1024;
  const detail::KernelCall call = fused_attention_call("layer-window-attention", workload);
  CHECK(call.kind == KernelKind::attention_fused);
  CHECK(call.sizes[1] == 1024);
  // 64 keys on either side and the query's own, fewer at the ends: (1024·129 − 64·65)/1024.
  CHECK(call.sizes[2] == doctest::Approx(124.9375));
}

TEST_CASE("causal fused attention is timed by the query heads per KV head as well") {
  Workload workload;
  workload.batch_size = 2;
  workload.seq_len = 100;
  const detail::KernelCall call = fused_attention_call("smollm2-135m", workload);
  CHECK(call.kind == KernelKind::attention_fused_causal);
  // Nine heads of dimension 64, three per KV head.
  CHECK(call.sizes == KernelSizes{2 * 9, 3, 100, 100, 64});
}

TEST_CASE("causal softmax has its own kernel; with a bias it is timed by visible keys") {
  Workload workload;
  workload.batch_size = 2;
  workload.seq_len = 101;
  const detail::KernelCall all = softmax_call("bert-base", workload);
  CHECK(all.kind == KernelKind::attention_softmax);
  CHECK(all.sizes == KernelSizes{2 * 12, 101, 101});
  const detail::KernelCall causal = softmax_call("gpt2", workload);
  CHECK(causal.kind == KernelKind::attention_softmax_causal);
  CHECK(causal.sizes == KernelSizes{2 * 12, 101, 101});
  // ALiBi is added to visible keys only: (1 + 2 + … + 101)/101 keys.
  const detail::KernelCall biased = softmax_call("bloom-560m", workload);
  CHECK(biased.kind == KernelKind::attention_softmax_biased);
  CHECK(biased.sizes == KernelSizes{2 * 16, 101, 51});
}

TEST_CASE("a decode step is timed by the keys that it reads, shared by query heads") {
  for (const AttentionImplementation attention :
       {AttentionImplementation::eager, AttentionImplementation::fused}) {
    const Graph graph = build_graph(load_model("smollm2-135m").spec, {Phase::decode, attention});
    Workload workload;
    workload.phase = Phase::decode;
    workload.batch_size = 4;
    workload.seq_len = 1;
    workload.past_len = 99;
    const Bindings sizes = bindings_of(workload, graph);
    std::set<KernelKind> kinds;
    for (const Block& block : graph.blocks) {
      for (const Node& node : block.nodes) {
        for (const auto& call : detail::kernel_calls({graph, block, node}, sizes, {})) {
          if (call.sizes.size() != 4) continue;
          kinds.insert(call.kind);
          // Three KV heads for nine query heads of dimension 64.
          CHECK(call.sizes == KernelSizes{4 * 3, 3, 100, 64});
        }
      }
    }
    const bool fused = attention == AttentionImplementation::fused;
    CHECK(kinds == (fused ? std::set{KernelKind::step_fused_cold}
                          : std::set{KernelKind::step_scores_cold, KernelKind::step_context_cold}));
  }
}

TEST_CASE("calibration measures no shape of a preset") {
  std::set<std::pair<std::int64_t, std::int64_t>> linears;
  std::set<std::pair<std::int64_t, std::int64_t>> heads;
  std::set<std::pair<std::int64_t, std::int64_t>> cached_heads;
  std::set<std::int64_t> widths;
  for (const Preset& preset : list_presets()) {
    const Model model = read_preset(preset);
    const Graph graph = build_graph(model.spec, {});
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
  REQUIRE(linears.size() > 50);
  for (const KernelInfo& info : kernel_kinds()) {
    const KernelGrid axes = calibration_axes(info.kind, Effort::full);
    const KernelGrid quick = calibration_axes(info.kind, Effort::quick);
    for (std::size_t i = 0; i < axes.size(); ++i) {
      CHECK(std::ranges::includes(axes[i], quick[i]));
      CHECK(quick[i].back() == axes[i].back());
    }
    REQUIRE(axes.size() == info.axes.size());
    for (std::size_t i = 0; i + 1 < axes.size(); ++i) {
      for (const double a : axes[i]) {
        for (const double b : axes[i + 1]) {
          const std::pair pair{static_cast<std::int64_t>(a), static_cast<std::int64_t>(b)};
          if (info.axes[i] == "in_features") CHECK(!linears.contains(pair));
          if (info.axes[i] == "rows" && info.axes[i + 1] == "width") {
            CHECK(!widths.contains(pair.second));
          }
        }
      }
    }
    const bool steps = info.axes.front() == "batch_kv_heads";
    if ((!steps && info.axes.front() != "batch_heads") || info.axes.back() != "head_dim") continue;
    const auto& of_presets = steps ? cached_heads : heads;
    for (const double count : axes.front()) {
      for (const double dim : axes.back()) {
        const std::pair pair{static_cast<std::int64_t>(count), static_cast<std::int64_t>(dim)};
        CHECK(!of_presets.contains(pair));
      }
    }
  }
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
  CHECK(tables.size() >= 18);
  for (const KernelTable& table : tables) {
    CAPTURE(info_of(table.kind).name);
    CHECK(std::ranges::any_of(table.seconds,
                              [](const auto& seconds) { return seconds.value_or(0) > 0; }));
  }
}
