// Predictions of quantised safetensors against their files, and what the measured module holds and
// counts of them.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>

#include "calibrate/probes.h"
#include "headroom/analysis.h"
#include "headroom/error.h"
#include "headroom/predict.h"
#include "headroom/storage.h"
#include "measure.h"
#include "quantization/group_format.h"
#include "random_groups.h"
#include "support/data.h"
#include "weight_reader.h"

using namespace headroom;
using namespace headroom::checkpoint;
using namespace headroom::measured;
using headroom::detail::group_format_named;
using headroom::detail::group_format_of;
using headroom::detail::GroupFormat;
using headroom::detail::storage_format;

namespace fs = std::filesystem;

namespace {

std::vector<fs::path> folders() {
  std::vector<fs::path> all;
  for (const auto& entry : fs::directory_iterator(test::data_folder() / "quantized")) {
    all.push_back(entry.path());
  }
  REQUIRE(all.size() == 17);
  return all;
}

constexpr std::string_view kNames[] = {"4bit-1x32-s16",
                                       "4bit-1x128-s16-zeros",
                                       "4bit-1x64-nested",
                                       "4bit-1x16-s8",
                                       "int8-row-s16-zeros",
                                       "int8-row-s32",
                                       "fp8-128x128-s32",
                                       "fp8-tensor-s32",
                                       "f16",
                                       "bf16"};

std::vector<std::string> forms_of(const ModelSpec& spec) {
  return stored_gemm_formats(spec, Workload{}).value();
}

/// The form of a matrix as its file holds it, read from the unpacked tensors.
GroupFormat form_in_file(const GroupedWeights& weights) {
  GroupFormat form;
  switch (weights.kind) {
    case CodeKind::nibble:
      break;
    case CodeKind::int8:
      form.codes = headroom::detail::GroupCodes::int8;
      break;
    case CodeKind::float8:
      form.codes = headroom::detail::GroupCodes::float8;
      break;
    case CodeKind::float16:
    case CodeKind::bfloat16:
      FAIL("no codes");
  }
  using headroom::detail::GroupScales;
  const std::int64_t bytes = checkpoint::scale_bytes(weights.scales.kind);
  form.scales = bytes == 1   ? GroupScales::bits8
                : bytes == 2 ? GroupScales::bits16
                             : GroupScales::bits32;
  if (weights.scales.kind == ScaleKind::nested) form.scales = GroupScales::nested;
  form.has_zeros = !weights.zeros.empty();
  form.grain = {weights.scales.rows_per_scale,
                weights.group == weights.columns ? 0 : weights.group};
  return form;
}

/// The up-projection of the first layer, or a stacked one's first expert.
GroupedWeights up_projection(const fs::path& folder) {
  const auto reader = headroom::detail::read_packed(folder);
  const std::string experts = "model.layers.0.mlp.experts.gate_up_proj";
  if (reader->shape(experts)) return reader->read_groups(experts, 0);
  return reader->read_groups("model.layers.0.mlp.up_proj.weight", std::nullopt);
}

}  // namespace

TEST_CASE("names of forms of groups are read back, in any case, and other names are none") {
  for (const std::string_view name : kNames) {
    CAPTURE(name);
    const auto form = group_format_named(name);
    REQUIRE(form);
    CHECK(name_of(*form) == name);
  }
  CHECK(group_format_named("FP8-ROW-S16") == group_format_named("fp8-row-s16"));
  for (const char* const name : {"", "4bit", "q4_k", "4bit-1x12-s16", "4bit-1x0-s16",
                                 "bf16-row-s16", "int8-row-s64", "int8-row-s16-zero", "int8-1x-s16",
                                 "4bit--s16", "4bit-1x99999999-s16", "int8-row-s16-zeros-zeros"}) {
    CAPTURE(name);
    CHECK_FALSE(group_format_named(name));
  }
}

TEST_CASE("a config's formats name the forms that the tensors of its files have") {
  for (const fs::path& folder : folders()) {
    const std::string name = folder.filename().string();
    CAPTURE(name);
    const Model model = load_model(folder.string());
    const std::vector<std::string> forms = forms_of(model.spec);
    CHECK(forms_of(with_file_types(model).spec) == forms);
    GroupFormat form = form_in_file(up_projection(folder));
    // Rows of 64 inputs are shorter than blocks of 128 × 128, and as long as those of NF4.
    if (name == "fp8_blocks") form.grain.in = 128;
    if (name.starts_with("nf4")) form.grain.in = 64;
    if (name == "fp8_tensor") form = *group_format_named("fp8-tensor-s32");
    CAPTURE(name_of(form));
    CHECK(std::ranges::find(forms, name_of(form)) != forms.end());
    // The head.
    CHECK(std::ranges::find(forms, "bf16") != forms.end());
    CHECK(forms.size() == 2);
  }
}

TEST_CASE("a form as it is stored has that form, in as many bytes as random weights of it") {
  for (const std::string_view name : kNames) {
    CAPTURE(name);
    const GroupFormat form = *group_format_named(name);
    const StorageFormat stored = storage_format(form);
    CHECK(group_format_of(stored) == form);
    SplitMix64 numbers(3);
    const GroupedWeights weights = random_groups(form, 256, 512, 0.05F, numbers);
    // Beside nested scales: a float32 for every 256, and tables of 16 levels and 256 scales.
    const bool nested = form.scales == headroom::detail::GroupScales::nested;
    const Integer beside = nested ? 4 * (256 * 512 / 64 / 256 + 16 + 256) : 0;
    CHECK(stored.bytes(256, 512) == measured::bytes_of(weights) + beside);
  }
}

