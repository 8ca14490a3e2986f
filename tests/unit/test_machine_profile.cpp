// Profiles: interpolation against known laws, and the file format.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "headroom/error.h"
#include "headroom/machine_profile.h"
#include "headroom/predict.h"
#include "headroom/storage.h"
#include "support/data.h"
#include "support/scratch.h"
#include "unit/measured_profile.h"

using namespace headroom;
using namespace headroom::test;

namespace {

double gemm_law(const KernelSizes& sizes) {
  return 1e-9 * sizes[0] * std::pow(sizes[1], 0.9) * sizes[2];
}

StoredGemm stored_gemm(const std::string& format, double seconds_of_work) {
  const KernelGrid axes(3, {1, 10});
  const auto law = [&](const KernelSizes& sizes) {
    return seconds_of_work * work_of(KernelKind::linear_cold, sizes);
  };
  return {format, table_by(KernelKind::linear_cold, axes, law),
          table_by(KernelKind::linear_warm, axes, law)};
}

ThreadProfile& threads_of(MachineProfile& profile) {
  return std::get<MeasuredRates>(profile.rates).by_threads.front();
}

std::string refusal_of_profile(const std::string& text) {
  try {
    (void)profile_from_json(text, "profile.json");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::invalid_input);
    return error.what();
  }
  return {};
}

std::string with(std::string text, const std::string& from, const std::string& to) {
  const auto at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

}  // namespace

TEST_CASE("grid points are numbered with the last axis fastest") {
  const KernelGrid grid{{1, 2}, {10, 20, 30}, {5}};
  CHECK(point_count(grid) == 6);
  CHECK(point_of(grid, 0) == KernelSizes{1, 10, 5});
  CHECK(point_of(grid, 1) == KernelSizes{1, 20, 5});
  CHECK(point_of(grid, 5) == KernelSizes{2, 30, 5});
  const std::size_t at[] = {1, 2, 0};
  CHECK(point_number(grid, at) == 5);
}

TEST_CASE("the peak is that of the fastest GEMM") {
  ThreadProfile profile;
  profile.tables = {table_by(KernelKind::linear_warm, {{1, 100}, {64}, {64}},
                             [](const KernelSizes& sizes) { return sizes[0] == 1 ? 1e-5 : 1e-4; })};
  // 2·100·64·64 operations in 1e-4 s, against 2·64·64 in 1e-5 s
  CHECK(peak_flops_per_s(profile) == doctest::Approx(8.192e9));
  profile.tables.front().seconds.back().reset();
  CHECK(peak_flops_per_s(profile) == doctest::Approx(8.192e8));
}

TEST_CASE(
    "interpolation is exact for power laws between points and proportional to the work beyond "
    "them") {
  const KernelTable table =
      table_by(KernelKind::linear_cold, {{1, 8, 64}, {100, 1000}, {50, 400, 3000}}, gemm_law);
  for (const KernelSizes& sizes : {KernelSizes{8, 100, 400}, KernelSizes{3, 333, 77},
                                   KernelSizes{64, 1000, 3000}, KernelSizes{20, 101, 2999}}) {
    CHECK(time_of(table, sizes).seconds == doctest::Approx(gemm_law(sizes)).epsilon(1e-12));
  }
  // Four times the rows beyond the last point take four times as long.
  CHECK(time_of(table, {256, 1000, 400}).seconds == doctest::Approx(4 * gemm_law({64, 1000, 400})));
  CHECK(time_of(table, {8, 300, 400}).spread == doctest::Approx(0.02));
}

TEST_CASE("an unmeasured point is extrapolated by the growth of smaller GEMMs with the rows") {
  const auto law = [](const KernelSizes& sizes) {
    return 1e-9 * std::pow(sizes[0], 0.7) * sizes[1] * sizes[2];
  };
  KernelTable table =
      table_by(KernelKind::linear_cold, {{1, 10, 30}, {100, 1000}, {100, 1000}}, law);
  table.seconds.back().reset();  // rows 30, in 1000, out 1000
  CHECK(time_of(table, {30, 1000, 1000}).seconds == doctest::Approx(law({30, 1000, 1000})));
  table.seconds[point_number(table.axes, std::vector<std::size_t>{1, 1, 1})].reset();
  CHECK(time_of(table, {30, 1000, 1000}).seconds == doctest::Approx(law({30, 1000, 1000})));
}

