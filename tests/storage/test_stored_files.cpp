// Stored bytes as the files hold them: weights and extras sum to the header's tensors, to the unit,
// and the rules of a config give the same. Shapes are those that each library writes for a linear
// layer [out, in]; see src/weights/packing.h for the sources.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "headroom/storage.h"
#include "inspect/packed_linear.h"
#include "support/data.h"
#include "support/gguf_writer.h"

using namespace headroom;
using namespace headroom::test;

namespace {

using checkpoint::GgmlType;

/// A folder with these files, deleted with this object.
class ModelFolder {
 public:
  ModelFolder(const nlohmann::json& config, const std::vector<TensorToWrite>& tensors) {
    write_file(folder_ / "config.json", config.dump());
    checkpoint::write_safetensors(folder_ / "model.safetensors", tensors);
    for (const TensorToWrite& tensor : tensors)
      bytes_ += static_cast<std::int64_t>(tensor.data.size());
  }
  [[nodiscard]] Model model() const { return load_model(folder_.path().string()); }
  /// Bytes of all tensors.
  [[nodiscard]] Integer bytes() const { return bytes_; }

 private:
  TempFolder folder_;
  std::int64_t bytes_ = 0;
};

Integer sum_of(const StoredWeights& stored) {
  Integer sum = stored.bytes;
  for (const StorageGroup& extra : stored.extras) sum += extra.bytes;
  return sum;
}

/// The files' facts and the config's rules must both give the bytes of the header.
void check_method(const nlohmann::json& quantization, Packer pack) {
  CAPTURE(quantization.dump());
  nlohmann::json config = small_llama();
  config["torch_dtype"] = "bfloat16";
  config["quantization_config"] = quantization;
  const ModelFolder folder(config, packed_tensors(config, pack, StoredType::bfloat16));
  const Model model = folder.model();
  const Graph graph = build_graph(model.spec, {});
  const StoredWeights files = stored_weights(model, graph);
  CHECK(files.extras.empty());
  CHECK(files.notes.empty());
  CHECK(files.bytes == folder.bytes());
  const StoredWeights rules = stored_weights(model.spec, graph);
  CHECK(rules.bytes == folder.bytes());
  for (WeightId id = 0; id < graph.weights.size(); ++id) {
    CAPTURE(graph.weights[id].path);
    CHECK(rules.weights[id].bytes == files.weights[id].bytes);
  }
}

std::vector<TensorToWrite> fp8(const std::string& base, std::int64_t out, std::int64_t in) {
  return {zeros(base + ".weight", {out, in}, StoredType::float8_e4m3),
          zeros(base + ".weight_scale_inv", {(out + 31) / 32, (in + 31) / 32})};
}

std::vector<TensorToWrite> modelopt_fp8(const std::string& base, std::int64_t out,
                                        std::int64_t in) {
  return {zeros(base + ".weight", {out, in}, StoredType::float8_e4m3),
          zeros(base + ".weight_scale", {}), zeros(base + ".input_scale", {})};
}

std::vector<TensorToWrite> nvfp4(const std::string& base, std::int64_t out, std::int64_t in) {
  return {zeros(base + ".weight", {out, in / 2}, StoredType::uint8),
          zeros(base + ".weight_scale", {out, in / 16}, StoredType::float8_e4m3),
          zeros(base + ".weight_scale_2", {}), zeros(base + ".input_scale", {})};
}

std::vector<TensorToWrite> compressed_fp8(const std::string& base, std::int64_t out,
                                          std::int64_t in) {
  return {zeros(base + ".weight", {out, in}, StoredType::float8_e4m3),
          zeros(base + ".weight_scale", {out, 1}, StoredType::bfloat16)};
}

std::vector<TensorToWrite> compressed_mxfp8(const std::string& base, std::int64_t out,
                                            std::int64_t in) {
  return {zeros(base + ".weight", {out, in}, StoredType::float8_e4m3),
          zeros(base + ".weight_scale", {out, in / kGroup}, StoredType::uint8)};
}

nlohmann::json one_group(const nlohmann::json& weights, const std::string& format) {
  return {{"quant_method", "compressed-tensors"},
          {"format", format},
          {"ignore", {"lm_head"}},
          {"config_groups", {{"group_0", {{"targets", {"Linear"}}, {"weights", weights}}}}}};
}

}  // namespace

