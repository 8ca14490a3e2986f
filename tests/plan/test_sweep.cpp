// Rows of a sweep equal the figures of `analyze` for the same workload.
#include <sstream>

#include "headroom/error.h"
#include "headroom/predict.h"
#include "headroom/report.h"
#include "headroom/storage.h"
#include "support/data.h"

namespace headroom::test {
namespace {

std::vector<SweepRow> rows_of(const ModelSpec& spec, const SweepGrid& grid,
                              const std::optional<MachineProfile>& machine = std::nullopt) {
  std::vector<SweepRow> rows;
  sweep(spec, grid, machine, [&](const SweepRow& row) {
    rows.push_back(row);
    return true;
  });
  return rows;
}

/// The figures of analyze for one workload.
Figures figures_at(const ModelSpec& spec, const Workload& workload) {
  const Graph graph =
      build_stored_graph(converted(spec, workload.weights), graph_options(workload));
  const AnalysisOptions options{Convention::headroom, workload.recompute, workload.kernels};
  return Evaluator(graph, analyze(graph, options), workload.recompute).evaluate(workload);
}

KvTypes both(KvType type) { return {type, type}; }

void check_rows(const ModelSpec& spec, const SweepGrid& grid) {
  const std::vector<SweepRow> rows = rows_of(spec, grid);
  CHECK(static_cast<Integer>(rows.size()) == size_of(grid));
  for (const SweepRow& row : rows) {
    const Figures figures = figures_at(spec, row.workload);
    const bool training = row.workload.phase == Phase::train;
    CHECK(row.weight_bytes == figures.weight_bytes);
    CHECK(row.matrix_flops == figures.forward.matrix_flops);
    CHECK(row.elementwise_flops == figures.forward.elementwise_flops);
    CHECK(row.backward_matrix_flops == figures.backward.matrix_flops);
    CHECK(row.recompute_matrix_flops == figures.recompute.matrix_flops);
    CHECK(row.traffic_bytes == figures.forward.bytes_read + figures.forward.bytes_written);
    CHECK(row.activation_bytes ==
          (training ? figures.saved_activation_bytes : figures.peak_activation_bytes));
    CHECK(row.kv_cache_bytes == figures.kv_cache_bytes);
  }
}

}  // namespace

TEST_CASE("a sweep's rows with images equal the figures of analyze") {
  SweepGrid grid;
  grid.images = {0, 1, 2};
  grid.image_size = {{512, 768}, {448, 448}};
  grid.batch_size = {1, 3};
  SUBCASE("in tiles") { check_rows(load_model("gemma-3-4b").spec, grid); }
  SUBCASE("in their own size") { check_rows(load_model("qwen3-vl-2b").spec, grid); }
  SUBCASE("compared with texts") {
    grid.image_size.clear();
    check_rows(spec_of(read_json(data_folder() / "encoders/tiny/clip.json")), grid);
  }
}

TEST_CASE("a sweep's rows with sound equal the figures of analyze") {
  auto config = read_json(data_folder() / "towers/tiny/voxtral.config.json");
  config["audio_config"]["max_source_positions"] = 1500;
  const ModelSpec spec = spec_of(config, "voxtral");
  SweepGrid grid;
  grid.audio = {0, 1, 2};
  grid.audio_seconds = {30, 31};
  grid.batch_size = {1, 3};
  check_rows(spec, grid);
  const std::vector<SweepRow> rows = rows_of(spec, grid);
  CHECK(rows.size() == 2 + 2 * 2 * 2);  // without clips, their length does not matter
  CHECK(rows.back().workload.audio.totals.tokens == 3 * 2 * 2 * 375);
}

TEST_CASE("a sweep's rows equal the figures of analyze") {
  SweepGrid grid;
  grid.batch_size = {1, 2, 7, 1000};
  grid.seq_len = {1, 17, 512};
  grid.dtype = {DType::float32, DType::bfloat16};
  grid.attention = {AttentionImplementation::eager, AttentionImplementation::fused};
  SUBCASE("prefill") { check_rows(load_model("gpt2").spec, grid); }
  SUBCASE("types of weights and arithmetic") {
    grid.weights = {WeightType::float32, WeightType::bfloat16};
    grid.arithmetic = {DType::bfloat16, DType::float8};
    check_rows(load_model("gpt2").spec, grid);
  }
  SUBCASE("grouped heads") { check_rows(load_model("llama-3-8b").spec, grid); }
  SUBCASE("experts and windows") { check_rows(load_model("gpt-oss-20b").spec, grid); }
  SUBCASE("decode in the latent space") {
    grid.phase = Phase::decode;
    grid.past_len = {0, 99};
    check_rows(load_model("deepseek-v2-lite").spec, grid);
  }
  SUBCASE("decode") {
    grid.phase = Phase::decode;
    grid.past_len = {0, 99};
    grid.kv_types = {both(KvType::bfloat16), both(KvType::float8)};
    check_rows(load_model("t5-small").spec, grid);
  }
  SUBCASE("training") {
    grid.phase = Phase::train;
    grid.recompute = {Recompute::none, Recompute::selective, Recompute::full};
    check_rows(load_model("gpt2").spec, grid);
  }
}

TEST_CASE("a sweep counts keys and values of different types as analyze does") {
  // gpt-oss-20b at 300 tokens: 12 full layers of 300 and 12 windowed ones of 128 tokens, 8 heads of
  // 64. K in q8_0 has 34 B per 32 values, V in q4_0 18 B.
  constexpr std::int64_t kVectors = 12 * (300 + 128) * 8;
  SweepGrid grid;
  grid.phase = Phase::decode;
  grid.past_len = {299};
  grid.batch_size = {1, 3};
  grid.dtype = {DType::bfloat16};
  grid.kv_types = {{KvType::q8_0, KvType::q4_0}, {std::nullopt, KvType::float8}};
  const Model model = load_model("gpt-oss-20b");
  const std::vector<SweepRow> rows = rows_of(model.spec, grid);
  REQUIRE(rows.size() == 4);
  CHECK(rows[0].kv_cache_bytes == Integer{kVectors * 2 * (34 + 18)});
  CHECK(rows[1].kv_cache_bytes == Integer{3 * kVectors * 2 * (34 + 18)});
  CHECK(rows[2].key_type == KvType::bfloat16);
  CHECK(rows[2].kv_cache_bytes == Integer{kVectors * 64 * (2 + 1)});
  for (const SweepRow& row : rows) {
    WorkloadRequest request;
    request.phase = row.workload.phase;
    request.past_len = row.workload.past_len;
    request.batch_size = row.workload.batch_size;
    request.attention = row.workload.attention;
    request.dtype = row.workload.dtype;
    KvCacheRequest cache;
    set_types(cache, {row.key_type, row.value_type});
    const AnalyzeReport report = make_analyze_report(model, request, Convention::headroom, cache);
    CHECK(row.kv_cache_bytes == report.figures.kv_cache_bytes);
    CHECK(row.traffic_bytes ==
          report.figures.forward.bytes_read + report.figures.forward.bytes_written);
  }
}

TEST_CASE("a sweep's times equal those of analyze on the same machine") {
  const ModelSpec spec = load_model("llama-3-8b").spec;
  const MachineProfile machine = find_machine("h100-80gb");
  SweepGrid grid;
  grid.batch_size = {1, 16};
  grid.seq_len = {1, 300};
  grid.dtype = {DType::bfloat16};
  grid.weights = {WeightType::float32, WeightType::bfloat16};
  grid.arithmetic = {DType::bfloat16, DType::float8};
  for (const SweepRow& row : rows_of(spec, grid, machine)) {
    const TimePrediction time =
        predict_time(converted(spec, row.workload.weights), row.workload, machine, {});
    CHECK(row.time_s.value() == doctest::Approx(time.total_s));
    CHECK(row.time_low_s.value() == doctest::Approx(time.low_s));
    CHECK(row.time_high_s.value() == doctest::Approx(time.high_s));
  }
}

TEST_CASE("a sweep stops when its sink returns false") {
  SweepGrid grid;
  grid.batch_size = {1, 2, 3};
  int rows = 0;
  sweep(load_model("gpt2").spec, grid, std::nullopt, [&](const SweepRow&) { return ++rows < 2; });
  CHECK(rows == 2);
}

TEST_CASE("a sweep refuses invalid workloads and times of training steps") {
  const auto run = [](const SweepGrid& grid, const std::optional<MachineProfile>& machine) {
    sweep(load_model("gpt2").spec, grid, machine, [](const SweepRow&) { return true; });
  };
  SweepGrid grid;
  grid.batch_size = {4, 0};
  CHECK_THROWS_AS(run(grid, std::nullopt), Error);
  grid.batch_size = {4};
  grid.phase = Phase::train;
  CHECK_THROWS_AS(run(grid, find_machine("t4")), Error);
}

TEST_CASE("every row has one CSV field per title and is one JSON object") {
  const ModelSpec spec = load_model("gpt2").spec;
  SweepGrid grid;
  grid.batch_size = {1, 2};
  grid.seq_len = {8, 9};
  SweepWriter csv(SweepFormat::csv, spec);
  SweepWriter json(SweepFormat::json_lines, spec);
  const std::string header = csv.header();
  const auto commas = std::count(header.begin(), header.end(), ',');
  for (const SweepRow& row : rows_of(spec, grid)) {
    std::string line;
    csv.append_row(row, line);
    CHECK(std::count(line.begin(), line.end(), ',') == commas);
    CHECK(line.ends_with('\n'));
    std::string object;
    json.append_row(row, object);
    const auto parsed = nlohmann::json::parse(object);
    CHECK(parsed["batch_size"] == row.workload.batch_size);
    CHECK(parsed["seq_len"] == row.workload.seq_len);
    CHECK(parsed["time_s"].is_null());
    CHECK(static_cast<std::ptrdiff_t>(parsed.size()) == commas + 1);
  }
}

}  // namespace headroom::test