TEST_CASE("without such a GEMM, an unmeasured point is extrapolated in proportion to the work") {
  KernelTable table =
      table_by(KernelKind::linear_cold, {{1, 10}, {100, 1000}, {100, 1000}}, gemm_law);
  for (std::size_t number = 4; number < 8; ++number) table.seconds[number].reset();  // rows 10
  CHECK(time_of(table, {10, 1000, 1000}).seconds ==
        doctest::Approx(10 * gemm_law({1, 1000, 1000})));
  table.seconds[3].reset();  // rows 1, in 1000, out 1000
  CHECK(time_of(table, {1, 1000, 1000}).seconds == doctest::Approx(10 * gemm_law({1, 1000, 100})));
}

TEST_CASE("masked pairs are not work, so that squares of pairs predict wide rectangles") {
  const auto visible = [](std::int64_t queries, std::int64_t keys) {
    std::int64_t pairs = 0;
    for (std::int64_t query = 0; query < queries; ++query) {
      pairs += std::min(keys, std::max<std::int64_t>(0, keys - queries) + query + 1);
    }
    return static_cast<double>(pairs);
  };
  const auto kind = KernelKind::attention_fused_causal;
  for (const std::int64_t queries : {1, 7, 64}) {
    for (const std::int64_t keys : {1, 7, 64}) {
      const KernelSizes sizes{4, 2, static_cast<double>(queries), static_cast<double>(keys), 32};
      CHECK(work_of(kind, sizes) == 4 * 32 * visible(queries, keys));
    }
  }
  const KernelTable table =
      table_by(kind, {{2, 8}, {1, 2}, {320, 960}, {320, 960}, {32, 64}},
               [&](const KernelSizes& sizes) { return 1e-11 * work_of(kind, sizes); });
  for (const double length : {320.0, 512.0, 700.0, 960.0, 2048.0}) {
    const KernelSizes square{4, 1, length, length, 48};
    CHECK(time_of(table, square).seconds == doctest::Approx(1e-11 * work_of(kind, square)));
  }
}

TEST_CASE("an element-wise kernel below its smallest size still costs a call") {
  const KernelTable table = table_by(KernelKind::copy, {{64, 640}}, [](const KernelSizes& sizes) {
    return 1e-8 + 1e-10 * sizes[0];
  });
  CHECK(time_of(table, {1}).seconds == doctest::Approx(1e-8 + 64e-10));
  CHECK(time_of(table, {6400}).seconds == doctest::Approx(10 * (1e-8 + 640e-10)));
}

TEST_CASE("a profile survives the round trip through JSON") {
  const MachineProfile profile = measured_profile();
  const std::string text = profile_to_json(profile);
  CHECK(profile_to_json(profile_from_json(text, "profile.json")) == text);
  for (const MachineProfile& machine : catalogue_machines()) {
    const std::string sheet = profile_to_json(machine);
    CHECK(profile_to_json(profile_from_json(sheet, machine.name)) == sheet);
  }
}

TEST_CASE("GEMMs of stored weights survive the round trip, one for each known format") {
  MachineProfile profile = measured_profile();
  threads_of(profile).stored_gemms = {stored_gemm("Q4_0", 1e-10), stored_gemm("Q6_K", 2e-10)};
  const std::string text = profile_to_json(profile);
  MachineProfile read = profile_from_json(text, "profile.json");
  CHECK(profile_to_json(read) == text);
  REQUIRE(find_stored_gemm(threads_of(read), "Q6_K") != nullptr);
  CHECK(find_stored_gemm(threads_of(read), "Q8_0") == nullptr);
  CHECK(refusal_of_profile(with(text, "\"Q4_0\"", "\"Q6_K\"")).find("occurs twice") !=
        std::string::npos);
  CHECK(refusal_of_profile(with(text, "\"Q4_0\"", "\"Q1_0\"")).find("Q1_0") != std::string::npos);
  const auto gemms = text.find("stored_gemms");
  const std::string swapped = with(text.substr(gemms), "linear_cold", "linear_warm");
  CHECK(refusal_of_profile(text.substr(0, gemms) + swapped).find("should be linear_cold") !=
        std::string::npos);
}

