// The catalogue of machines: plausible units, dense figures, known ratios.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "headroom/error.h"
#include "headroom/machine_profile.h"
#include "headroom/report.h"
#include "support/data.h"

using namespace headroom;

namespace {

DatasheetRates sheet_of(const std::string& name) {
  const MachineProfile machine = find_machine(name);
  return std::get<DatasheetRates>(machine.rates);
}

double node_link_of(const std::string& name) {
  const MachineProfile machine = find_machine(name);
  REQUIRE(machine.interconnect.has_value());
  return machine.interconnect->intra_node_bytes_per_s;
}

double ratio(const std::optional<double>& more, const std::optional<double>& less) {
  REQUIRE(more.has_value());
  REQUIRE(less.has_value());
  return *more / *less;
}

std::string catalogue_refusal(const std::string& text) {
  return test::refusal_of([&] { (void)profile_from_json(text, "machine.json"); });
}

/// A machine with only the required members, plus `members`.
std::string smallest_machine(const std::string& members) {
  return R"({"schema_version": 1, "name": "mine", "date": "2026-01", "last_level_cache_bytes": 0,
    "context": {"cpu": "", "logical_cpus": 0, "compiler": "", "backend": ""},
    "source": "datasheet", "datasheet": "mine", "float16_flops_per_s": 1e14,
    "memory_bytes_per_s": 1e12, "memory_bytes": 24000000000)" +
         members + "}";
}

}  // namespace