TEST_CASE("files of each method and the rules of its config take the bytes of the header") {
  check_method({{"quant_method", "gptq"}, {"bits", 4}, {"group_size", kGroup}}, gptq);
  check_method({{"quant_method", "awq"}, {"bits", 4}, {"group_size", kGroup}}, awq);
  check_method({{"quant_method", "fp8"}, {"weight_block_size", {32, 32}}}, fp8);
  check_method({{"quant_method", "modelopt"}, {"quant_algo", "FP8"}}, modelopt_fp8);
  check_method({{"quant_method", "bitsandbytes"}, {"load_in_8bit", true}}, bitsandbytes_8bit);
  check_method(one_group({{"num_bits", 4},
                          {"type", "int"},
                          {"strategy", "group"},
                          {"group_size", kGroup},
                          {"symmetric", true}},
                         "pack-quantized"),
               compressed);
  check_method(
      one_group({{"num_bits", 8}, {"type", "float"}, {"strategy", "channel"}}, "float-quantized"),
      compressed_fp8);
  check_method(one_group({{"num_bits", 8},
                          {"type", "float"},
                          {"strategy", "group"},
                          {"group_size", kGroup},
                          {"scale_dtype", "torch.uint8"}},
                         "mxfp8-quantized"),
               compressed_mxfp8);
}

TEST_CASE("NVFP4 files and the rules of their config take the bytes of the header") {
  check_method({{"quant_method", "modelopt"}, {"quant_algo", "NVFP4"}, {"group_size", 16}}, nvfp4);
}

// 4 bits per value, and per group of 32: HQQ a scale and a zero of 16 bits, beside each matrix its
// shape (16 B), two integers (8 B) and the name of its packing (7 B); torchao likewise without
// those.
TEST_CASE("HQQ and torchao files take the bytes of their header") {
  nlohmann::json config = small_llama();
  config["torch_dtype"] = "bfloat16";
  constexpr std::int64_t kMatrices = 2 * 7;
  constexpr std::int64_t kValues = 2 * (2 * 64 * 64 + 2 * 32 * 64 + 3 * 96 * 64);
  const auto stored = [&](Packer pack) {
    const ModelFolder folder(config, packed_tensors(config, pack, StoredType::bfloat16));
    const Model model = folder.model();
    StoredWeights weights = stored_weights(model, build_graph(model.spec, {}));
    CHECK(weights.notes.empty());
    CHECK(weights.extras.empty());
    CHECK(weights.bytes == folder.bytes());
    return weights;
  };
  const Integer packed = kValues / 2 + kValues / kGroup * 4;
  const StoredWeights by_hqq = stored(hqq);
  CHECK(by_hqq.groups.size() == 2);
  const auto in_format = [](const StoredWeights& weights, std::string_view format) {
    const auto found = std::ranges::find(weights.groups, format, &StorageGroup::format);
    REQUIRE(found != weights.groups.end());
    return found->bytes;
  };
  CHECK(in_format(by_hqq, "HQQ 4-bit") == packed + kMatrices * (16 + 8 + 7));
  CHECK(in_format(stored(torchao_int4), "torchao 4-bit") == packed);
  CHECK(in_format(stored(torchao_tiles), "torchao 4-bit") == packed);
}

// mlx_lm quantises embedding and head, too.
TEST_CASE("MLX files and the rules of their config take the bytes of the header") {
  nlohmann::json config = small_llama();
  config["torch_dtype"] = "bfloat16";
  config["quantization"] = {{"group_size", kGroup}, {"bits", 4}};
  std::vector<TensorToWrite> tensors;
  for (const TensorToWrite& tensor : tensors_of(config)) {
    if (tensor.shape.size() != 2) {
      tensors.push_back(zeros(tensor.name, tensor.shape, StoredType::bfloat16));
      continue;
    }
    const std::string base = tensor.name.substr(0, tensor.name.rfind(".weight"));
    for (TensorToWrite& piece : mlx(base, tensor.shape[0], tensor.shape[1])) {
      tensors.push_back(std::move(piece));
    }
  }
  const ModelFolder folder(config, tensors);
  const Model model = folder.model();
  const Graph graph = build_graph(model.spec, {});
  const StoredWeights files = stored_weights(model, graph);
  CHECK(files.origin == "safetensors headers");
  CHECK(files.notes.empty());
  CHECK(files.extras.empty());
  CHECK(files.bytes == folder.bytes());
  CHECK(stored_weights(model.spec, graph).bytes == folder.bytes());
}

TEST_CASE("weights and extras of every model at hand sum to the tensors of its file") {
  for (const std::filesystem::path& folder : golden_models()) {
    const std::filesystem::path file = folder / "model.safetensors";
    if (!std::filesystem::exists(file)) continue;
    CAPTURE(folder.filename().string());
    Model model;
    try {
      model = load_model(folder.string());
    } catch (const Error&) {
      continue;  // a layer without stored names, or a family of another release
    }
    const Graph graph = build_graph(model.spec, {});
    const StoredWeights stored = stored_weights(model, graph);
    if (!stored.notes.empty()) continue;
    CHECK(sum_of(stored) == inspect(folder.string()).all.bytes);
    const Model typed = with_file_types(model);
    CHECK(typed.spec.storage.notes.empty());
    CHECK(stored_weights(typed.spec, graph).bytes == stored.bytes);
  }
}

