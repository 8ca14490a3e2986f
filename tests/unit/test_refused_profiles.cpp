// Machine files with one value changed: each is refused at its place, with its reason.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "headroom/machine_profile.h"
#include "support/data.h"
#include "unit/measured_profile.h"

using namespace headroom;
using namespace headroom::test;
using nlohmann::json;

namespace {

/// A value of a machine's file, and the end of the error that it gives.
struct RefusedValue {
  const char* pointer;
  json value;
  const char* because;
};

std::string profile_refusal(const json& file) {
  return refusal_of([&] { (void)profile_from_json(file.dump(), "m.json"); });
}

void check_refused(const json& file, const std::vector<RefusedValue>& rows) {
  REQUIRE(profile_refusal(file).empty());
  for (const RefusedValue& row : rows) {
    json changed = file;
    changed[json::json_pointer(row.pointer)] = row.value;
    CAPTURE(row.pointer);
    CAPTURE(row.value.dump());
    const std::string refusal = profile_refusal(changed);
    CAPTURE(refusal);
    CHECK(refusal.starts_with("m.json"));
    CHECK(refusal.find(row.because) != std::string::npos);
  }
}

/// Measured curves of PyTorch on a device, which may be in several types.
MachineProfile pytorch_profile() {
  MachineProfile profile = measured_profile();
  auto& rates = std::get<MeasuredRates>(profile.rates);
  rates.engine = MeasuredEngine::pytorch;
  rates.device = MeasuredDevice{Architecture::hopper, Integer{80} << 30, true};
  rates.by_threads.front().dtype = DType::bfloat16;
  return profile;
}

MachineProfile profile_with_collectives() {
  MachineProfile profile = measured_profile();
  profile.collectives = CollectiveRates{
      "2025-01-02",
      "Open MPI 4.1",
      {{CollectiveKind::all_reduce, {2, 2, 1}, {{1024, 1e-5, 0.1}, {2048, 2e-5, 0.1}}}}};
  return profile;
}

}  // namespace

TEST_CASE("values of another kind than a machine's file has are refused at their key") {
  check_refused(json::parse(profile_to_json(measured_profile())),
                {{"/name", 7, "\"name\" is not a string"},
                 {"/last_level_cache_bytes", "32 MiB", "\"last_level_cache_bytes\" is not a count"},
                 {"/last_level_cache_bytes", -1, "is not a count"},
                 {"/last_level_cache_bytes", std::int64_t{1} << 61, "is not a count"},
                 {"/context/other_programs_cpus", -0.5, "is not a number of processors"},
                 {"/context/other_programs_cpus", 3, "is not a number of processors"},
                 {"/context/other_programs_cpus", "1", "is not a number"},
                 {"/effort", "slow", "\"effort\" is neither \"quick\" nor \"full\""},
                 {"/engine", "jax", "\"engine\" is neither \"headroom\" nor \"pytorch\""},
                 {"/by_threads", 1, "\"by_threads\" is not a list"},
                 {"/by_threads", json::array(), "\"by_threads\" is empty"},
                 {"/by_threads/0/dtype", "float16", "\"dtype\" is only of the engine \"pytorch\""},
                 {"/by_threads/0/read", json::array(), "\"read\" is empty"}});
}

TEST_CASE("a curve with other axes, sizes or times than its kernel has is refused") {
  check_refused(
      json::parse(profile_to_json(measured_profile())),
      {{"/by_threads/0/kernels/0/axes/0/name", "columns", "the axis should be rows"},
       {"/by_threads/0/kernels/0/axes/0/sizes", json::array(), "are not positive and ascending"},
       {"/by_threads/0/kernels/0/axes/0/sizes", {10, 1}, "are not positive and ascending"},
       {"/by_threads/0/kernels/0/axes/0/sizes", {0, 1}, "are not positive and ascending"},
       {"/by_threads/0/kernels/0/axes/0/sizes", {1, "2"}, "\"sizes\" is not a number"},
       {"/by_threads/0/kernels/0/axes/0/sizes", 3, "\"sizes\" is not a list"},
       {"/by_threads/0/kernels/0/axes", json::array(), "has the wrong number of axes"},
       {"/by_threads/0/kernels/0/seconds", 3, "\"seconds\" is not a list"},
       {"/by_threads/0/kernels/0/seconds/1", "fast", "an entry that is not a time above zero"},
       {"/by_threads/0/kernels/0/seconds/0", nullptr, "its smallest point was not measured"},
       {"/by_threads/0/kernels/0/seconds", {1e-9}, "has 1 times and 8 spreads for 8 points"},
       {"/by_threads/0/kernels/0/spread", {0.1}, "has 8 times and 1 spreads for 8 points"}});
}

