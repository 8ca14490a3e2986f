// Generation costs against the sum over all passes, the order of attention's GEMMs, and shares.
#include <doctest/doctest.h>

#include <numeric>

#include "headroom/complexity.h"
#include "headroom/error.h"
#include "headroom/report.h"
#include "layers.h"
#include "leading_share.h"

namespace headroom::test {
namespace {

/// Matrix FLOPs of one pass.
Integer flops_of_pass(const ModelSpec& spec, const WorkloadRequest& request) {
  const Workload workload = resolve(request, spec);
  const Graph graph = build_graph(spec, graph_options(workload));
  return analyze(graph).total.forward.matrix_flops.evaluate(bindings_of(workload, graph));
}

/// Of a prompt, whose last token alone needs logits.
Integer prefill(const ModelSpec& spec, std::int64_t length,
                std::optional<std::int64_t> enc_seq_len = {}) {
  WorkloadRequest request;
  request.logits = Logits::last;
  request.seq_len = length;
  request.enc_seq_len = enc_seq_len;
  return flops_of_pass(spec, request);
}

Integer decode(const ModelSpec& spec, std::int64_t past,
               std::optional<std::int64_t> enc_seq_len = {}) {
  WorkloadRequest request;
  request.phase = Phase::decode;
  request.past_len = past;
  request.enc_seq_len = enc_seq_len;
  return flops_of_pass(spec, request);
}

Integer without_cache(const ModelSpec& spec, std::int64_t prompt, std::int64_t tokens) {
  Integer sum = 0;
  for (std::int64_t i = 0; i < tokens; ++i) sum += prefill(spec, prompt + i);
  return sum;
}

/// Of an encoder with heads · head_dim = d and a plain FFN: per layer 8·n·d² for its projections,
/// 4·n²·d for scores and context, 4·n·d·f for the FFN (arXiv 1706.03762, section 3).
Integer encoder_flops(const ModelSpec& spec, Integer n) {
  const Integer d = spec.hidden_size;
  const Integer f = spec.encoder->ffn.intermediate_size;
  return spec.encoder->num_layers * (8 * n * d * d + 4 * n * n * d + 4 * n * d * f);
}

Integer with_cache(const ModelSpec& spec, std::int64_t prompt, std::int64_t tokens,
                   std::optional<std::int64_t> enc_seq_len = {}) {
  Integer sum = prefill(spec, prompt, enc_seq_len);
  for (std::int64_t i = 1; i < tokens; ++i) sum += decode(spec, prompt + i - 1, enc_seq_len);
  return sum;
}

}  // namespace

TEST_CASE("closed sums over lengths equal sums in a loop, for every power and first length") {
  const Expr s = Symbol::seq_len;
  const Expr cost = Integer{7} * s * s * s + Integer{5} * s * s + Integer{3} * s + Integer{2};
  for (const std::int64_t first : {1, 2, 17}) {
    const DividedExpr sum = sum_over_lengths(cost, first);
    Integer expected = 0;
    for (std::int64_t n = 1; n <= 40; ++n) {
      Bindings values;
      values.set(Symbol::seq_len, first + n - 1);
      expected += cost.evaluate(values);
      values.set(Symbol::new_tokens, n);
      CHECK(sum.evaluate(values) == expected);
    }
  }
}

TEST_CASE("generation costs the sum of its passes, with and without a KV-cache") {
  for (const char* name : {"gpt2", "smollm2-135m", "linear-transformer"}) {
    CAPTURE(name);
    const Model model = load_model(name);
    for (const std::int64_t prompt : {1, 7}) {
      const GenerationReport report = make_generation_report(model, {prompt, {1, 2, 12}, {}});
      for (const GenerationRow& row : report.rows) {
        CHECK(row.flops_without == without_cache(model.spec, prompt, row.new_tokens));
        CHECK(row.flops_with == with_cache(model.spec, prompt, row.new_tokens));
      }
    }
  }
}

TEST_CASE("an encoder runs once per generation, with and without a KV-cache") {
  for (const char* name : {"t5-small", "bart-large-cnn", "transformer-base"}) {
    CAPTURE(name);
    const Model model = load_model(name);
    for (const std::int64_t encoded : {1, 40}) {
      const GenerationReport report = make_generation_report(model, {3, {1, 2, 12}, encoded});
      CHECK(report.enc_seq_len == encoded);
      for (const GenerationRow& row : report.rows) {
        CHECK(row.flops_with == with_cache(model.spec, 3, row.new_tokens, encoded));
        Integer passes = 0;
        for (std::int64_t i = 0; i < row.new_tokens; ++i) {
          passes += prefill(model.spec, 3 + i, encoded);
        }
        CHECK(row.flops_without ==
              passes - (row.new_tokens - 1) * encoder_flops(model.spec, encoded));
      }
    }
  }
}

TEST_CASE("a generation of a state space keeps its states and the inputs of its convolution") {
  const GenerationReport report = make_generation_report(load_model("mamba-130m"), {1, {8}, {}});
  // 24 layers of 1,536 channels: 16 states and 4 inputs of each.
  CHECK(report.rows.front().kv_cache_bytes == 24 * 1536 * (16 + 4) * 4);
}

TEST_CASE("a KV-cache reduces the FLOPs of attention from G³ to G²") {
  const GenerationReport report = make_generation_report(load_model("gpt2"), {1, {8}, {}});
  CHECK(format(report.without.attention_growth) == "O(G³·d)");
  CHECK(format(report.with.attention_growth) == "O(G²·d)");
  // Σ 4·i²·d over 12 layers is 48·d·(2·G³ + 3·G² + G)/6.
  CHECK(format(report.without.attention.numerator) == "8·G·d + 24·G²·d + 16·G³·d");
  CHECK(report.without.attention.divisor == 1);
}

TEST_CASE("a generation computes one row of logits per token, with and without a KV-cache") {
  const GenerationReport report = make_generation_report(load_model("gpt2"), {8, {4}, {}});
  constexpr Integer d = 768;
  constexpr Integer layers = 12;
  constexpr Integer head = 4 * 2 * d * 50257;
  // 24·d² of projections and FFN per token and layer, 4·d of attention per pair.
  constexpr Integer pairs_with = 8 * 8 + 9 + 10 + 11;
  CHECK(report.rows.front().flops_with ==
        head + layers * (24 * d * d * (8 + 3) + 4 * d * pairs_with));
  constexpr Integer pairs_without = 8 * 8 + 9 * 9 + 10 * 10 + 11 * 11;
  CHECK(report.rows.front().flops_without ==
        head + layers * (24 * d * d * (8 + 9 + 10 + 11) + 4 * d * pairs_without));
  CHECK(prefill_of(report, 8).logits == Logits::last);
}

TEST_CASE("attention of a generation leaves out convolutions and state spaces") {
  const auto formula = [](const char* name) {
    const GenerationReport report = make_generation_report(load_model(name), {1, {16}, {}});
    return format(report.with.attention.numerator);
  };
  // 4·n²·d of the encoder, G·n and the triangle of G of the decoder, in 4 layers of each.
  CHECK(formula("whisper-tiny") == "8·G·d + 8·G²·d + 16·G·n·d + 16·n²·d");
  // 6 of 16 layers are attention, the others short convolutions.
  CHECK(formula("lfm2-350m") == "12·G·d + 12·G²·d");
  const GenerationReport whisper =
      make_generation_report(load_model("whisper-tiny"), {1, {16}, {}});
  CHECK(whisper.rows.front().attention_with == 13'972'291'584);
}

TEST_CASE("a model without attention has no row of it") {
  for (const char* const name : {"mamba-130m", "rwkv-4-169m"}) {
    CAPTURE(name);
    const GenerationReport report = make_generation_report(load_model(name), {1, {16}, {}});
    CHECK(report.rows.front().attention_without == 0);
    CHECK(report.rows.front().attention_with == 0);
    const std::string text = render(report, {});
    CHECK(text.find("Attention") == std::string::npos);
    CHECK(text.find("All matrix FLOPs to generate G tokens") != std::string::npos);
  }
  const std::string hybrid =
      render(make_generation_report(load_model("lfm2-350m"), {1, {16}, {}}), {});
  CHECK(hybrid.find("Attention FLOPs to generate G tokens") != std::string::npos);
}

TEST_CASE(
    "the predicted time of generation is the sum over its passes, with and without a KV-cache") {
  GenerationReport report = make_generation_report(load_model("gpt2"), {1, {1, 2, 5}, {}});
  const MachineProfile machine = find_machine("a100-80gb");
  TimeRequest request;
  add_prediction(report, machine, request);
  CHECK(report.machine == machine.name);
  const auto time_of = [&](std::int64_t length) {
    Workload workload;
    workload.seq_len = length;
    workload.logits = Logits::last;
    return predict_time(report.model.spec, workload, machine, request).total_s;
  };
  double sum = 0;
  std::int64_t length = 1;
  for (const GenerationRow& row : report.rows) {
    for (; length <= row.new_tokens; ++length) sum += time_of(length);
    CHECK(*row.predicted_without_s == doctest::Approx(sum));
  }
  CHECK(*report.rows.front().predicted_with_s == doctest::Approx(time_of(1)));
  CHECK(*report.rows.back().predicted_with_s > *report.rows.front().predicted_with_s);
}

TEST_CASE("a model that cannot generate, or does not attend to all of its past, is an error") {
  for (const char* const name : {"bert-base", "mistral-7b"}) {
    CHECK_THROWS_AS((void)make_generation_report(load_model(name), {1, {4}, {}}), Error);
  }
}

TEST_CASE("times between measured prefills are interpolated linearly") {
  const std::vector<LengthValue> run{{1, 10}, {3, 30}, {7, 50}};
  // 10, 20, 30, 35, 40, 45, 50
  CHECK(integrated_time(run, 1, 7) == doctest::Approx(230));
  CHECK(integrated_time(run, 2, 3) == doctest::Approx(50));
  CHECK(spread_lengths(1, 5, 9) == std::vector<std::int64_t>{1, 2, 3, 4, 5});
  CHECK(spread_lengths(1, 257, 5) == std::vector<std::int64_t>{1, 65, 129, 193, 257});
  CHECK(spread_lengths(4, 4, 5) == std::vector<std::int64_t>{4});
}

TEST_CASE("the reordered GEMMs cost less beyond the head dimension") {
  Model model;
  model.spec = read_model_spec(kSelfAttention, "config.json", "layer");
  const AssociativityReport report =
      make_associativity_report(model, AttentionImplementation::eager, {64, 128});
  const CrossoverRow& row = report.layers.core_crossovers.front();
  CHECK(row.above == 0);
  CHECK(*row.flops == 65);
  Model window;
  window.spec = read_model_spec(kWindowAttention, "config.json", "layer");
  CHECK_THROWS_AS((void)make_associativity_report(window, AttentionImplementation::fused, {64}),
                  Error);
}

TEST_CASE("attention overtakes the FFN beyond four widths, where 4·s·d > 16·d²") {
  const SharesReport report =
      make_shares_report(load_model("bert-base"), AttentionImplementation::eager, {128, 32768});
  CHECK(*report.attention_passes_ffn == 4 * 768 + 1);
  CHECK(format(*report.attention_side) == "4·s·d");
  CHECK(format(*report.ffn_side) == "16·d²");
}

TEST_CASE(
    "attention that never overtakes the FFN is not above it at any length, as the screen says") {
  const std::vector<std::int64_t> lengths{1, 2, 255, 4095, 4096, 4097, 1 << 20};
  for (const char* name : {"linear-transformer", "mistral-7b-v0.1"}) {
    CAPTURE(name);
    const Model model = load_model(name);
    const SharesReport report = make_shares_report(model, default_attention(model.spec), lengths);
    REQUIRE(report.attention_side);
    REQUIRE_FALSE(report.attention_passes_ffn.has_value());
    Bindings values = report.model.graph.sizes;
    for (const ShareRow& row : report.rows) {
      CAPTURE(row.seq_len);
      CHECK(row.flops[Share::attention] <= row.flops[Share::ffn]);
      values.set(Symbol::seq_len, row.seq_len);
      CHECK(report.attention_side->evaluate(values) <= report.ffn_side->evaluate(values));
    }
    CHECK(render(report, {}).find("stays below the FFN at every length: ") != std::string::npos);
  }
}

TEST_CASE("explain FLOPs states where attention overtakes the FFN, in symbols") {
  const auto explain = [](const char* name, const WorkloadRequest& request, Subject subject) {
    return make_explain_report(load_model(name), request, subject).ffn_crossover;
  };
  const auto passes = explain("gpt2", {}, Subject::flops);
  REQUIRE(passes);
  CHECK(*passes->seq_len == 4 * 768 + 1);
  CHECK(format(passes->attention) == "4·s·d");
  CHECK(format(passes->ffn) == "16·d²");
  CHECK_FALSE(explain("gpt2", {}, Subject::params));
  CHECK_FALSE(explain("t5-small", {}, Subject::flops));
  WorkloadRequest decode;
  decode.phase = Phase::decode;
  CHECK_FALSE(explain("gpt2", decode, Subject::flops));
}

TEST_CASE("every preset has the complexity of its layers, or a reason why not") {
  for (const Preset& preset : list_presets()) {
    CAPTURE(preset.name);
    const Model model = load_model(preset.name);
    if (model.spec.kind == ModelKind::denoiser) continue;  // has no length
    try {
      const LayerComplexity layer = layer_complexity(model, default_attention(model.spec));
      CHECK(layer.flops.by_length.at(64) > 0);
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::invalid_input);
    }
  }
}

TEST_CASE("FLOPs are explained where no polynomial in the length says when attention dominates") {
  WorkloadRequest request;
  request.attention = AttentionImplementation::fused;
  const ExplainReport report =
      make_explain_report(load_model("llama-4-scout-text"), request, Subject::flops);
  CHECK_FALSE(report.ffn_crossover);
  CHECK(report.whole.value > 0);
}

TEST_CASE("shares sum to the whole model") {
  for (const char* name : {"bert-base", "gpt2", "llama-3-8b", "linear-transformer"}) {
    CAPTURE(name);
    const SharesReport report =
        make_shares_report(load_model(name), AttentionImplementation::eager, {1, 128, 4096});
    for (const ShareRow& row : report.rows) {
      const Integer sum =
          std::accumulate(row.flops.values.begin(), row.flops.values.end(), Integer{0});
      CHECK(sum == report.model.flops.by_length.at(row.seq_len));
    }
  }
}

TEST_CASE("exponents and crossovers are those of the given times") {
  std::vector<LayerComplexity> layers{layer_of(kSelfAttention), layer_of(kLinearAttention)};
  const std::vector<std::int64_t> lengths{256, 512, 1024, 2048, 4096, 8192, 16384};
  ComplexityReport report = make_complexity_report(std::move(layers), lengths);
  std::vector<LayerRuns> runs(2);
  for (const std::int64_t n : lengths) {
    const auto x = static_cast<double>(n);
    runs[0].runs.push_back({n, 1e-9 * x * x, 0.9e-9 * x * x, 1e-9 * x * x, 3});
    runs[1].runs.push_back({n, 1e-6 * x, 0.5e-6 * x, 1e-6 * x, 3});
  }
  add_measurements(report, runs);
  CHECK(report.layers[0].core_exponent->measured.exponent == doctest::Approx(2));
  CHECK(report.layers[0].core_exponent->predicted == doctest::Approx(2));
  CHECK(report.layers[1].exponent->measured.exponent == doctest::Approx(1));
  // 8·s·d² + 4·s²·d: the s² term is 80 % from s = 8·d on.
  CHECK(report.layers[0].exponent->from == 4096);
  CHECK(report.layers[0].exponent->predicted > 1.8);
  CHECK(*report.crossovers.front().measured_time == doctest::Approx(1000));
  CHECK_FALSE(report.crossovers.front().predicted_time.has_value());
}

TEST_CASE("the asymptotic range starts beyond the cache if enough lengths remain") {
  static constexpr Integer kCache = 16 << 20;
  const auto exponent = [](std::int64_t longest, Integer cache_bytes) {
    std::vector<std::int64_t> lengths;
    for (std::int64_t n = 256; n <= longest; n *= 2) lengths.push_back(n);
    ComplexityReport report = make_complexity_report({layer_of(kLinearAttention)}, lengths);
    report.uncached_bytes = cache_bytes;
    LayerRuns runs;
    for (const std::int64_t n : lengths) {
      // Beyond the cache everything is twice as slow.
      const bool in_cache = moved_bytes_of_core(report.layers[0].layer, n) <= 2 * kCache;
      const double time = (in_cache ? 1e-6 : 2e-6) * static_cast<double>(n);
      runs.runs.push_back({n, time, time, time, 3});
    }
    add_measurements(report, {runs});
    return *report.layers[0].core_exponent;
  };
  const ExponentRow behind = exponent(65536, kCache);
  CHECK(behind.beyond_cache);
  CHECK(behind.measured.exponent == doctest::Approx(1));
  const ExponentRow across = exponent(65536, 0);
  CHECK_FALSE(across.beyond_cache);
  CHECK(across.from < behind.from);
  CHECK(across.measured.exponent > 1.05);
  // One length beyond the cache is not a range.
  const ExponentRow few = exponent(behind.from, kCache);
  CHECK_FALSE(few.beyond_cache);
  CHECK(few.to == behind.from);
}

}  // namespace headroom::test