TEST_CASE("every machine of the catalogue has plausible units and a source") {
  CHECK(catalogue_machines().size() >= 30);
  for (const MachineProfile& machine : catalogue_machines()) {
    CAPTURE(machine.name);
    const auto& sheet = std::get<DatasheetRates>(machine.rates);
    CHECK(sheet.memory_bytes_per_s >= 50e9);
    CHECK(sheet.memory_bytes_per_s <= 20e12);
    CHECK(sheet.memory_bytes >= 8'000'000'000);
    CHECK(sheet.float16_flops_per_s >= 1e12);
    CHECK(sheet.float16_flops_per_s <= 1e16);
    // Reading the whole memory once takes milliseconds to a minute.
    const double sweep_s = static_cast<double>(sheet.memory_bytes) / sheet.memory_bytes_per_s;
    CHECK(sweep_s > 0.005);
    CHECK(sweep_s < 60);
    if (sheet.power_w) {
      CHECK(*sheet.power_w >= 50);
      CHECK(*sheet.power_w <= 2000);
    }
    if (sheet.processors) {
      CHECK(sheet.processors->count >= 16);
      CHECK(sheet.processors->count <= 304);
      CHECK_FALSE(sheet.processors->source.empty());
    }
    CHECK_FALSE(sheet.source.empty());
    CHECK(sheet.url.starts_with("https://"));
    CHECK(machine.date.size() == 7);
  }
}

TEST_CASE("a narrower type is never slower, and no figure assumes sparsity") {
  for (const MachineProfile& machine : catalogue_machines()) {
    CAPTURE(machine.name);
    const auto& sheet = std::get<DatasheetRates>(machine.rates);
    if (sheet.float32_flops_per_s) {
      CHECK(ratio(sheet.float16_flops_per_s, sheet.float32_flops_per_s) >= 1);
    }
    // Half the bits are at most twice as fast where all figures are dense (GeForce's int8 is four
    // times its float16 with float32 accumulation, which it halves).
    const double most = machine.name.starts_with("rtx-") ? 4.05 : 2.05;
    if (sheet.float8_flops_per_s) {
      CHECK(ratio(sheet.float8_flops_per_s, sheet.float16_flops_per_s) <= 2.05);
    }
    if (sheet.int8_ops_per_s) {
      CHECK(ratio(sheet.int8_ops_per_s, sheet.float16_flops_per_s) <= most);
    }
    if (sheet.float4_flops_per_s) {
      // Blackwell Ultra triples its dense FP4 over FP8.
      const double most_of_float8 = machine.name.ends_with("b300") ? 3.1 : most;
      CHECK(ratio(sheet.float4_flops_per_s, sheet.float8_flops_per_s) <= most_of_float8);
    }
    if (sheet.int4_ops_per_s) CHECK(ratio(sheet.int4_ops_per_s, sheet.int8_ops_per_s) <= 2.05);
    if (sheet.tensor_float32_flops_per_s) {
      CHECK(ratio(sheet.tensor_float32_flops_per_s, sheet.float16_flops_per_s) <= 1);
    }
  }
}

TEST_CASE("a link is slower than memory, and a network slower than a link") {
  for (const MachineProfile& machine : catalogue_machines()) {
    CAPTURE(machine.name);
    if (!machine.interconnect) continue;
    const Interconnect& link = *machine.interconnect;
    CHECK(link.devices_per_node >= 2);
    CHECK(link.intra_node_bytes_per_s >= 10e9);
    CHECK(link.intra_node_bytes_per_s < std::get<DatasheetRates>(machine.rates).memory_bytes_per_s);
    CHECK_FALSE(link.intra_node_kind.empty());
    CHECK_FALSE(link.source.empty());
    CHECK(link.inter_node_bytes_per_s.has_value() != link.inter_node_kind.empty());
    CHECK(link.inter_node_bytes_per_s.value_or(1e9) >= 1e9);
    CHECK(link.inter_node_bytes_per_s.value_or(1e9) < link.intra_node_bytes_per_s);
  }
}

TEST_CASE("known pairs of machines have their known ratios") {
  const DatasheetRates a100 = sheet_of("a100-80gb");
  const DatasheetRates h100 = sheet_of("h100-80gb");
  const DatasheetRates h200 = sheet_of("h200-141gb");
  // Ampere: TF32 at half of bfloat16, int8 at twice. Hopper: float8 at twice.
  CHECK(ratio(a100.float16_flops_per_s, a100.tensor_float32_flops_per_s) == doctest::Approx(2));
  CHECK(ratio(a100.int8_ops_per_s, a100.float16_flops_per_s) == doctest::Approx(2));
  CHECK(ratio(h100.float8_flops_per_s, h100.float16_flops_per_s) ==
        doctest::Approx(2).epsilon(1e-3));
  // 132 multiprocessors of 4,096 operations a cycle at 1.83 GHz over 108 of 2,048 at 1.41 GHz.
  CHECK(ratio(h100.float16_flops_per_s, a100.float16_flops_per_s) ==
        doctest::Approx(132 * 4096 * 1.83 / (108 * 2048 * 1.41)).epsilon(5e-3));
  // An H200 is an H100 with more and faster memory.
  CHECK(h200.float16_flops_per_s == h100.float16_flops_per_s);
  CHECK(ratio(h200.memory_bytes_per_s, h100.memory_bytes_per_s) == doctest::Approx(4.8 / 3.35));
  CHECK(ratio(sheet_of("b200").float4_flops_per_s, sheet_of("b200").float16_flops_per_s) ==
        doctest::Approx(4));
  // NVLink: 600, 900 and 1,800 GB/s with both directions.
  CHECK(node_link_of("a100-80gb") == 300e9);
  CHECK(node_link_of("h100-80gb") == 450e9);
  CHECK(node_link_of("b200") == 900e9);
  // MI325X: the MI300X's arithmetic, 6.0 over 5.3 TB/s. MI355X over MI350X: 2.4 over 2.2 GHz.
  CHECK(sheet_of("mi325x").float16_flops_per_s == sheet_of("mi300x").float16_flops_per_s);
  CHECK(ratio(sheet_of("mi355x").float16_flops_per_s, sheet_of("mi350x").float16_flops_per_s) ==
        doctest::Approx(2.4 / 2.2).epsilon(1e-3));
  // H800: the H100's arithmetic behind 400 of its 900 GB/s; GB300: more than a B300 by 10/9, as
  // GB200 over B200.
  CHECK(sheet_of("h800-80gb").float16_flops_per_s == h100.float16_flops_per_s);
  CHECK(node_link_of("h800-80gb") == 200e9);
  CHECK(ratio(sheet_of("gb300").float16_flops_per_s, sheet_of("b300").float16_flops_per_s) ==
        doctest::Approx(2500.0 / 2250));
  // M5: Neural Accelerators have four times the matrix rate of M4's cores.
  CHECK(ratio(sheet_of("apple-m5").float16_flops_per_s, sheet_of("apple-m4").float16_flops_per_s) ==
        doctest::Approx(4).epsilon(0.01));
  // M5 Pro and Max: "over 4x the peak GPU compute for AI" of M4 Pro and Max; a Max is two Pros.
  CHECK(ratio(sheet_of("apple-m5-max").float16_flops_per_s,
              sheet_of("apple-m4-max").float16_flops_per_s) == doctest::Approx(4).epsilon(0.01));
  CHECK(ratio(sheet_of("apple-m5-pro").float16_flops_per_s,
              sheet_of("apple-m4-pro").float16_flops_per_s) == doctest::Approx(4).epsilon(0.01));
  CHECK(ratio(sheet_of("apple-m5-max").memory_bytes_per_s,
              sheet_of("apple-m5-pro").memory_bytes_per_s) == doctest::Approx(2));
  // 7680 bit at 3.996 GHz, two transfers a cycle.
  CHECK(sheet_of("b200").memory_bytes_per_s ==
        doctest::Approx(7680 / 8 * 3.996e9 * 2).epsilon(1e-3));
  // An Ultra is two of a Max; Google gives Trillium 4.7 times the arithmetic of v5e.
  CHECK(ratio(sheet_of("apple-m1-ultra").float32_flops_per_s,
              sheet_of("apple-m1-max").float32_flops_per_s) == doctest::Approx(2));
  CHECK(ratio(sheet_of("tpu-v6e").float16_flops_per_s, sheet_of("tpu-v5e").float16_flops_per_s) ==
        doctest::Approx(4.7).epsilon(0.01));
}

TEST_CASE("types of 8 and 4 bits run at their own rate, or at the 16-bit rate without one") {
  const DatasheetRates v100 = sheet_of("v100-32gb");
  CHECK(*peak_flops_per_s(v100, DType::float8) == 125e12);
  CHECK(*peak_flops_per_s(v100, DType::int4) == 125e12);
  // DGX B200: 72 PFLOP/s of dense FP4 from 8; T4: 260 TOP/s of INT4; A100: 1,248.
  CHECK(*peak_flops_per_s(sheet_of("b200"), DType::float4) == 72e15 / 8);
  CHECK(*peak_flops_per_s(sheet_of("t4"), DType::int4) == 260e12);
  CHECK(*peak_flops_per_s(sheet_of("a100-80gb"), DType::int4) == 1248e12);
  CHECK(*peak_flops_per_s(sheet_of("a100-80gb"), DType::float4) == 312e12);
  // Hopper has no units of 4 bits.
  const DatasheetRates h100 = sheet_of("h100-80gb");
  CHECK(*peak_flops_per_s(h100, DType::float4) == h100.float16_flops_per_s);
  CHECK(efficiency_of(h100, Purpose::serve, DType::float4).fractions.matrix ==
        efficiency_of(h100, Purpose::serve, DType::bfloat16).fractions.matrix);
  CHECK(*peak_flops_per_s(v100, DType::float32) == 15.7e12);
  CHECK(*peak_flops_per_s(sheet_of("h100-80gb"), DType::float8) == 1978.9e12);
  CHECK_FALSE(peak_flops_per_s(sheet_of("tpu-v5p"), DType::float32).has_value());
}

TEST_CASE("a note says which type a machine converts to 16 bits") {
  CHECK_FALSE(conversion_note(find_machine("b200"), DType::float4));
  CHECK_FALSE(conversion_note(find_machine("h100-80gb"), DType::float8));
  const std::string note = conversion_note(find_machine("h100-80gb"), DType::float4).value();
  CHECK(note.find("h100-80gb gives no rate for float4") != std::string::npos);
  CHECK(conversion_note(find_machine("gaudi3"), DType::int8).has_value());
}

TEST_CASE("a user's machine may omit figures that its publisher does not give") {
  const MachineProfile machine = profile_from_json(smallest_machine(""), "machine.json");
  const auto& sheet = std::get<DatasheetRates>(machine.rates);
  CHECK_FALSE(sheet.float32_flops_per_s.has_value());
  CHECK_FALSE(sheet.power_w.has_value());
  CHECK_FALSE(sheet.processors.has_value());
  CHECK_FALSE(machine.interconnect.has_value());
  // One figure of memory is all of it, and efficiencies are the assumed ones.
  CHECK(sheet.memory.total.bytes == 24'000'000'000);
  CHECK(sheet.memory.usable.bytes == 24'000'000'000);
  CHECK(efficiency_of(sheet, Purpose::serve, DType::bfloat16).origin == EfficiencyOrigin::assumed);
  CHECK(profile_to_json(machine).find("\"interconnect\": null") != std::string::npos);
}

TEST_CASE("a user's machine may give its memory, architecture and efficiencies") {
  const MachineProfile machine =
      profile_from_json(smallest_machine(R"(, "architecture": "hopper", "memory_efficiency": 0.6,
        "memory": {"total": {"bytes": 100, "basis": "reading", "source": "nvidia-smi"},
                   "usable": {"bytes": 90, "basis": "assumed", "source": "less a tenth"}})"),
                        "machine.json");
  const auto& sheet = std::get<DatasheetRates>(machine.rates);
  CHECK(sheet.memory.usable.bytes == 90);
  const SourcedEfficiency reached = efficiency_of(sheet, Purpose::serve, DType::bfloat16);
  const SourcedEfficiency hopper =
      known_efficiency(Architecture::hopper, Purpose::serve, DType::bfloat16);
  CHECK(reached.fractions.memory == 0.6);
  CHECK(reached.fractions.matrix == hopper.fractions.matrix);
  CHECK(reached.origin == EfficiencyOrigin::given);
}

TEST_CASE("implausible memory, architecture and efficiencies are errors") {
  const auto with = [](const std::string& members) {
    return catalogue_refusal(smallest_machine(", " + members));
  };
  CHECK(with(R"("architecture": "hoper")").find("hoper") != std::string::npos);
  CHECK(with(R"("compute_efficiency": 1.5)").find("not from 0.001 to 1") != std::string::npos);
  CHECK(with(R"("memory": 80)").find("not an object") != std::string::npos);
  CHECK(
      with(R"("memory": {"total": {"bytes": 1, "basis": "guess", "source": ""}})").find("basis") !=
      std::string::npos);
  CHECK(with(R"("memory": {"total": {"bytes": 1, "basis": "reading", "source": ""},
                           "usable": {"bytes": 2, "basis": "reading", "source": ""}})")
            .find("above") != std::string::npos);
}

TEST_CASE("an implausible link is an error") {
  const auto with_link = [](const std::string& link) {
    return catalogue_refusal(smallest_machine(", \"interconnect\": " + link));
  };
  CHECK(with_link("7").find("not an object") != std::string::npos);
  CHECK(with_link(R"({"devices_per_node": 2, "intra_node_bytes_per_s": 0, "source": ""})")
            .find("intra_node_bytes_per_s") != std::string::npos);
  CHECK(with_link(R"({"devices_per_node": 0, "intra_node_bytes_per_s": 1e9, "source": ""})")
            .find("devices_per_node") != std::string::npos);
  CHECK(catalogue_refusal(smallest_machine(", \"power_w\": -1")).find("power_w") !=
        std::string::npos);
  CHECK(catalogue_refusal(smallest_machine(R"(, "processors": {"count": 0, "source": "none"})"))
            .find("\"count\" is 0") != std::string::npos);
  CHECK(catalogue_refusal(smallest_machine(", \"float8_flops_per_s\": \"fast\"")).find("float8") !=
        std::string::npos);
}

TEST_CASE("a machine shows the link to its host, if its file states one") {
  const auto shown = [](const char* machine) { return render(find_machine(machine), {}); };
  CHECK(shown("gh200-96gb").find("450.0 GB/s in one direction over NVLink-C2C") !=
        std::string::npos);
  CHECK(shown("mi300a").find("the device computes in the host's memory, HBM3") !=
        std::string::npos);
  CHECK(shown("h100-80gb").find("\nhost ") == std::string::npos);
  CHECK(catalogue_refusal(smallest_machine(R"(, "host": {"kind": "PCIe", "source": ""})"))
            .find("bytes_per_s") != std::string::npos);
  CHECK(catalogue_refusal(
            smallest_machine(R"(, "host": {"kind": "PCIe", "bytes_per_s": 0, "source": ""})"))
            .find("bytes_per_s") != std::string::npos);
}

// H100 SXM: 67 TFLOP/s float32, 989.4 dense TFLOP/s float16, 3.35 TB/s, 81559 MiB by nvidia-smi.
// Source: NVIDIA H100 Tensor Core GPU datasheet.
TEST_CASE(
    "the list of machines has their figures in JSON, and one machine's CSV is a row of them") {
  const MachinesReport report{{}, {find_machine("h100-80gb")}};
  const std::string json = render(report, {Format::json});
  CHECK(json.find("\"float32_flops_per_s\": 67000000000000.0") != std::string::npos);
  CHECK(json.find("\"float16_flops_per_s\": 989400000000000.0") != std::string::npos);
  CHECK(json.find("\"memory_bytes_per_s\": 3350000000000.0") != std::string::npos);
  CHECK(json.find("\"memory_bytes\": 85520809984") != std::string::npos);
  const std::string csv = render(find_machine("h100-80gb"), {Format::csv});
  CHECK(csv.starts_with("machine,float32_flops_per_s,"));
  CHECK(csv.find("\nh100-80gb,67000000000000,") != std::string::npos);
  CHECK(std::ranges::count(csv, '\n') == 2);
}

TEST_CASE("a note says that headroom's own kernels compute in float32") {
  MachineProfile machine;
  machine.name = "a machine";
  machine.rates = MeasuredRates{};
  CHECK_FALSE(conversion_note(machine, DType::float32));
  for (const DType other : {DType::bfloat16, DType::float16, DType::int8}) {
    const std::string note = conversion_note(machine, other).value();
    CHECK(note.find("compute in float32") != std::string::npos);
    CHECK(note.ends_with("not of " + std::string(name_of(other))));
  }
}