TEST_CASE("a curve with more points than a calibration measures is refused before it is read") {
  json file = json::parse(profile_to_json(measured_profile()));
  json sizes = json::array();
  for (int size = 1; size <= 2000; ++size) sizes.push_back(size);
  for (json& axis : file["by_threads"][0]["kernels"][0]["axes"]) axis["sizes"] = sizes;
  CHECK(profile_refusal(file).find("has too many points") != std::string::npos);
}

TEST_CASE("times of a device state a known type and whether the host runs ahead") {
  check_refused(json::parse(profile_to_json(pytorch_profile())),
                {{"/by_threads/0/dtype", "float8", "none of float32, float16 and bfloat16"},
                 {"/device/runs_behind_host", 1, "is neither true nor false"},
                 {"/device/architecture", "pascal", "there is no architecture \"pascal\""}});
  const MachineProfile read = profile_from_json(profile_to_json(pytorch_profile()), "m.json");
  CHECK(std::get<MeasuredRates>(read.rates).by_threads.front().dtype == DType::bfloat16);
}

TEST_CASE("curves of PyTorch without a type are in float32, as older files are") {
  json file = json::parse(profile_to_json(pytorch_profile()));
  file["by_threads"][0].erase("dtype");
  const MachineProfile read = profile_from_json(file.dump(), "m.json");
  CHECK(std::get<MeasuredRates>(read.rates).by_threads.front().dtype == DType::float32);
}

TEST_CASE("groups and points of measured collectives contradict each other in no file") {
  check_refused(
      json::parse(profile_to_json(profile_with_collectives())),
      {{"/collectives/tables/0/collective", "scatter", "no measured collective \"scatter\""},
       {"/collectives/tables/0/ranks", 1, "is not a group of at least 2"},
       {"/collectives/tables/0/processes", 3, "that divides \"processes\""},
       {"/collectives/tables/0/hosts", 0, "\"hosts\" is not from 1 to \"processes\""},
       {"/collectives/tables/0/hosts", 3, "\"hosts\" is not from 1 to \"processes\""},
       {"/collectives/tables/0/points", json::array(), "are not positive and ascending"},
       {"/collectives/tables/0/points/0/bytes", 0, "are not positive and ascending"},
       {"/collectives/tables/0/points/0/bytes", 4096, "are not positive and ascending"}});
}

TEST_CASE("a datasheet's figures are in range and name what they are about") {
  const json sheet = json::parse(profile_to_json(find_machine("h100-80gb")));
  check_refused(
      sheet,
      {{"/memory/usable/bytes", std::int64_t{1} << 40, "\"usable\" is above \"total\""},
       {"/memory/total/basis", "guessed", "neither \"reading\" nor \"assumed\""},
       {"/processors/count", 0, "\"count\" is 0: leave out \"processors\""},
       {"/interconnect/devices_per_node", 0, "\"devices_per_node\" is below 1"},
       {"/produced_by", {{"headroom", "1"}, {"arguments", "all"}}, "is not a list of texts"},
       {"/produced_by", {{"headroom", "1"}, {"arguments", json::array()}}, "not a list of texts"},
       {"/float18_flops_per_s", 1e12, "unknown key \"float18_flops_per_s\""},
       {"/memory/usable/byte", 1, "unknown key \"byte\""},
       {"/compute_efficiency", 1.5, "\"compute_efficiency\" is 1.5, not from"}});
}

TEST_CASE("fitted efficiencies state their purpose and as many runs as they say") {
  MachineProfile machine = find_machine("h100-80gb");
  FittedEfficiency fitted;
  fitted.purpose = Purpose::serve;
  fitted.fractions = {0.5, 0.6, 0.7};
  fitted.runs = 1;
  fitted.fitted_to = {{"gpt2", "tp 2", 1.5}};
  std::get<DatasheetRates>(machine.rates).fitted = {fitted};
  check_refused(json::parse(profile_to_json(machine)),
                {{"/fitted/0/purpose", "sell", "neither \"train\" nor \"serve\""},
                 {"/fitted/0/runs", 2, "not as many runs as \"runs\" says"},
                 {"/fitted/0/fitted_to", "gpt2", "\"fitted_to\" is not a list"}});
}
