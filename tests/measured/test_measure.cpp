// Measurements: statistics, stopping, and the contents of a measurement.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <omp.h>
#include <sys/resource.h>

#include <algorithm>
#include <cmath>

#include "headroom/error.h"
#include "measure.h"
#include "support/data.h"

using namespace headroom;
using namespace headroom::measured;

namespace {

ModelSpec tiny_gpt2() {
  return load_model((test::data_folder() / "golden/models/gpt2").string()).spec;
}

Measurement measure_spec(ModelSpec spec, const MeasureOptions& options,
                         const WorkloadRequest& request, const RunObserver& observer) {
  Model model;
  model.spec = std::move(spec);
  model.source = "test";
  const Workload workload = resolve(request, model.spec);
  const auto source = random_weights(1);
  return measure(std::move(model), workload, *source, std::nullopt, options, observer);
}

Measurement measure_tiny(const MeasureOptions& options, const WorkloadRequest& request,
                         const RunObserver& observer) {
  return measure_spec(tiny_gpt2(), options, request, observer);
}

bool keep_running(int /*done*/, int /*at_most*/) { return true; }

RunOutputs outputs_of(const MeasureOptions& options, const WorkloadRequest& request) {
  Model model;
  model.spec = tiny_gpt2();
  const Workload workload = resolve(request, model.spec);
  const auto source = random_weights(1);
  RunOutputs kept;
  (void)measure(std::move(model), workload, *source, std::nullopt, options, keep_running,
                [&](RunOutputs outputs) { kept = std::move(outputs); });
  return kept;
}

WorkloadRequest short_prompt() {
  WorkloadRequest request;
  request.seq_len = 7;
  return request;
}

}  // namespace

TEST_CASE("median and median absolute deviation ignore an outlier") {
  const TimeStatistics statistics = summarize({3, 1, 2, 100, 2.5});
  CHECK(statistics.median_s == 2.5);
  CHECK(statistics.mad_s == 0.5);
  CHECK(statistics.min_s == 1);
  CHECK(statistics.max_s == 100);
  CHECK(statistics.samples_s == std::vector<double>{3, 1, 2, 100, 2.5});
  CHECK(summarize({1, 2}).median_s == 1.5);
  CHECK(summarize({4}).mad_s == 0);
}

TEST_CASE("the requested number of runs is measured after the warm-up") {
  MeasureOptions options;
  options.runs = 4;
  int seen = 0;
  const Measurement measurement = measure_tiny(options, short_prompt(), [&](int done, int at_most) {
    CHECK(at_most == 4);
    seen = done;
    return true;
  });
  CHECK(seen == 4);
  CHECK(measurement.time.samples_s.size() == 4);
}

TEST_CASE("an interrupted measurement keeps its finished runs") {
  MeasureOptions options;
  options.runs = 100;
  const Measurement measurement =
      measure_tiny(options, short_prompt(), [](int done, int) { return done < 3; });
  CHECK(measurement.time.samples_s.size() == 3);
  CHECK(measurement.interrupted);
  CHECK_FALSE(measure_tiny({.runs = 2}, short_prompt(), keep_running).interrupted);
}

TEST_CASE("times and FLOPs of operators add up to those of the run") {
  MeasureOptions options;
  options.runs = 3;
  const Measurement measurement = measure_tiny(options, short_prompt(), keep_running);
  double time = 0;
  std::int64_t flops = 0;
  for (const OperatorMeasurement& op : measurement.operators) {
    time += op.time_s;
    flops += op.matrix_flops;
  }
  CHECK(time > 0);
  CHECK(time <= measurement.time.max_s);
  CHECK(flops == measurement.counted.matrix_flops);
  CHECK(flops == test::count(tiny_gpt2(), measurement.workload).figures.forward.matrix_flops);
  CHECK(measurement.memory.rss_peak_bytes.value() > 0);
  CHECK(measurement.context.threads >= 1);
}

TEST_CASE("a generation has a time to first token and a time per output token") {
  MeasureOptions options;
  options.phase = MeasuredPhase::generate;
  options.new_tokens = 5;
  options.runs = 2;
  const Measurement measurement = measure_tiny(options, short_prompt(), keep_running);
  REQUIRE(measurement.ttft_s.has_value());
  REQUIRE(measurement.tpot_s.has_value());
  CHECK(*measurement.ttft_s > 0);
  CHECK(*measurement.ttft_s + 4 * *measurement.tpot_s <= doctest::Approx(measurement.time.max_s));
}

TEST_CASE("a prefill with the last token's logits runs the FLOPs that are counted") {
  WorkloadRequest request = short_prompt();
  request.batch_size = 2;
  MeasureOptions options;
  options.runs = 1;
  const Measurement all = measure_tiny(options, request, keep_running);
  request.logits = Logits::last;
  const Measurement last = measure_tiny(options, request, keep_running);
  const auto counted = test::count(tiny_gpt2(), last.workload).figures;
  CHECK(last.counted.matrix_flops == counted.forward.matrix_flops);
  CHECK(last.memory.arena_peak_bytes == counted.peak_activation_bytes);
  // Hidden size 48, vocabulary 101; 2 · 6 other tokens.
  CHECK(all.counted.matrix_flops - last.counted.matrix_flops == 2 * 12 * 48 * 101);
}

