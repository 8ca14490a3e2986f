// Predictions against real runs: counts and bytes exactly, and the kernel calls that times follow.
#include <doctest/doctest.h>

#include <set>

#include "headroom/compare.h"
#include "headroom/storage.h"
#include "kernel_calls.h"
#include "measure.h"
#include "operator_time.h"
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

TEST_CASE(
    "a run of a model whose tower only counts loads, and is predicted to load, its text model") {
  const auto file = test::data_folder() / "towers/tiny/granite_speech.config.json";
  Model model = load_model(file.string());
  AnalyzeReport report = make_analyze_report(model, {});
  add_prediction(report, find_machine("t4"), {});
  CHECK(report.run->parameters < report.figures.parameters);
  const auto source = random_weights(1);
  MeasureOptions options;
  options.runs = 1;
  options.warmup = 0;
  const Measurement run = measure(std::move(model), report.workload, *source, std::nullopt, options,
                                  [](int, int) { return true; });
  CHECK(run.counted.parameters == report.run->parameters);
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
          const bool generates = rows.phase == MeasuredPhase::generate;
          PlannedRun run{workload, generates ? 2 : 0, storage, KeptOutputs::none, backend};
          CHECK(weights.held_bytes() == memory_of(spec, run).weights);

          workload.logits = run.workload.logits = Logits::last;
          const auto again = random_weights(1);
          const ModelWeights last(spec, *again,
                                  {.backend = backend,
                                   .storage = storage,
                                   .rows = rows.range,
                                   .typical_rows = 16,
                                   .head_rows = head_row_range_of(run)});
          CHECK(last.held_bytes() == predict_held_weight_bytes(spec, workload, request));
          CHECK(last.held_bytes() == memory_of(spec, run).weights);
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
    return detail::measured_time(threads, {call}, {}, {model_bytes, 32e6}, 1).time_s;
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

TEST_CASE("causal fused attention takes the time of unmasked attention, in proportion to pairs") {
  Workload workload;
  workload.batch_size = 2;
  workload.seq_len = 100;
  const detail::KernelCall call = fused_attention_call("smollm2-135m", workload);
  CHECK(call.kind == KernelKind::attention_fused);
  // Nine heads of dimension 64; 1 + 2 + … + 100 of 100² pairs.
  CHECK(call.sizes == KernelSizes{2 * 9, 100, 100, 64});
  CHECK(call.times == doctest::Approx(0.505));
}

TEST_CASE("softmax is timed by all keys, with a bias by visible ones") {
  Workload workload;
  workload.batch_size = 2;
  workload.seq_len = 101;
  const detail::KernelCall all = softmax_call("bert-base", workload);
  CHECK(all.kind == KernelKind::attention_softmax);
  CHECK(all.sizes == KernelSizes{2 * 12, 101, 101});
  const detail::KernelCall causal = softmax_call("gpt2", workload);
  CHECK(causal.kind == KernelKind::attention_softmax);
  CHECK(causal.sizes == KernelSizes{2 * 12, 101, 101});
  // ALiBi is added to visible keys only: (1 + 2 + … + 101)/101 keys.
  const detail::KernelCall biased = softmax_call("bloom-560m", workload);
  CHECK(biased.kind == KernelKind::attention_softmax);
  CHECK(biased.sizes == KernelSizes{2 * 16, 101, 51});
}

TEST_CASE(
    "element-wise kernels of headroom take the time of a sum, and those of PyTorch their own") {
  const Graph graph = build_graph(load_model("gpt2").spec, {Phase::prefill});
  const Bindings sizes = bindings_of({}, graph);
  std::size_t activations = 0;
  for (const Block& block : graph.blocks) {
    for (const Node& node : block.nodes) {
      if (!std::holds_alternative<Activation>(node.op)) continue;
      ++activations;
      detail::LinearPolicy policy;
      const auto own = detail::kernel_calls({graph, block, node}, sizes, policy);
      REQUIRE(own.size() == 1);
      CHECK(own.front().kind == KernelKind::residual_add);
      policy.engine = MeasuredEngine::pytorch;
      // PyTorch composes GPT-2's GELU of seven operators, among them a tanh.
      CHECK(detail::kernel_calls({graph, block, node}, sizes, policy).back().kind ==
            KernelKind::tanh);
    }
  }
  CHECK(activations > 0);
}

TEST_CASE("every operator of a preset that runs is timed by kernels that a calibration measures") {
  std::size_t calls = 0;
  for (const Preset& preset : list_presets()) {
    const ModelSpec spec = read_preset(preset).spec;
    if (!reason_not_run(spec).empty()) continue;
    CAPTURE(preset.name);
    const Graph graph = build_graph(spec, {});
    const Bindings sizes = bindings_of({}, graph);
    for (const Block& block : graph.blocks) {
      for (const Node& node : block.nodes) {
        for (const auto& call : detail::kernel_calls({graph, block, node}, sizes, {})) {
          CHECK(calibration_axes(call.kind, Effort::full).size() == call.sizes.size());
          ++calls;
        }
      }
    }
  }
  CHECK(calls > 0);
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