TEST_CASE("packings without kernels have no form, and names decide nothing") {
  const std::string configs[] = {
      R"({"bits": 4, "group_size": 64})",
      R"({"bits": 4, "group_size": 32, "mode": "mxfp4"})",
      R"({"quant_method": "hqq", "quant_config": {"weight_quant_params": {"nbits": 4, "group_size": 64}}})",
      R"({"quant_method": "torchao", "quant_type": "int4_weight_only"})",
      R"({"quant_method": "modelopt", "quant_algo": "W4A16_AWQ"})",
      R"({"quant_method": "gptq", "bits": 3, "group_size": 128})",
      R"({"quant_method": "awq", "bits": 8, "group_size": 128})"};
  for (const std::string& text : configs) {
    CAPTURE(text);
    auto config = test::read_json(test::data_folder() / "quantized/gptq_int4/config.json");
    config["quantization_config"] = nlohmann::json::parse(text);
    const ModelSpec spec = test::spec_of(config);
    REQUIRE_FALSE(spec.storage.rules.empty());
    CHECK_FALSE(group_format_of(spec.storage.rules.back().format.value()));
  }
  const StoredNumbers scale{.bits = 16, .block = {1, 64}};
  CHECK_FALSE(group_format_of({"INT4, groups of 64", {.bits = 4}, {scale}}));
  const StorageFormat coded{"", {.bits = 4}, {scale}, GroupCodes::four_bits};
  CHECK(name_of(group_format_of(coded).value()) == "4bit-1x64-s16");
}

TEST_CASE("quantised safetensors are held and counted in the predicted bytes") {
  for (const fs::path& folder : folders()) {
    CAPTURE(folder.filename().string());
    const Model model = load_model(folder.string());
    MeasureOptions options;
    options.storage = HeldType::stored;
    options.activations = ActivationPath::float32;
    options.runs = 1;
    options.warmup = 0;
    Workload workload;
    workload.seq_len = 5;
    TimeRequest request;
    request.computes_in_float32 = true;
    request.opaque_layout = options.backend == Backend::onednn;
    const RunFigures predicted = predict_run(model.spec, workload, request);
    const Integer held = predict_held_weight_bytes(model.spec, workload, request);
    const auto source = measured::stored_weights(model.spec, headroom::detail::read_packed(folder));
    const Measurement run =
        measure(model, workload, *source, std::nullopt, options, [](int, int) { return true; });
    CHECK(predicted.parameters == run.counted.parameters);
    CHECK(predicted.matrix_flops == run.counted.matrix_flops);
    // A config tells nothing of bitsandbytes' states in text, or of scales of inputs.
    CHECK(static_cast<double>(predicted.weight_bytes) ==
          doctest::Approx(static_cast<double>(run.counted.weight_bytes)).epsilon(0.03));
    // Tiles of routers' 4 rows are filled with zeros.
    CHECK(static_cast<double>(run.memory.weights_held_bytes) ==
          doctest::Approx(static_cast<double>(held)).epsilon(0.06));
  }
}

TEST_CASE("random groups have the form that is asked for, in as many bytes as are predicted") {
  for (const std::string_view name : kNames) {
    CAPTURE(name);
    const GroupFormat form = *group_format_named(name);
    SplitMix64 numbers(3);
    const GroupedWeights weights = random_groups(form, 256, 512, 0.05F, numbers);
    require_finite(weights, "test");
    const GroupPart part{&weights, {}};
    const PackedLinear linear(std::span(&part, 1), 512, ActivationPath::float32);
    const auto held = static_cast<double>(linear.held_bytes());
    CHECK(held == doctest::Approx(static_cast<double>(measured::bytes_of(weights))).epsilon(0.04));
    if (form.scales != headroom::detail::GroupScales::none && name != "fp8-tensor-s32") {
      GroupFormat found = form_in_file(weights);
      CHECK(name_of(found) == name);
    }
  }
}

TEST_CASE("GEMMs of weights in groups are timed with cold and with warm weights") {
  Gauge gauge(Backend::eigen, 1, std::int64_t{32} << 20);
  LinearProbes probes{Backend::eigen, {}};
  Budget& budget = probes.budgets.emplace_back(budget_of(Effort::quick));
  budget.rounds = 1;
  budget.seconds = 0;
  budget.gauge = &gauge;
  budget.reference = gauge.read();
  std::vector<ThreadProfile> profiles(1);
  REQUIRE(probe_stored_gemms(probes, *group_format_named("4bit-1x128-s16"), profiles,
                             [](double) { return true; }));
  const StoredGemm* const gemm = find_stored_gemm(profiles.front(), "4bit-1x128-s16");
  REQUIRE(gemm != nullptr);
  CHECK(gemm->cold.seconds.front().value_or(0) > 0);
  CHECK(gemm->warm.seconds.front().value_or(0) > 0);
}