// Blocks as in ggml-common.h: Q4_0 18 B per 32, Q6_K 210 B per 256; norms in float32.
TEST_CASE("GGUF tensors give the bytes of every weight and layer") {
  GgufWriter writer = small_llama_metadata();
  writer.tensor("token_embd.weight", {96, 256}, GgmlType::q6_k);
  for (const GgmlType type : {GgmlType::q4_0, GgmlType::q6_k}) {
    const std::string layer = type == GgmlType::q4_0 ? "blk.0." : "blk.1.";
    writer.tensor(layer + "attn_norm.weight", {256}).tensor(layer + "ffn_norm.weight", {256});
    writer.tensor(layer + "attn_q.weight", {256, 256}, GgmlType::q4_0);
    writer.tensor(layer + "attn_k.weight", {128, 256}, GgmlType::q4_0);
    writer.tensor(layer + "attn_v.weight", {128, 256}, GgmlType::q4_0);
    writer.tensor(layer + "attn_output.weight", {256, 256}, GgmlType::q4_0);
    writer.tensor(layer + "ffn_gate.weight", {512, 256}, GgmlType::q4_0);
    writer.tensor(layer + "ffn_up.weight", {512, 256}, GgmlType::q4_0);
    writer.tensor(layer + "ffn_down.weight", {256, 512}, type);
  }
  writer.tensor("output_norm.weight", {256}).tensor("rope_freqs.weight", {32});
  const TempFolder folder;
  write_file(folder / "model.gguf", writer.str());
  const Model model = load_model((folder / "model.gguf").string());
  const Graph graph = build_graph(model.spec, {});
  const StoredWeights stored = stored_weights(model, graph);
  CHECK(stored.origin == "GGUF tensors");
  REQUIRE(stored.extras.size() == 1);
  CHECK(stored.extras.front().bytes == 32 * 4);
  const Integer q4_0 = Integer{2} * (2 * 256 + 2 * 128 + 2 * 512) * 256 / 32 * 18;
  const Integer down = Integer{256} * 512 / 32 * 18 + Integer{256} * 512 / 256 * 210;
  CHECK(stored.bytes == q4_0 + down + Integer{96} * 256 / 256 * 210 + 5 * 256 * 4);
  for (WeightId id = 0; id < graph.weights.size(); ++id) {
    if (graph.weights[id].path != "decoder.layers.mlp.down.weight") continue;
    REQUIRE(stored.weights[id].bytes_of_copy.size() == 2);
    CHECK(stored.weights[id].bytes_of_copy[0] == Integer{256} * 512 / 32 * 18);
    CHECK(stored.weights[id].bytes_of_copy[1] == Integer{256} * 512 / 256 * 210);
  }
  const Model typed = with_file_types(model);
  CHECK(typed.spec.storage.notes.empty());
  const StoredWeights rules = stored_weights(typed.spec, graph);
  CHECK(rules.bytes == stored.bytes);
  for (WeightId id = 0; id < graph.weights.size(); ++id) {
    CAPTURE(graph.weights[id].path);
    CHECK(rules.weights[id].bytes == stored.weights[id].bytes);
    CHECK(rules.weights[id].bytes_of_copy == stored.weights[id].bytes_of_copy);
  }
}

TEST_CASE("files decide over the type that a config without quantisation states") {
  nlohmann::json config = small_llama();
  config["torch_dtype"] = "float32";
  std::vector<TensorToWrite> tensors;
  for (const TensorToWrite& tensor : tensors_of(config)) {
    tensors.push_back(zeros(tensor.name, tensor.shape, StoredType::bfloat16));
  }
  const ModelFolder folder(config, tensors);
  const Model typed = with_file_types(folder.model());
  CHECK(typed.spec.storage.plain_type == "bfloat16");
  CHECK(typed.spec.storage.rules.empty());
  CHECK(stored_weights(typed.spec, build_graph(typed.spec, {})).bytes == folder.bytes());
}

TEST_CASE("files that lack a weight leave the config's rules, with a note") {
  const nlohmann::json config = small_llama();
  std::vector<TensorToWrite> tensors = tensors_of(config);
  static_cast<void>(take(tensors, "norm.weight"));
  const ModelFolder folder(config, tensors);
  const Model model = folder.model();
  const StoredWeights stored = stored_weights(model, build_graph(model.spec, {}));
  REQUIRE(stored.notes.size() == 1);
  CHECK(stored.notes.front().find("lacks tensors") != std::string::npos);
}