TEST_CASE("saved outputs of a decode step depend on its past") {
  const auto outputs_after = [](std::int64_t past) {
    WorkloadRequest request;
    request.phase = Phase::decode;
    request.past_len = past;
    MeasureOptions options;
    options.phase = MeasuredPhase::decode;
    options.runs = 2;
    return outputs_of(options, request).tensors;
  };
  const std::vector<NamedTensor> nine = outputs_after(9);
  const NamedTensor logits = *std::ranges::find(nine, "logits", &NamedTensor::name);
  CHECK(logits.shape == std::vector<std::int64_t>{1, 1, 101});
  const auto same_logits = [&](const std::vector<NamedTensor>& tensors) {
    return std::ranges::find(tensors, "logits", &NamedTensor::name)->values == logits.values;
  };
  CHECK(same_logits(outputs_after(9)));
  CHECK_FALSE(same_logits(outputs_after(20)));
}

TEST_CASE("saved tokens of a measured generation are those that a session generates") {
  MeasureOptions options;
  options.phase = MeasuredPhase::generate;
  options.new_tokens = 9;
  options.runs = 2;
  WorkloadRequest request = prompt_request(short_prompt());
  const RunOutputs outputs = outputs_of(options, request);
  REQUIRE(outputs.generated_ids.size() == 1);
  CHECK(outputs.generated_ids[0].size() == 9);

  const ModelSpec spec = tiny_gpt2();
  const ModelInputs prompt = random_inputs(spec, resolve(request, spec), options.seed);
  const auto source = random_weights(1);
  Session session(spec, *source, {});
  const Generation expected = session.generate({prompt.main, {}, 9});
  const std::vector<std::int64_t> chosen(expected.ids.end() - 9, expected.ids.end());
  CHECK(outputs.generated_ids[0] == chosen);
  const NamedTensor& logits = outputs.tensors.back();
  CHECK(logits.name == "generated_logits");
  CHECK(logits.shape == std::vector<std::int64_t>{1, 9, 101});
  for (std::size_t i = 0; i < 9; ++i) {
    CHECK(argmax(logits.values.data() + i * 101, 101) == chosen[i]);
  }
}

TEST_CASE("an interrupted measurement saves no outputs") {
  MeasureOptions options;
  options.runs = 100;
  Model model;
  model.spec = tiny_gpt2();
  const Workload workload = resolve(short_prompt(), model.spec);
  const auto source = random_weights(1);
  const Measurement measurement = measure(
      std::move(model), workload, *source, std::nullopt, options,
      [](int done, int) { return done < 3; }, [](const RunOutputs&) { FAIL("it saved outputs"); });
  CHECK(measurement.interrupted);
}

TEST_CASE("one and two threads compute the same outputs") {
  const ModelSpec spec = tiny_gpt2();
  Workload workload;
  workload.batch_size = 3;
  workload.seq_len = 33;
  const ModelInputs inputs = random_inputs(spec, workload, 1);
  const int threads = omp_get_max_threads();
  std::vector<std::vector<float>> results;
  for (const int count : {1, 2}) {
    omp_set_num_threads(count);
    const auto source = random_weights(1);
    Session session(spec, *source, {});
    for (NamedTensor& tensor : session.forward(inputs)) {
      if (tensor.name == "logits") results.push_back(std::move(tensor.values));
    }
  }
  omp_set_num_threads(threads);
  REQUIRE(results.size() == 2);
  CHECK(std::ranges::equal(results[0], results[1], [](float a, float b) {
    return std::abs(static_cast<double>(a) - static_cast<double>(b)) < 2e-5;
  }));
}

TEST_CASE("tokens beyond the learned positions are an error, not an out-of-bounds read") {
  WorkloadRequest request;
  request.seq_len = 65;  // the model has 64 positions
  MeasureOptions options;
  options.runs = 1;
  CHECK_THROWS_AS((void)measure_tiny(options, request, keep_running), Error);
  request.seq_len = 64;
  CHECK(measure_tiny(options, request, keep_running).time.samples_s.size() == 1);
}

TEST_CASE("a run that does not fit in memory is refused before any allocation") {
  WorkloadRequest request;
  request.batch_size = 1'000'000;
  request.seq_len = 64;
  MeasureOptions options;
  options.runs = 1;
  try {
    (void)measure_tiny(options, request, keep_running);
    FAIL("it ran");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::missing_resource);
    CHECK(error.hint().find("batch") != std::string::npos);
  }
}

TEST_CASE("a model that is only counted is refused with the reason") {
  const auto file = test::data_folder() / "towers/tiny/longcat_flash.config.json";
  const ModelSpec spec = test::spec_of(test::read_json(file));
  const std::string refusal = test::refusal_of([&] { require_runnable(spec); });
  CHECK(refusal.find("second attention") != std::string::npos);
}