TEST_CASE("GEMMs of weights in groups survive the round trip by the names of their forms") {
  MachineProfile profile = measured_profile();
  threads_of(profile).stored_gemms = {stored_gemm("4bit-1x128-s16-zeros", 1e-10),
                                      stored_gemm("bf16", 2e-10)};
  const std::string text = profile_to_json(profile);
  CHECK(profile_to_json(profile_from_json(text, "profile.json")) == text);
  for (const char* const other : {"\"BF16\"", "\"bf16-row-s16\"", "\"4bit\""}) {
    CHECK(refusal_of_profile(with(text, "\"bf16\"", other)).find("no GEMM reads") !=
          std::string::npos);
  }
}

TEST_CASE("the time of quantised safetensors is that of their form's GEMMs") {
  MachineProfile profile = measured_profile();
  const Model model = load_model((test::data_folder() / "quantized/gptq_int4").string());
  const Workload workload = resolve({}, model.spec);
  const std::string refused =
      test::refusal_of([&] { (void)predict_time(model.spec, workload, profile, {}); });
  CHECK(refused.find("not calibrated for 4bit-1x32-s16-zeros weights") != std::string::npos);
  const auto down_of = [&](double seconds) {
    threads_of(profile).stored_gemms = {stored_gemm("4bit-1x32-s16-zeros", seconds),
                                        stored_gemm("bf16", 1e-10)};
    const TimePrediction time = predict_time(model.spec, workload, profile, {});
    return std::ranges::find(time.operators, "decoder.layers.mlp.down", &OperatorTime::path)
        ->time_s;
  };
  // Twice the time per unit of work adds the time of one such unit for each of them.
  const double work = static_cast<double>(workload.seq_len) * 192 * 64;
  CHECK(down_of(2e-10) - down_of(1e-10) == doctest::Approx(work * 1e-10).epsilon(1e-6));
}

TEST_CASE("the time of stored weights is that of their format's GEMMs") {
  MachineProfile profile = measured_profile();
  Model model = load_model("gpt2");
  model.spec = stored_as(std::move(model.spec), WeightType::q8_0);
  WorkloadRequest request;
  request.weights = WeightType::q8_0;
  const Workload workload = resolve(request, model.spec);
  CHECK(stored_gemm_formats(model.spec, workload).value() == std::vector<std::string>{"Q8_0"});
  const std::string refused =
      test::refusal_of([&] { (void)predict_time(model.spec, workload, profile, {}); });
  CHECK(refused.find("not calibrated for Q8_0 weights") != std::string::npos);

  // Every other kernel takes 1e-9 s for a unit of its work.
  threads_of(profile).stored_gemms = {stored_gemm("Q8_0", 2.5e-10)};
  const auto gemm_of = [&](const Workload& one) {
    const TimePrediction time = predict_time(model.spec, one, profile, {});
    const auto found =
        std::ranges::find(time.operators, "decoder.layers.mlp.down", &OperatorTime::path);
    REQUIRE(found != time.operators.end());
    constexpr double kLayers = 12;
    return found->time_s - kLayers * (1e-7 + 2e-6);  // without the overheads of a call
  };
  Workload plain = workload;
  plain.weights = WeightType::float32;
  CHECK(gemm_of(workload) == doctest::Approx(gemm_of(plain) / 4).epsilon(1e-6));
}

TEST_CASE("weights whose GEMMs were not calibrated have no time on this machine") {
  Model model = load_model("gpt2");
  model.spec = stored_as(std::move(model.spec), WeightType::int4);
  WorkloadRequest request;
  request.weights = WeightType::int4;
  const Workload workload = resolve(request, model.spec);
  const std::string refused =
      test::refusal_of([&] { (void)predict_time(model.spec, workload, measured_profile(), {}); });
  CHECK(refused.find("is not calibrated for 4bit") != std::string::npos);
}

