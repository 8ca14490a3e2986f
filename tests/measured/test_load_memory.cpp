// Resident memory while weights are loaded and laid out, against what is counted of them.
#include <doctest/doctest.h>

#include <algorithm>
#include <optional>
#include <string>

#include "headroom/predict.h"
#include "headroom/storage.h"
#include "inspect/model_folder.h"
#include "kernels/stacked_rows.h"
#include "measure.h"
#include "run_memory.h"
#include "support/data.h"
#include "system.h"
#include "weight_layout.h"
#include "weights.h"

using namespace headroom;
using namespace headroom::measured;
using namespace headroom::test;

namespace {

/// A model whose table is 98 % of its weights: 51 million of 52.
nlohmann::json model_of_a_table() {
  nlohmann::json config = tied_llama();
  config["vocab_size"] = 200'000;
  return config;
}

struct Loaded {
  std::int64_t growth = 0;  ///< of resident memory, at most
  std::int64_t held = 0;
};

/// Empty where the system does not reset its peak.
std::optional<Loaded> loaded(const ModelSpec& spec, WeightSource& source,
                             const WeightOptions& options) {
  reset_peak_resident();
  const auto before = resident_bytes();
  const auto peak_before = peak_resident_bytes();
  constexpr std::int64_t kNear = std::int64_t{4} << 20;
  if (!before || !peak_before || *peak_before > *before + kNear) return std::nullopt;
  const ModelWeights weights(spec, source, options);
  return Loaded{peak_resident_bytes().value() - *before, weights.held_bytes()};
}

/// Beside weights: slices of a source and of its layout, and the ends of chunks of memory.
constexpr double kSlack = 24.0 * (1 << 20);

std::vector<Backend> backends() {
  std::vector<Backend> all{Backend::eigen};
  if (is_available(Backend::onednn)) all.push_back(Backend::onednn);
  return all;
}

}  // namespace

TEST_CASE("float32 weights never take their memory twice while they are laid out") {
  const ModelSpec spec = spec_of(model_of_a_table());
  for (const Backend backend : backends()) {
    for (const RowRange rows : {RowRange::few, RowRange::many, RowRange::both}) {
      const auto source = random_weights(1);
      const auto found = loaded(spec, *source, {backend, HeldType::float32, rows});
      if (!found) return;
      const HeldLayout layout{HeldType::float32, rows, rows, backend};
      const auto counted = static_cast<double>(loading_weight_bytes(spec, layout));
      CHECK(counted >= static_cast<double>(held_weight_bytes(spec, layout)));
      CHECK(static_cast<double>(found->growth) > 0.95 * counted);
      CHECK(static_cast<double>(found->growth) < 1.01 * counted + kSlack);
    }
  }
}

TEST_CASE("bfloat16 weights take the float32 values of one operator beside what is laid out") {
  const ModelSpec spec = spec_of(model_of_a_table());
  for (const RowRange rows : {RowRange::few, RowRange::both}) {
    const auto source = random_weights(1);
    const auto found = loaded(spec, *source, {Backend::eigen, HeldType::bfloat16, rows});
    if (!found) return;
    const HeldLayout layout{HeldType::bfloat16, rows, rows, Backend::eigen};
    const auto counted = static_cast<double>(loading_weight_bytes(spec, layout));
    CHECK(static_cast<double>(found->growth) > 0.95 * counted);
    CHECK(static_cast<double>(found->growth) < 1.01 * counted + kSlack);
  }
}

TEST_CASE("weights in blocks and in groups never take their memory twice while they are laid out") {
  for (const WeightType type : {WeightType::q8_0, WeightType::int8}) {
    const ModelSpec spec = stored_as(spec_of(model_of_a_table()), type);
    const auto source = random_stored(spec, 1);
    const auto found = loaded(spec, *source, {Backend::eigen, HeldType::stored, RowRange::both});
    if (!found) return;
    CAPTURE(name_of(type));
    CHECK(static_cast<double>(found->growth) < 1.01 * static_cast<double>(found->held) + kSlack);
    const RunMemory memory = memory_of(spec, {Workload{}, 0, HeldType::stored});
    CHECK(static_cast<double>(memory.loading) ==
          doctest::Approx(static_cast<double>(found->held)).epsilon(0.01));
  }
}

TEST_CASE("the memory to load is counted in a run's, and predicted alike") {
  const ModelSpec spec = spec_of(model_of_a_table());
  const Integer table = Integer{200'000} * 256;
  WorkloadRequest step;
  step.phase = Phase::decode;
  step.weights = WeightType::bfloat16;
  PlannedRun run{resolve(step, spec)};
  run.storage = HeldType::bfloat16;
  const RunMemory memory = memory_of(spec, run);
  CHECK(memory.weights < 3 * table);
  CHECK(memory.loading >= 4 * table);  // its float32 values
  CHECK(memory.loading < 5 * table);
  CHECK(memory.total() == memory.loading);
  TimeRequest request;
  request.computes_in_float32 = true;
  CHECK(predict_run(spec, run.workload, request).rss_growth_bytes == memory.loading);
}

TEST_CASE("rows of stacked parts are read in slices, rounded, with the values of each part") {
  constexpr std::int64_t kIn = 40'000;  // rows of 160 kB: 26 in a slice
  std::vector<float> first(30 * kIn);
  std::vector<float> second(11 * kIn);
  for (std::size_t i = 0; i < first.size(); ++i) first[i] = static_cast<float>(i);
  for (std::size_t i = 0; i < second.size(); ++i) second[i] = -static_cast<float>(i);
  const LinearPart parts[] = {{first, {}}, {second, {}}};
  std::vector<float> all(first);
  all.insert(all.end(), second.begin(), second.end());
  const StackedWeights weights{kIn, 41, parts, HeldType::float32, {}};
  std::vector<float> read;
  std::int64_t slices = 0;
  StackedRows(weights).for_slices(4, [&](Range rows, const float* values) {
    CHECK(rows.begin % 4 == 0);
    read.insert(read.end(), values, values + rows.size() * kIn);
    ++slices;
  });
  CHECK(slices == 2);
  CHECK(read == all);
}

TEST_CASE("memory that is read for the last time is gone behind the reading, and only there") {
  constexpr std::size_t kFloats = std::size_t{16} << 18;  // 16 MiB
  AlignedVector<float> values(kFloats, 1.0F);
  for_source_rows(std::as_bytes(std::span(values)), SourceMemory::kept, kFloats, 1, [](Range) {});
  CHECK(std::ranges::count(values, 1.0F) == kFloats);
  double sum = 0;
  for_source_rows(std::as_bytes(std::span(values)), SourceMemory::released, kFloats, 1,
                  [&](Range rows) {
                    for (std::int64_t i = rows.begin; i < rows.end; ++i) {
                      sum += static_cast<double>(values[static_cast<std::size_t>(i)]);
                    }
                  });
  CHECK(sum == kFloats);
#if defined(__linux__)
  CHECK(std::ranges::count(values, 0.0F) == kFloats);
#endif
}