TEST_CASE("images of a model whose adapter for them does not run are refused") {
  const auto file = test::data_folder() / "published/phi-4-multimodal.config.json";
  Model model;
  model.spec = test::spec_of(test::read_json(file));
  Workload workload;
  workload.images.count = 1;
  const auto source = random_weights(1);
  const std::string refusal = test::refusal_of([&] {
    (void)measure(model, workload, *source, std::nullopt, {}, [](int, int) { return true; });
  });
  CHECK(refusal.find("adapter for images") != std::string::npos);
}

TEST_CASE("events of float operations are known for Intel's and AMD's processors") {
  const std::string intel =
      "vendor_id\t: GenuineIntel\ncpu family\t: 6\nflags\t\t: fma rdseed avx2\n";
  double operations = 0;
  // FP_ARITH_INST_RETIRED (C7H) of single precision: scalar, 128, 256 and 512 bits.
  const std::uint64_t masks[] = {0x02, 0x08, 0x20, 0x80};
  const std::vector<FloatEvent> events = float_events(intel);
  REQUIRE(events.size() == std::size(masks));
  for (std::size_t i = 0; i < events.size(); ++i) {
    CHECK(events[i].config == (masks[i] << 8U | 0xc7U));
    operations += events[i].operations;
  }
  CHECK(operations == 1 + 4 + 8 + 16);
  const std::string amd = "vendor_id\t: AuthenticAMD\ncpu family\t: 25\nflags\t\t: avx2\n";
  REQUIRE(float_events(amd).size() == 1);
  CHECK(float_events(amd).front().config == 0x1f03);
  CHECK(float_events("vendor_id\t: GenuineIntel\ncpu family\t: 6\nflags\t\t: avx2\n").empty());
  CHECK(float_events("vendor_id\t: AuthenticAMD\ncpu family\t: 21\n").empty());
  CHECK(float_events("CPU implementer\t: 0x41\n").empty());
  CHECK(float_events("").empty());
}

TEST_CASE("counters that the system does not open give a reason and no figure") {
  // UBSan opens a pipe when it meets a type for the first time.
  const FloatCounters any;
  rlimit files{};
  REQUIRE(getrlimit(RLIMIT_NOFILE, &files) == 0);
  rlimit none = files;
  none.rlim_cur = 0;
  REQUIRE(setrlimit(RLIMIT_NOFILE, &none) == 0);
  const FloatCounters counters;
  REQUIRE(setrlimit(RLIMIT_NOFILE, &files) == 0);
  CHECK_FALSE(counters.operations());
  CHECK_FALSE(counters.refusal().empty());

  MeasureOptions options;
  options.runs = 1;
  options.counters = &counters;
  const Measurement measurement = measure_tiny(options, short_prompt(), keep_running);
  REQUIRE(measurement.retired);
  CHECK_FALSE(measurement.retired->per_run);
  CHECK(measurement.retired->refusal == counters.refusal());
  CHECK(std::ranges::count(measurement.warnings, "no retired operations: " + counters.refusal()) ==
        1);
  options.counters = nullptr;
  CHECK_FALSE(measure_tiny(options, short_prompt(), keep_running).retired);
}

TEST_CASE("outputs that are NaN or infinite are counted in a warning") {
  const auto on_outputs = [](const ModelSpec& spec, MeasuredPhase phase) {
    MeasureOptions options;
    options.runs = 1;
    options.phase = phase;
    const Measurement measurement = measure_spec(spec, options, short_prompt(), keep_running);
    for (const std::string& warning : measurement.warnings) {
      if (warning.find("NaN") != std::string::npos) return warning.substr(0, warning.find(':'));
    }
    return std::string();
  };
  ModelSpec spec = tiny_gpt2();
  CHECK(on_outputs(spec, MeasuredPhase::prefill).empty());
  spec.head.language_model->logit_scale = 1e300;  // beyond float32
  const std::int64_t vocabulary = spec.embedding.vocab_size;
  CHECK(on_outputs(spec, MeasuredPhase::prefill) ==
        fmt::format("{} of the last operator's outputs are NaN or infinite", 7 * vocabulary));
  CHECK(on_outputs(spec, MeasuredPhase::generate) ==
        fmt::format("{} of the last operator's outputs are NaN or infinite", vocabulary));
}

TEST_CASE("a run retires the operations of its GEMMs, and some element-wise ones") {
  omp_set_num_threads(1);  // the counters see no thread that runs already
  const FloatCounters counters;
  MeasureOptions options;
  options.runs = 3;
  options.threads = 1;
  options.counters = &counters;
  const Measurement measurement = measure_tiny(options, short_prompt(), keep_running);
  omp_set_num_threads(omp_get_num_procs());
  REQUIRE(measurement.retired);
  if (!measurement.retired->per_run) {
    MESSAGE("no counters: " << measurement.retired->refusal);
    return;
  }
  const auto counted = static_cast<double>(measurement.counted.matrix_flops);
  CHECK(*measurement.retired->per_run >= counted);
  // Layouts fill rows of 32 inputs and panels of 64 outputs with zeros, which multiply too.
  CHECK(*measurement.retired->per_run <= 8 * counted);
}
