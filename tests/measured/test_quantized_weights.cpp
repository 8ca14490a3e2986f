// Quantised safetensors run as they are stored, against the outputs of the reference code with the
// dequantised weights. Source: tests/data/README.md.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "golden_values.h"
#include "headroom/error.h"
#include "headroom/storage.h"
#include "measure.h"
#include "safetensors_writer.h"
#include "session.h"
#include "support/data.h"
#include "support/scratch.h"
#include "weight_reader.h"

using namespace headroom;
using namespace headroom::checkpoint;
using namespace headroom::measured;
using headroom::measured::testing::error_over_tolerance;
using headroom::measured::testing::values_of;

namespace fs = std::filesystem;

namespace {

std::vector<fs::path> quantized_folders() {
  std::vector<fs::path> folders;
  for (const auto& entry : fs::directory_iterator(test::data_folder() / "quantized")) {
    folders.push_back(entry.path());
  }
  std::ranges::sort(folders);
  REQUIRE(folders.size() == 17);
  return folders;
}

std::unique_ptr<WeightSource> source_of(const fs::path& folder, const ModelSpec& spec) {
  return stored_weights(spec, headroom::detail::read_packed(folder));
}

void check_outputs(const fs::path& folder, HeldType storage) {
  const ModelSpec spec = load_model(folder.string()).spec;
  const InputFile inputs = read_inputs(folder / "inputs.json", spec);
  const SafetensorsFile expected(folder / "expected.safetensors");
  SessionOptions options;
  options.storage = storage;
  const auto source = source_of(folder, spec);
  Session session(spec, *source, options);
  std::size_t compared = 0;
  for (const NamedTensor& tensor : session.forward(inputs.inputs)) {
    CAPTURE(tensor.name);
    const StoredTensor* const wanted = expected.find(tensor.name);
    if (wanted == nullptr) continue;
    CHECK(error_over_tolerance(tensor.values, values_of(*wanted)) <= 1);
    ++compared;
  }
  CHECK(compared >= 2);
  const Generation generation = session.generate(*inputs.generate);
  const StoredTensor& ids = *expected.find("generate.ids");
  std::vector<std::int64_t> expected_ids(ids.data.size() / sizeof(std::int64_t));
  std::memcpy(expected_ids.data(), ids.data.data(), ids.data.size());
  CHECK(generation.ids == expected_ids);
  CHECK(error_over_tolerance(generation.logits.values,
                             values_of(*expected.find("generate.logits"))) <= 1);
}

Measurement measured_of(const Model& model, const fs::path& folder, HeldType storage,
                        ActivationPath activations = ActivationPath::float32) {
  MeasureOptions options;
  options.storage = storage;
  options.phase = MeasuredPhase::generate;
  options.new_tokens = 3;
  options.runs = 1;
  options.warmup = 0;
  options.activations = activations;
  Workload workload;
  workload.seq_len = 5;
  const auto source = source_of(folder, model.spec);
  return measure(model, workload, *source, std::nullopt, options, [](int, int) { return true; });
}

/// Bytes of all tensors of the files, and of those with one dimension that are no pieces of packed
/// weights: norms and biases, which run as float32.
struct FileBytes {
  std::int64_t all = 0;
  std::int64_t vectors = 0;
};

FileBytes bytes_of(const fs::path& folder) {
  FileBytes bytes;
  const SafetensorsFile file(folder / "model.safetensors");
  for (const StoredTensor& tensor : file.tensors()) {
    const auto size = static_cast<std::int64_t>(tensor.data.size());
    bytes.all += size;
    const bool is_vector = tensor.name.ends_with("norm.weight") || tensor.name.ends_with("bias") ||
                           tensor.name.ends_with("sinks");
    if (is_vector) bytes.vectors += size;
  }
  return bytes;
}

/// Copies the folder with other values of keys of its quantization_config.
void copy_with(const fs::path& folder, const nlohmann::json& changes,
               const test::ScratchFolder& copy) {
  for (const auto& entry : fs::directory_iterator(folder)) {
    fs::copy(entry.path(), copy.path() / entry.path().filename());
  }
  std::ifstream before(folder / "config.json");
  nlohmann::json config = nlohmann::json::parse(before);
  config["quantization_config"].update(changes);
  std::ofstream(copy.path() / "config.json") << config;
}

GroupedWeights groups_of(const fs::path& folder, const std::string& tensor,
                         std::optional<std::int64_t> expert = std::nullopt) {
  return headroom::detail::read_packed(folder)->read_groups(tensor, expert);
}

/// The message that refuses `tensor`; empty if it can be read.
std::string error_of(const fs::path& folder, const std::string& tensor,
                     std::optional<std::int64_t> expert = std::nullopt) {
  try {
    (void)groups_of(folder, tensor, expert);
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::invalid_input);
    CHECK(error.where().find(tensor.substr(0, tensor.rfind('.'))) != std::string::npos);
    CHECK(error.hint() != "");
    return error.what();
  }
  return "";
}