TEST_CASE("a profile names the command that made it, if one did") {
  MachineProfile profile = measured_profile();
  CHECK(profile_to_json(profile).find("produced_by") == std::string::npos);
  profile.produced_by = Invocation{"0.1.0", "0123456789ab", {"calibrate", "--quick"}};
  const std::string text = profile_to_json(profile);
  const MachineProfile read = profile_from_json(text, "profile.json");
  REQUIRE(read.produced_by.has_value());
  CHECK(read.produced_by->version == "0.1.0");
  CHECK(read.produced_by->commit == "0123456789ab");
  CHECK(read.produced_by->arguments == std::vector<std::string>{"calibrate", "--quick"});
  CHECK(profile_to_json(read) == text);
  CHECK(refusal_of_profile(with(text, "\"--quick\"", "7")).find("arguments") != std::string::npos);
}

TEST_CASE(
    "a profile needs the kernels that calibrate times, and may have others, as older ones do") {
  MachineProfile profile = measured_profile();
  auto& tables = threads_of(profile).tables;
  CHECK(refusal_of_profile(profile_to_json(profile)).empty());
  const std::string timed =
      " linear_cold linear_warm stream_float32_cold stream_float32_warm linear_bfloat16_cold "
      "linear_bfloat16_warm attention_scores attention_softmax attention_context "
      "attention_fused step_scores_cold step_scores_warm step_fused_cold step_fused_warm "
      "step_context_cold step_context_warm linear_attention linear_attention_causal layer_norm "
      "rms_norm residual_add embedding copy ";
  std::erase_if(tables, [&](const KernelTable& table) {
    return timed.find(" " + std::string(info_of(table.kind).name) + " ") == std::string::npos;
  });
  CHECK(tables.size() == 23);
  CHECK(refusal_of_profile(profile_to_json(profile)).empty());
  tables.pop_back();
  CHECK(refusal_of_profile(profile_to_json(profile)).find("copy must occur exactly once") !=
        std::string::npos);
}

TEST_CASE("a damaged profile is an error that names the damage") {
  const std::string text = profile_to_json(measured_profile());
  CHECK(refusal_of_profile("[]").find("is not an object") != std::string::npos);
  CHECK(refusal_of_profile(with(text, "\"schema_version\": 1", "\"schema_version\": 2"))
            .find("schema_version") != std::string::npos);
  CHECK(refusal_of_profile(with(text, "\"compute_s\": 0.001", "\"compute_s\": 0"))
            .find("compute_s") != std::string::npos);
  for (const char* const bytes : {"\"memory_bytes\": 0", "\"memory_bytes\": 1000000000000"}) {
    CHECK(refusal_of_profile(with(text, "\"memory_bytes\": 134217728", bytes))
              .find("1 MiB to 16 GiB") != std::string::npos);
  }
  CHECK(refusal_of_profile(with(text, "\"kernel\": \"copy\"", "\"kernel\": \"scale\""))
            .find("exactly once") != std::string::npos);
  CHECK(
      refusal_of_profile(with(text, "\"kernel\": \"copy\"", "\"kernel\": \"sort\"")).find("sort") !=
      std::string::npos);
  CHECK(refusal_of_profile(with(text, "\"measured\"", "\"guessed\"")).find("source") !=
        std::string::npos);
  CHECK(refusal_of_profile(with(text, "\"threads\": 2", "\"threads\": 4294967298"))
            .find("processors") != std::string::npos);
  CHECK(refusal_of_profile(with(text, "\"threads\": 2", "\"threads\": 0")).find("zero") !=
        std::string::npos);
  CHECK(refusal_of_profile(with(text, "1e-09", "-1e-09")).find("not from 1e-12") !=
        std::string::npos);
}

TEST_CASE("a profile with contradictory curves is an error") {
  MachineProfile profile = measured_profile();
  auto& rates = std::get<MeasuredRates>(profile.rates);
  rates.by_threads.push_back(rates.by_threads.front());
  CHECK(refusal_of_profile(profile_to_json(profile)).find("repeats a number") != std::string::npos);
  rates.by_threads.pop_back();
  rates.by_threads.front().read = {{1 << 20, 1e10}, {1 << 10, 2e10}};
  CHECK(refusal_of_profile(profile_to_json(profile)).find("ascend") != std::string::npos);
}

TEST_CASE("curves are found by number of threads; a datasheet has none") {
  const MachineProfile profile = measured_profile();
  CHECK(curves_of(profile, 0)->threads == 2);
  CHECK(curves_of(profile, 2)->threads == 2);
  CHECK_THROWS_AS((void)curves_of(profile, 3), Error);
  CHECK(curves_of(find_machine("t4"), 0) == nullptr);
}

