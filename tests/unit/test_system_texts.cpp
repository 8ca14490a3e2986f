// Texts of this machine, of the models on it and of the machines of the catalogue.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "headroom/machine_profile.h"
#include "headroom/report.h"
#include "headroom/system.h"
#include "support/data.h"
#include "support/scratch.h"
#include "unit/measured_profile.h"
#include "unit/report_text.h"

using namespace headroom;
using namespace headroom::test;

namespace {

SystemReport small_system() {
  SystemReport report;
  report.context.cpu = "a processor";
  report.context.logical_cpus = 8;
  report.context.caches = {"L1d 32K", "L2 1M"};
  report.context.backend = "eigen";
  report.usable_cpus = 8;
  report.memory_bytes = Integer{16} << 30;
  report.available_bytes = Integer{8} << 30;
  report.available_source = "a limit";
  return report;
}

nlohmann::json system_json(const SystemReport& report) {
  return nlohmann::json::parse(render(report, {.format = Format::json}));
}

/// Three models: read, unreadable, and one that does not fit.
LocalModelsReport three_models() {
  LocalModelsReport report;
  report.models = {
      {{"a", ModelStore::hugging_face, LocalFormat::safetensors, "/a", 1 << 20}, 1000, "BF16"},
      {{"b", ModelStore::ollama, LocalFormat::gguf, "/b", 2 << 20}, std::nullopt, ""},
      {{"c", ModelStore::lm_studio, LocalFormat::gguf, "/c", 3 << 20}, 2000, "Q4_K"}};
  report.notes = {"b cannot be read"};
  return report;
}

nlohmann::json models_json(const LocalModelsReport& report) {
  return nlohmann::json::parse(render(report, {.format = Format::json}));
}

}  // namespace

TEST_CASE("a system without devices, engines or calibration says so") {
  const SystemReport report = small_system();
  const std::string text = render(report, {});
  CHECK(prints(text, "a processor · 8 logical processors\n"));
  CHECK(prints(text, "calibration    none\n"));
  CHECK(prints(text, "configuration  no file\n"));
  CHECK(prints(text, "engines        none\n"));
  CHECK(prints(text, "devices        none found by"));
  CHECK(system_json(report)["profile"].is_null());
  CHECK(system_json(report)["configuration"]["file"].is_null());
}

TEST_CASE("a system lists its devices, engines, settings and the calibration that it has") {
  SystemReport report = small_system();
  report.usable_cpus = 2;
  report.devices = {{"A GPU", Integer{1} << 30, std::nullopt, "", "rocm-smi", "mi300x"},
                    {"Another", std::nullopt, 1 << 20, "1.2", "/sys", ""}};
  report.engines = {{"vllm", "/usr/bin/vllm"}, {"ollama", "/usr/bin/ollama"}};
  report.profile = OwnProfile{"2025-01-01", "quick", {1, 2}, "is of another processor"};
  report.configuration = {"headroom.toml", true, {{"machine", "l4", "headroom.toml"}}};
  const std::string text = render(report, {});
  CHECK(prints(text, "8 logical processors, of which 2 may be used\n"));
  CHECK(prints(text,
               "of 2025-01-01 · quick · 1, 2 threads · not valid: it is of another processor\n"));
  CHECK(prints(text, "engines        vllm · ollama\n"));
  CHECK(prints(text, "machine = l4 (headroom.toml)\n"));
  CHECK(prints(text, "A GPU      1.00       –  mi300x            –       rocm-smi\n"));
  CHECK(prints(text, "Another       –   <0.01  –                 1.2     /sys\n"));
  CHECK(prints(render(report, {.format = Format::csv}), "Another,,1048576,,1.2,/sys\n"));
  const nlohmann::json json = system_json(report);
  CHECK(json["profile"]["valid"] == false);
  CHECK(json["profile"]["invalid_because"] == "is of another processor");
  CHECK(json["devices"][1]["memory_bytes"].is_null());
  CHECK(json["devices"][0]["machine"] == "mi300x");
  CHECK(json["engines"][1]["path"] == "/usr/bin/ollama");
}

TEST_CASE("a valid calibration of an earlier version has no effort") {
  SystemReport report = small_system();
  report.profile = OwnProfile{"2025-01-01", "", {1, 4}, ""};
  CHECK(prints(render(report, {}), "calibration    of 2025-01-01 · 1, 4 threads\n"));
  CHECK(system_json(report)["profile"]["effort"].is_null());
  CHECK(system_json(report)["profile"]["valid"] == true);
}