using Tensors = std::vector<TensorToWrite>;

/// A tensor whose bytes all have the value `fill`.
TensorToWrite filled(std::string name, StoredType type, std::vector<std::int64_t> shape, int fill) {
  const std::size_t bytes = stored_bytes(type, shape).value();
  return {std::move(name), type, std::move(shape), std::vector(bytes, std::byte(fill))};
}

TensorToWrite int32s(std::string name, std::vector<std::int64_t> shape,
                     const std::vector<std::int32_t>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return {std::move(name), StoredType::int32, std::move(shape), {bytes.begin(), bytes.end()}};
}

/// A folder with these tensors alone.
std::unique_ptr<test::ScratchFolder> folder_with(const Tensors& tensors) {
  auto folder = std::make_unique<test::ScratchFolder>();
  write_safetensors(folder->path() / "model.safetensors", tensors);
  return folder;
}

std::string error_of(const Tensors& tensors) {
  return error_of(folder_with(tensors)->path(), "x.weight");
}

std::string error_with(Tensors tensors, TensorToWrite another) {
  tensors.push_back(std::move(another));
  return error_of(tensors);
}

// Bytes of 0x38 are 1 in E4M3; bytes of 0x3c are 1.06 in F16 and 0.011 in F32.
constexpr int kOne = 0x38;
constexpr int kScale = 0x3c;

/// FP8, [2, 8] of 1 with a scale.
Tensors float8() {
  return {filled("x.weight", StoredType::float8_e4m3, {2, 8}, kOne),
          filled("x.weight_scale", StoredType::float32, {}, kScale)};
}

/// GPTQ, [8, 8] of the code 5; zero points are stored as `zeros`.
Tensors gptq(int zeros) {
  return {filled("x.qweight", StoredType::int32, {1, 8}, 0x55),
          filled("x.qzeros", StoredType::int32, {1, 1}, zeros),
          filled("x.scales", StoredType::float16, {1, 8}, kScale)};
}

/// compressed-tensors, [2, 16] in groups of 8, and the groups of the inputs.
Tensors packed_with_groups(const std::vector<std::int32_t>& groups) {
  const std::array<std::int64_t, 2> shape{2, 16};
  return {filled("x.weight_packed", StoredType::int32, {2, 2}, 0x55),
          filled("x.weight_scale", StoredType::float16, {2, 2}, kScale),
          int64_tensor("x.weight_shape", {2}, shape), int32s("x.weight_g_idx", {16}, groups)};
}