TEST_CASE("names in the catalogue are unique, and figures equal the datasheets") {
  std::set<std::string> names;
  for (const MachineProfile& machine : catalogue_machines()) {
    CHECK_MESSAGE(names.insert(machine.name).second, machine.name);
  }
  // NVIDIA's datasheets: 312 TFLOP/s of dense bfloat16 and 2,039 GB/s for the A100 of 80 GB;
  // 3.35 TB/s for the H100 of 80 GB.
  const MachineProfile machine = find_machine("a100-80gb");
  const auto a100 = std::get<DatasheetRates>(machine.rates);
  CHECK(a100.float16_flops_per_s == 312e12);
  CHECK(a100.memory_bytes_per_s == 2039e9);
  const MachineProfile hopper = find_machine("h100-80gb");
  CHECK(std::get<DatasheetRates>(hopper.rates).memory_bytes_per_s == 3350e9);
  CHECK_THROWS_AS((void)find_machine("h100-80g"), Error);
}

TEST_CASE("a calibration under load widens every range down to the time without it") {
  MachineProfile profile = measured_profile();
  const Model model = load_model("bert-tiny");
  const Workload workload = resolve({}, model.spec);
  const TimePrediction quiet = predict_time(model.spec, workload, profile, {});
  // Other programs ran on three quarters of the machine: alone, it is up to four times as fast.
  profile.context.other_programs_cpus = 1.5;
  const MachineProfile stored = profile_from_json(profile_to_json(profile), "profile.json");
  const TimePrediction loaded = predict_time(model.spec, workload, stored, {});
  CHECK(loaded.total_s == doctest::Approx(quiet.total_s));
  CHECK(loaded.high_s == doctest::Approx(quiet.high_s));
  CHECK(loaded.low_s <= quiet.total_s / 4);
  CHECK(loaded.low_s < quiet.low_s);
}

TEST_CASE("predictions assume the speed that the machine usually had") {
  MachineProfile profile = measured_profile();
  const Model model = load_model("gpt2");
  const Workload workload = resolve({}, model.spec);
  const TimePrediction best = predict_time(model.spec, workload, profile, {});
  ThreadProfile& threads = threads_of(profile);
  threads.usual_compute_s = 1.125 * threads.probe_compute_s;
  threads.usual_memory_s = 1.5 * threads.probe_memory_s;
  const std::string text = profile_to_json(profile);
  const MachineProfile stored = profile_from_json(text, "profile.json");
  CHECK(profile_to_json(stored) == text);
  const TimePrediction usual = predict_time(model.spec, workload, stored, {});
  CHECK(usual.total_s == doctest::Approx(total_with(best, {1.125, 1.5})));
  CHECK(usual.total_s / best.total_s >= 1.125);
  CHECK(usual.high_s / best.high_s >= 1.125);
  CHECK(usual.low_s / best.low_s <= 1.5);
}

TEST_CASE("figures of a profile are in range, so that no time is negative or infinite") {
  const std::string text = profile_to_json(measured_profile());
  for (const auto& change : std::vector<std::pair<std::string, std::string>>{
           {"\"step_overhead_s\": 1e-07", "\"step_overhead_s\": -1"},
           {"\"step_overhead_s\": 1e-07", "\"step_overhead_s\": 1e308"},
           {"\"cold_step_overhead_s\": 2e-06", "\"cold_step_overhead_s\": 2"},
           {"\"compute_s\": 0.001", "\"compute_s\": 0"},
           {"\"bytes_per_s\": 10000000000.0", "\"bytes_per_s\": 1e-300"},
           {"\"bytes_per_s\": 10000000000.0", "\"bytes_per_s\": 1e308"}}) {
    CAPTURE(change.second);
    CHECK(refusal_of_profile(with(text, change.first, change.second)).find(", not from ") !=
          std::string::npos);
  }
}

namespace {

MachineProfile profile_with(CalibrationEffort effort, const std::string& cpu) {
  MachineProfile profile = measured_profile();
  profile.effort = effort;
  profile.context.cpu = cpu;
  return profile;
}

}  // namespace