TEST_CASE("models that cannot be read have no type, parameters or fit") {
  LocalModelsReport report = three_models();
  CHECK(prints(render(report, {.format = Format::csv}), "b,ollama,gguf,,,2097152,/b\n"));
  CHECK_FALSE(models_json(report)["models"][0].contains("fit"));
  CHECK(models_json(report)["models"][1]["storage_type"].is_null());
  CHECK(models_json(report)["models"][1]["parameters"].is_null());
  report.machine = "l4";
  report.models[0].fit = LocalFit{Integer{2} << 20, true, std::nullopt};
  report.models[2].fit = LocalFit{Integer{4} << 40, false, std::nullopt};
  const std::string csv = render(report, {.format = Format::csv});
  CHECK(prints(csv, ",1048576,2097152,yes,no limit,/a\n"));
  CHECK(prints(csv, ",2097152,,,,/b\n"));
  CHECK(prints(csv, ",3145728,4398046511104,no,,/c\n"));
  CHECK(models_json(report)["models"][1]["fit"].is_null());
  CHECK(models_json(report)["models"][0]["fit"]["largest_context"].is_null());
  report.models[0].fit->largest_context = 4096;
  CHECK(models_json(report)["models"][0]["fit"]["largest_context"] == 4096);
}

TEST_CASE("measured machines stand before the catalogue, with the peak of their GEMMs") {
  MachineProfile here = measured_profile();
  here.context.backend = "eigen";
  const MachinesReport report{{here}, {find_machine("h100-80gb"), find_machine("gaudi2")}};
  const std::string text = render(report, {});
  CHECK(text.find("here: a machine (eigen)") < text.find("h100-80gb"));
  CHECK(prints(text, "measured"));
  const nlohmann::json json = nlohmann::json::parse(render(report, {.format = Format::json}));
  CHECK(json["machines"][0]["name"] == "here");
  CHECK(json["machines"][0]["source"] == "measured");
  CHECK(json["machines"][2]["float32_flops_per_s"].is_null());
}

TEST_CASE("measurements of PyTorch show the fastest GEMMs of each type and the device's memory") {
  MachineProfile torch = measured_profile();
  auto& rates = std::get<MeasuredRates>(torch.rates);
  rates.engine = MeasuredEngine::pytorch;
  rates.device = MeasuredDevice{Architecture::hopper, Integer{80} << 30, true};
  rates.by_threads.push_back(rates.by_threads.front());
  rates.by_threads.back().dtype = DType::bfloat16;
  auto& tables = rates.by_threads.back().tables;
  const auto gemms = std::ranges::find(tables, KernelKind::linear_warm, &KernelTable::kind);
  REQUIRE(gemms != tables.end());
  for (std::optional<double>& seconds : gemms->seconds) seconds = *seconds / 2;
  const MachinesReport report{{torch}, {}};
  const nlohmann::json json = nlohmann::json::parse(render(report, {.format = Format::json}));
  CHECK(json["machines"][0]["memory_bytes"] == std::int64_t{80} << 30);
  CHECK(json["machines"][0]["float32_flops_per_s"].get<double>() == doctest::Approx(2e9));
  CHECK(json["machines"][0]["float16_flops_per_s"].get<double>() == doctest::Approx(4e9));
  CHECK(prints(render(torch, {}), "PyTorch · 2 threads · bfloat16\n"));
}

TEST_CASE("a measured machine shows its GEMMs of stored weights, and has no row of a datasheet") {
  MachineProfile here = measured_profile();
  auto& curves = std::get<MeasuredRates>(here.rates).by_threads.front();
  curves.stored_gemms = {{"Q4_K", curves.tables[0], curves.tables[1]}};
  const std::string text = render(here, {});
  CHECK(prints(text, "linear_cold Q4_K"));
  CHECK(prints(text, "linear_warm Q4_K"));
  CHECK(prints(text, "GEMM peak        2.0 GFLOP/s\n"));
  CHECK(prints(render(here, {.format = Format::csv}), "linear_cold Q4_K,"));
}

TEST_CASE("a machine's file without power, address or links leaves their lines out") {
  MachineProfile machine = find_machine("h100-80gb");
  auto& sheet = std::get<DatasheetRates>(machine.rates);
  CHECK(prints(render(machine, {}), "power                700 W\n"));
  sheet.power_w.reset();
  sheet.url.clear();
  machine.interconnect.reset();
  const std::string text = render(machine, {});
  CHECK_FALSE(prints(text, " W\n"));
  CHECK_FALSE(prints(text, "https://www.nvidia.com/en-us/data-center/h100/"));
  CHECK(prints(render(machine, {.format = Format::csv}), ",,,\n"));
}

TEST_CASE("the file of a machine names the command that wrote it, unless it names one itself") {
  RenderOptions options{.format = Format::json};
  options.invocation.arguments = {"machines", "show", "l4"};
  const auto arguments = [&](const MachineProfile& machine) {
    return nlohmann::json::parse(render(machine, options))["produced_by"]["arguments"];
  };
  MachineProfile machine = find_machine("l4");
  CHECK(arguments(machine) == nlohmann::json{"machines", "show", "l4"});
  machine.produced_by = Invocation{"1.0", "", {"calibrate"}};
  CHECK(arguments(machine) == nlohmann::json{"calibrate"});
}