/// Floats of four bits, [2, 32], with scales of this type and shape.
Tensors float4(StoredType type, std::int64_t groups) {
  return {filled("x.weight_packed", StoredType::uint8, {2, 16}, 0x22),
          filled("x.weight_scale", type, {2, groups}, kOne)};
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("quantised safetensors run as stored compute what their dequantised weights compute") {
  for (const fs::path& folder : quantized_folders()) {
    CAPTURE(folder.filename().string());
    check_outputs(folder, HeldType::stored);
  }
}

TEST_CASE("quantised safetensors can be dequantised to float32") {
  for (const fs::path& folder : quantized_folders()) {
    CAPTURE(folder.filename().string());
    check_outputs(folder, HeldType::float32);
  }
}

TEST_CASE("quantised safetensors are counted and held in the bytes of their files") {
  for (const fs::path& folder : quantized_folders()) {
    CAPTURE(folder.filename().string());
    const Model model = load_model(folder.string());
    const Measurement run = measured_of(model, folder, HeldType::stored);
    const FileBytes bytes = bytes_of(folder);
    CHECK(run.counted.weight_bytes == bytes.all);
    const Graph graph = build_graph(model.spec, all_parts());
    CHECK(Integer{run.counted.weight_bytes} == stored_weights(model, graph).bytes);
    // Vectors of 16 bits take 32, and the routers' 4 rows of gpt-oss fill up tiles of up to 16.
    constexpr std::int64_t kFilledUp = std::int64_t{2} * 12 * 64 * 2;
    const std::int64_t filled = folder.filename() == "mxfp4" ? kFilledUp : 0;
    const auto held = static_cast<double>(run.memory.weights_held_bytes - bytes.vectors - filled);
    CHECK(held < 1.01 * static_cast<double>(bytes.all));
    CHECK(held > 0.95 * static_cast<double>(bytes.all));
    CHECK(run.activations == "float32");
    const Measurement widened = measured_of(model, folder, HeldType::float32);
    CHECK(run.counted.matrix_flops == widened.counted.matrix_flops);
    CHECK(run.counted.parameters == widened.counted.parameters);
  }
}

TEST_CASE("codes that are integers run with int8 activations, and others are refused by name") {
  for (const fs::path& folder : quantized_folders()) {
    const std::string name = folder.filename().string();
    CAPTURE(name);
    const Model model = load_model(folder.string());
    const auto run_int8 = [&] {
      return measured_of(model, folder, HeldType::stored, ActivationPath::int8);
    };
    if (name.starts_with("fp8") || name.starts_with("nf4")) {
      CHECK_THROWS_WITH_AS((void)run_int8(),
                           doctest::Contains("int8 activations need integer weights"), Error);
      CHECK_FALSE(measured_of(model, folder, HeldType::stored).integers_decoded);
      continue;
    }
    const Measurement rounded = run_int8();
    const Measurement plain = measured_of(model, folder, HeldType::stored);
    CHECK(rounded.activations == "int8");
    CHECK_FALSE(rounded.integers_decoded);
    CHECK(plain.integers_decoded);
    CHECK(rounded.counted.matrix_flops == plain.counted.matrix_flops);
    CHECK(rounded.counted.weight_bytes == plain.counted.weight_bytes);
    CHECK(rounded.memory.weights_held_bytes == plain.memory.weights_held_bytes);
    // The head and the table of words are bfloat16.
    CHECK(rounded.warnings.back().find("weights in BF16") != std::string::npos);
  }
}

// A block's rounding has a deviation of max|x|/127/√12, about 0.6 % of its values' for normal ones
// and 1 % behind gates; the outputs add those of eight products.
TEST_CASE("int8 activations change outputs by less than three hundredths of their size") {
  for (const fs::path& folder : quantized_folders()) {
    CAPTURE(folder.filename().string());
    const ModelSpec spec = load_model(folder.string()).spec;
    const InputFile inputs = read_inputs(folder / "inputs.json", spec);
    const auto logits_of = [&](ActivationPath path) {
      SessionOptions options;
      options.storage = HeldType::stored;
      options.activations = path;
      const auto source = source_of(folder, spec);
      Session session(spec, *source, options);
      const std::vector<NamedTensor> outputs = session.forward(inputs.inputs);
      return std::ranges::find(outputs, "logits", &NamedTensor::name)->values;
    };
    const auto plain = logits_of(ActivationPath::float32);
    const auto rounded = logits_of(ActivationPath::int8);
    double error = 0;
    double size = 0;
    for (std::size_t i = 0; i < plain.size(); ++i) {
      error += std::pow(static_cast<double>(rounded[i]) - static_cast<double>(plain[i]), 2);
      size += std::pow(static_cast<double>(plain[i]), 2);
    }
    CHECK(std::sqrt(error / size) < 0.03);
  }
}

TEST_CASE("forms of packed weights that no kernel runs are refused with their tensor") {
  const std::string tensor = "model.layers.0.mlp.up_proj.weight";
  const fs::path data = test::data_folder() / "quantized";
  const test::ScratchFolder gemv;
  copy_with(data / "awq_int4", {{"version", "gemv"}}, gemv);
  const std::string of_awq = error_of(gemv.path(), tensor);
  CHECK(of_awq.find("the version \"gemv\" of AWQ is not supported") != std::string::npos);
  const test::ScratchFolder marlin;
  copy_with(data / "gptq_int4", {{"checkpoint_format", "marlin"}}, marlin);
  const std::string of_gptq = error_of(marlin.path(), tensor);
  CHECK(of_gptq.find("the checkpoint_format \"marlin\" of GPTQ") != std::string::npos);
}

TEST_CASE("zero points of GPTQ's two formats differ by one") {
  const std::string tensor = "model.layers.0.mlp.up_proj.weight";
  const fs::path folder = test::data_folder() / "quantized" / "gptq_int4";
  const test::ScratchFolder second;
  copy_with(folder, {{"checkpoint_format", "gptq_v2"}}, second);
  const GroupedWeights first = groups_of(folder, tensor);
  const GroupedWeights other = groups_of(second.path(), tensor);
  REQUIRE(first.zeros.size() == other.zeros.size());
  for (std::size_t i = 0; i < first.zeros.size(); ++i) {
    CHECK(first.zeros[i] == (other.zeros[i] + 1) % 16);
  }
}

// Source: dynamic_import_quant_linear_for_packing in auto_round/export/export_to_autoround.
TEST_CASE("AutoRound's packing_format tells how zero points are stored") {
  const std::string tensor = "model.layers.0.mlp.up_proj.weight";
  const fs::path data = test::data_folder() / "quantized";
  const test::ScratchFolder second;
  copy_with(data / "gptq_int4", {{"checkpoint_format", "gptq_v2"}}, second);
  const auto less_one = groups_of(data / "gptq_int4", tensor).zeros;
  const auto plain = groups_of(second.path(), tensor).zeros;
  const auto in = [&](const std::string& folder, nlohmann::json changes, auto check) {
    const test::ScratchFolder copy;
    changes["quant_method"] = "auto-round";
    copy_with(data / folder, changes, copy);
    check(copy.path());
  };
  const auto zeros_are = [&](const std::vector<std::uint8_t>& zeros) {
    return [&](const fs::path& folder) { CHECK(groups_of(folder, tensor).zeros == zeros); };
  };
  const auto is_refused = [&](const fs::path& folder) {
    CHECK(has(error_of(folder, tensor), "packing_format"));
  };
  in("gptq_int4", {}, zeros_are(less_one));
  in("gptq_int4", {{"packing_format", "auto_round:auto_gptq"}}, zeros_are(less_one));
  in("gptq_int4", {{"packing_format", "auto_round:gptq"}}, zeros_are(less_one));
  in("gptq_int4", {{"packing_format", "auto_round"}}, zeros_are(plain));
  in("gptq_int4", {{"packing_format", "auto_round:gptqmodel"}}, zeros_are(plain));
  in("gptq_int4", {{"packing_format", "auto_round:auto_awq"}}, is_refused);
  in("gptq_int4", {{"packing_format", "auto_round:marlin"}}, is_refused);
  in("awq_int4", {{"packing_format", "auto_round:auto_awq"}},
     zeros_are(groups_of(data / "awq_int4", tensor).zeros));
  in("awq_int4", {{"packing_format", "auto_round:auto_gptq"}}, is_refused);
}

TEST_CASE("a packed weight with a tensor that would change it is refused") {
  CHECK(error_of(float8()) == "");
  CHECK(has(error_with(float8(), filled("x.weight_scale_2", StoredType::float32, {}, kScale)),
            "no kernel uses its tensor \"weight_scale_2\""));
  CHECK(has(error_with(float8(), filled("x.weight_scale_inv", StoredType::float32, {}, kScale)),
            "\"weight_scale\""));
  CHECK(has(error_with(float8(), filled("x.pre_quant_scale", StoredType::float32, {8}, kScale)),
            "\"pre_quant_scale\""));
  const auto zero_point = [](int fill) {
    return filled("x.weight_zero_point", StoredType::float8_e4m3, {1}, fill);
  };
  CHECK(error_with(float8(), zero_point(0)) == "");
  CHECK(has(error_with(float8(), zero_point(kOne)), "floats have no zero points"));
  CHECK(error_of(gptq(0x77)) == "");
  CHECK(has(error_with(gptq(0x77), filled("x.weight", StoredType::float16, {8, 8}, kScale)),
            "\"weight\""));
  CHECK(has(error_with(gptq(0x77), filled("x.pre_quant_scale", StoredType::float16, {8}, kScale)),
            "\"pre_quant_scale\""));
}

TEST_CASE("scales of activations leave a weight as it is") {
  for (const std::string name : {"input_scale", "input_zero_point", "input_global_scale",
                                 "activation_scale", "output_scale"}) {
    CAPTURE(name);
    const TensorToWrite scale = filled("x." + name, StoredType::float32, {}, kScale);
    CHECK(error_with(float8(), scale) == "");
    CHECK(error_with(gptq(0x77), scale) == "");
    CHECK(error_with(float4(StoredType::uint8, 1), scale) == "");
  }
  // A weight of 16 bits stays plain beside them; the scales of a KV-cache do not count.
  Tensors tensors = float8();
  tensors.push_back(filled("k_proj.weight", StoredType::float16, {2, 8}, kScale));
  tensors.push_back(filled("k_proj.output_scale", StoredType::float32, {}, kScale));
  const auto folder = folder_with(tensors);
  CHECK(headroom::detail::read_packed(folder->path())->group_format("k_proj.weight") == "F16");
  const ModelSpec spec =
      load_model((test::data_folder() / "quantized" / "fp8_tensor").string()).spec;
  const auto table = headroom::detail::name_table(spec);
  CHECK(headroom::detail::extra_kind(table, "model.layers.0.self_attn.k_proj.output_scale"));
  CHECK(headroom::detail::extra_kind(table, "model.layers.0.self_attn.q_scale"));
}

// NVFP4 has E4M3 scales of 16 and a scale of the tensor; MXFP4 has E8M0 scales of 32 (OCP
// Microscaling Formats 1.0, table 1).
TEST_CASE("four-bit floats need the scales of NVFP4 or of MXFP4") {
  const TensorToWrite tensor_scale =
      filled("x.weight_global_scale", StoredType::float32, {1}, kScale);
  CHECK(error_of(float4(StoredType::uint8, 1)) == "");
  CHECK(has(error_of(float4(StoredType::uint8, 2)), "the scales of MXFP4"));
  CHECK(has(error_of(float4(StoredType::float8_e4m3, 2)), "the scales of MXFP4"));
  CHECK(error_with(float4(StoredType::float8_e4m3, 2), tensor_scale) == "");
  CHECK(has(error_with(float4(StoredType::float8_e4m3, 1), tensor_scale), "the scales of NVFP4"));
  CHECK(has(error_with(float4(StoredType::uint8, 2), tensor_scale), "the scales of NVFP4"));
}

TEST_CASE("an order of inputs is unused only if compressed-tensors has no group at all") {
  std::vector<std::int32_t> groups(16, -1);
  CHECK(error_of(packed_with_groups(groups)) == "");
  groups.back() = 0;
  CHECK(has(error_of(packed_with_groups(groups)), "does not give each group 8 inputs"));
  for (std::size_t i = 0; i < groups.size(); ++i) groups[i] = i % 2 == 0 ? 0 : 1;
  CHECK(error_of(packed_with_groups(groups)) == "");
  groups.back() = 2;
  CHECK(has(error_of(packed_with_groups(groups)), "does not give each group 8 inputs"));
  CHECK(has(error_with(gptq(0x77), int32s("x.g_idx", {8}, std::vector(8, -1))),
            "does not give each group 8 inputs"));
}

// 15 + 1 in four bits, as AutoGPTQ's torch kernels have it (qlinear_cuda_old.py).
TEST_CASE("GPTQ's stored zero point 15 is 0") {
  const GroupedWeights groups = groups_of(folder_with(gptq(0xff))->path(), "x.weight");
  std::vector<float> row(8);
  dequantise_row(groups, 0, row);
  const float scale = scale_of(groups, 0, 0);
  CHECK(scale > 0);
  for (const float value : row) CHECK(value == 5 * scale);
}

TEST_CASE("weights without values are refused") {
  const auto none = [](StoredType type, std::vector<std::int64_t> shape) {
    return filled("x.weight", type, std::move(shape), 0);
  };
  const TensorToWrite scale = filled("x.weight_scale", StoredType::float32, {}, kScale);
  CHECK(has(error_of({none(StoredType::float8_e4m3, {0, 8}), scale}), "the weight has no values"));
  CHECK(has(error_of({none(StoredType::float8_e4m3, {8, 0}), scale}), "the weight has no values"));
  CHECK(has(error_of({none(StoredType::int8, {0, 0}), scale}), "the weight has no values"));
  CHECK(has(error_of({none(StoredType::bfloat16, {0, 8})}), "the weight has no values"));
  const auto experts = folder_with({filled("x_blocks", StoredType::uint8, {0, 4, 1, 16}, 0),
                                    filled("x_scales", StoredType::uint8, {0, 4, 1}, 0)});
  CHECK(has(error_of(experts->path(), "x", 0), "the weight has no values"));
  const auto reader =
      headroom::detail::read_packed(folder_with({none(StoredType::float16, {8, 0})})->path());
  CHECK_FALSE(reader->group_format("x.weight"));
}

TEST_CASE("an expert that the file lacks is refused") {
  const fs::path folder = test::data_folder() / "quantized" / "mxfp4";
  const std::string tensor = "model.layers.0.mlp.experts.down_proj";
  CHECK(error_of(folder, tensor, 3) == "");
  CHECK(has(error_of(folder, tensor, 4), "has 4 experts, not an expert 4"));
}

TEST_CASE("FP8 has a scale per block as the config states, by default of 128 × 128") {
  const auto folder =
      folder_with({filled("x.weight", StoredType::float8_e4m3, {1, 300}, kOne),
                   filled("x.weight_scale_inv", StoredType::float32, {1, 3}, kScale),
                   filled("y.weight", StoredType::float8_e4m3, {4, 8}, kOne),
                   filled("y.weight_scale", StoredType::float32, {2, 2}, kScale)});
  CHECK(groups_of(folder->path(), "x.weight").group == 128);
  CHECK(has(error_of(folder->path(), "y.weight"), "no scale per tensor, row, group or block"));
  const nlohmann::json weights = {{"strategy", "block"}, {"block_structure", {2, 4}}};
  const nlohmann::json groups = {{"group_0", {{"weights", weights}}}};
  (void)folder->write("config.json",
                      nlohmann::json{{"quantization_config", {{"config_groups", groups}}}}.dump());
  const GroupedWeights stated = groups_of(folder->path(), "y.weight");
  CHECK(stated.group == 4);
  CHECK(stated.scales.rows_per_scale == 2);
}

TEST_CASE("parts of packed weights are those of the whole") {
  const fs::path data = test::data_folder() / "quantized";
  const auto check = [](const fs::path& folder, const std::string& tensor,
                        std::optional<std::int64_t> expert, std::size_t values) {
    const auto reader = headroom::detail::read_packed(folder);
    std::vector<float> whole(values);
    reader->read(tensor, expert, whole);
    for (const std::size_t first : {std::size_t{0}, std::size_t{70}, values - 130}) {
      std::vector<float> part(130);
      reader->read_part(tensor, expert, static_cast<std::int64_t>(first), part);
      CHECK(std::ranges::equal(part, std::span(whole).subspan(first, part.size())));
    }
  };
  const std::size_t matrix = std::size_t{192} * 64;
  check(data / "gptq_int4_ordered", "model.layers.0.mlp.up_proj.weight", {}, matrix);
  check(data / "gptq_int4_ordered", "model.layers.0.mlp.down_proj.weight", {}, matrix);
  check(data / "gptq_int4_ordered", "lm_head.weight", {}, std::size_t{80} * 64);
  const std::size_t expert = std::size_t{64} * 64;
  check(data / "mxfp4", "model.layers.0.mlp.experts.down_proj", 1, expert);
  check(data / "mxfp4", "model.layers.1.mlp.experts.gate_up_proj", 3, 2 * expert);
}