TEST_CASE("a quick calibration does not replace a full one, and a disturbed one no other") {
  const test::ScratchFolder folder;
  const test::ScratchVariable data("XDG_DATA_HOME", folder.path().string());
  const MachineProfile full = profile_with(CalibrationEffort::full, "a");
  const StoredFile stored = store_own_profile(full, "eigen");
  CHECK(stored.kept_because.empty());
  const std::string text = test::read_file(stored.file);
  CHECK_FALSE(
      store_own_profile(profile_with(CalibrationEffort::quick, "a"), "eigen").kept_because.empty());
  MachineProfile disturbed = full;
  disturbed.context.other_programs_cpus = 1.5;
  CHECK(store_own_profile(disturbed, "eigen").kept_because.starts_with("other programs used 1.5"));
  CHECK(test::read_file(stored.file) == text);
  CHECK(load_own_profile("eigen", full.context)->effort == CalibrationEffort::full);
}

TEST_CASE("a later calibration keeps the GEMMs of stored weights that it does not measure") {
  const test::ScratchFolder folder;
  const test::ScratchVariable data("XDG_DATA_HOME", folder.path().string());
  MachineProfile first = profile_with(CalibrationEffort::full, "a");
  threads_of(first).stored_gemms = {stored_gemm("Q4_0", 1e-10), stored_gemm("Q6_K", 1e-10)};
  (void)store_extended_profile(first, "eigen");
  MachineProfile second = profile_with(CalibrationEffort::full, "a");
  threads_of(second).stored_gemms = {stored_gemm("Q6_K", 3e-10)};
  (void)store_own_profile(second, "eigen");
  MachineProfile kept = load_own_profile("eigen", second.context).value();
  REQUIRE(find_stored_gemm(threads_of(kept), "Q4_0") != nullptr);
  CHECK(find_stored_gemm(threads_of(kept), "Q6_K")->cold.seconds.front() == 3e-10);
}

TEST_CASE("machines that share a home have a profile each, and the one before is kept") {
  const test::ScratchFolder folder;
  const test::ScratchVariable data("XDG_DATA_HOME", folder.path().string());
  const MachineProfile a = profile_with(CalibrationEffort::full, "a");
  MachineProfile b = profile_with(CalibrationEffort::quick, "b");
  const StoredFile first = store_own_profile(a, "eigen");
  const StoredFile second = store_own_profile(b, "eigen");
  CHECK(first.file != second.file);
  CHECK(load_own_profile("eigen", a.context)->context.cpu == "a");
  CHECK(load_own_profile("eigen", b.context)->context.cpu == "b");
  CHECK_FALSE(load_own_profile("onednn", a.context));
  b.date = "2026-01-01";
  (void)store_own_profile(b, "eigen");
  CHECK(load_own_profile("eigen", b.context)->date == "2026-01-01");
  std::filesystem::path previous = second.file;
  previous.replace_extension(".previous");
  CHECK(profile_from_json(test::read_file(previous), "previous").date == "2025-01-01");
}

TEST_CASE("a profile of an earlier version is found, and a damaged one is replaced") {
  const test::ScratchFolder folder;
  const test::ScratchVariable data("XDG_DATA_HOME", folder.path().string());
  MachineProfile old = measured_profile();
  const auto file = folder.write("headroom/machines/here-eigen.json", profile_to_json(old));
  CHECK(load_own_profile("eigen", old.context)->date == "2025-01-01");
  CHECK_FALSE(store_own_profile(profile_with(CalibrationEffort::quick, old.context.cpu), "eigen")
                  .kept_because.empty());
  folder.write("headroom/machines/here-eigen.json", "{");
  CHECK_THROWS_AS((void)load_own_profile("eigen", old.context), Error);
  CHECK(store_own_profile(old, "eigen").kept_because.empty());
  CHECK(load_own_profile("eigen", old.context)->date == "2025-01-01");
}

TEST_CASE("without a home there is no profile, and storing one is an error") {
  const test::ScratchVariable data("XDG_DATA_HOME", "");
  const test::ScratchVariable home("HOME", "");
  CHECK_FALSE(load_own_profile("eigen", measured_profile().context));
  CHECK_THROWS_AS((void)store_own_profile(measured_profile(), "eigen"), Error);
}
