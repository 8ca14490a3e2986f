// Bytes of a matrix by the schemes of compressed-tensors and Quark, from the tensors that the
// libraries write. Sources: compressed_tensors, compressors/quantized_compressors; Quark, its
// exported configs in vLLM's quark.py.
#include <doctest/doctest.h>

#include "stored_query.h"

using namespace headroom;
using namespace headroom::test;

namespace {

using nlohmann::json;

constexpr std::int64_t kRows = kQueryRows;
constexpr std::int64_t kValues = kQueryValues;
constexpr std::int64_t kGroupsOf128 = kValues / 128;

/// Bytes of one query matrix beside those of plain ones.
Integer query_bytes(const json& quantization) {
  static const Integer plain = qwen_bytes(nullptr);
  const Integer all = kQueryLayers * Integer{kPlainQuery} - (plain - qwen_bytes(quantization));
  CHECK(all % kQueryLayers == 0);
  return all / kQueryLayers;
}

json compressed(const char* format, const json& group) {
  json own = group;
  own["targets"] = {"re:.*q_proj"};
  return {{"quant_method", "compressed-tensors"},
          {"format", format},
          {"config_groups", {{"group_0", own}, {"group_1", nullptr}}}};
}

Integer compressed_bytes(const char* format, const json& weights, const json& inputs = nullptr) {
  json group{{"weights", weights}};
  if (!inputs.is_null()) group["input_activations"] = inputs;
  return query_bytes(compressed(format, group));
}

json quark(const json& layer) {
  return {{"quant_method", "quark"}, {"layer_quant_config", {{"*q_proj", layer}, {"*", nullptr}}}};
}

}  // namespace

TEST_CASE("compressed-tensors writes values, scales of 16 bits and zero points by its strategy") {
  const json int8{{"num_bits", 8}, {"type", "int"}};
  const auto with = [](json scheme, const json& changes) {
    scheme.update(changes);
    return scheme;
  };
  // A scale per tensor, per row, and per block.
  CHECK(compressed_bytes("int-quantized", with(int8, {{"strategy", "tensor"}})) == kValues + 2);
  CHECK(compressed_bytes("int-quantized", int8) == kValues + 2);
  const json by_row = with(int8, {{"group_size", -1}});
  CHECK(compressed_bytes("int-quantized", by_row) == kValues + 2 * kRows);
  CHECK(compressed_bytes("int-quantized", with(by_row, {{"symmetric", false}})) ==
        kValues + 2 * kRows + kRows);
  const json blocks{
      {"num_bits", 8}, {"type", "float"}, {"strategy", "block"}, {"block_structure", {128, 128}}};
  CHECK(compressed_bytes("float-quantized", blocks) == kValues + 2 * (kGroupsOf128 / 128));
  // Words of eight values, their shape as two int64, and for act-order the group of each input.
  const json int4{{"num_bits", 4}, {"type", "int"}, {"group_size", 128}};
  const Integer packed = kValues / 2 + 2 * kGroupsOf128 + 16;
  CHECK(compressed_bytes("pack-quantized", int4) == packed);
  CHECK(compressed_bytes("pack-quantized", with(int4, {{"strategy", "tensor_group"}})) == packed);
  CHECK(compressed_bytes("pack-quantized", with(int4, {{"actorder", "static"}})) == packed);
  CHECK(compressed_bytes("pack-quantized", with(int4, {{"actorder", "group"}})) ==
        packed + 4 * kQueryColumns);
  CHECK(compressed_bytes("pack-quantized", with(int4, {{"symmetric", false}})) ==
        packed + kGroupsOf128 / 2);
}

TEST_CASE("compressed-tensors stores a scale of inputs that are not quantised as they come") {
  const json fp8{{"num_bits", 8}, {"type", "float"}, {"strategy", "tensor"}};
  const auto with = [&](const json& dynamic) {
    return compressed_bytes("float-quantized", fp8, {{"num_bits", 8}, {"dynamic", dynamic}});
  };
  CHECK(with(true) == kValues + 2);
  CHECK(with(false) == kValues + 2 + 2);
  CHECK(with("local") == kValues + 2 + 2);
  const json fp4{{"num_bits", 4}, {"type", "float"}, {"group_size", 16}};
  const Integer nvfp4 = kValues / 2 + kValues / 16 + 4;  // a float32 scale of the tensor
  CHECK(compressed_bytes("nvfp4-pack-quantized", fp4) == nvfp4);
  CHECK(compressed_bytes("nvfp4-pack-quantized", fp4, {{"dynamic", "local"}}) == nvfp4 + 4);
  CHECK(compressed_bytes("mxfp4-pack-quantized", fp4) == kValues / 2 + kValues / 32);
  CHECK(compressed_bytes("mxfp8-quantized", fp8) == kValues + kValues / 32);
}

TEST_CASE("compressed-tensors leaves plain what no scheme has, and notes classes it cannot tell") {
  CHECK(query_bytes(compressed("int-quantized", {{"input_activations", {{"num_bits", 8}}}})) ==
        kPlainQuery);
  json named = compressed("int-quantized", {{"weights", {{"num_bits", 8}}}});
  named["config_groups"]["group_0"]["targets"] = {"Conv1d"};
  CHECK(query_bytes(named) == kPlainQuery);
  const ModelSpec unknown_class = qwen_with(named);
  REQUIRE(unknown_class.storage.notes.size() == 1);
  CHECK(unknown_class.storage.notes.front().find("the class Conv1d") != std::string::npos);
  named["config_groups"]["group_0"]["targets"] = {"model.layers.0.self_attn.q_proj"};
  named["sparsity_config"] = {{"format", "dense"}};
  CHECK(qwen_bytes(nullptr) - qwen_bytes(named) == kPlainQuery - (kValues + 2));
  CHECK(qwen_with(named).storage.notes.empty());
  named["sparsity_config"]["format"] = "sparse-24-bitmask";
  CHECK(qwen_with(named).storage.notes.size() == 1);
  named["sparsity_config"] = "none";
  CHECK(qwen_with(named).storage.notes.empty());
}

TEST_CASE("Quark writes values, scales of 32 bits or powers of two, and zero points") {
  const auto bytes = [](const json& weight) { return query_bytes(quark({{"weight", weight}})); };
  CHECK(bytes({{"dtype", "fp8_e4m3"}, {"qscheme", "per_tensor"}}) == kValues + 4);
  CHECK(bytes({{"dtype", "int8"}, {"qscheme", "per_channel"}}) == kValues + 4 * kRows);
  const json int4{{"dtype", "uint4"}, {"qscheme", "per_group"}, {"group_size", 128}};
  CHECK(bytes(int4) == kValues / 2 + 4 * kGroupsOf128);
  json zeros = int4;
  zeros["symmetric"] = false;
  CHECK(bytes(zeros) == kValues / 2 + 4 * kGroupsOf128 + kGroupsOf128 / 2);
  const auto with_exponents = [&](const char* type, std::int64_t group) {
    return bytes({{"dtype", type}, {"scale_format", "e8m0"}, {"group_size", group}});
  };
  CHECK(with_exponents("fp4", 32) == kValues / 2 + kValues / 32);
  CHECK(with_exponents("fp4", 0) == kValues / 2 + kValues / 32);
  CHECK(with_exponents("fp4", 64) == kValues / 2 + kValues / 64);
  CHECK(with_exponents("fp8_e4m3", 32) == kValues + kValues / 32);
  CHECK(bytes({{"dtype", "bfloat16"}}) == kPlainQuery);
  CHECK(query_bytes(quark(json::object())) == kPlainQuery);
}

TEST_CASE("Quark states types of inputs and of the KV-cache") {
  const json fp8{{"dtype", "fp8_e4m3"}, {"qscheme", "per_tensor"}};
  json inputs = fp8;
  CHECK(query_bytes(quark({{"weight", fp8}, {"input_tensors", inputs}})) == kValues + 4 + 4);
  inputs["is_dynamic"] = true;
  json config = quark({{"weight", fp8}, {"input_tensors", inputs}});
  CHECK(query_bytes(config) == kValues + 4);
  CHECK(qwen_with(config).storage.activations == StatedType::float8);
  CHECK_FALSE(qwen_with(config).storage.kv_cache);
  config["kv_cache_quant_config"] = {{"*k_proj", {{"output_tensors", fp8}}},
                                     {"*q_proj", {{"weight", fp8}}},
                                     {"*v_proj", {{"output_tensors", fp8}}},
                                     {"other", nullptr}};
  CHECK(qwen_with(config).storage.kv_cache == StatedType::float8);
  CHECK(query_bytes(quark({{"weight", {{"dtype", "bfloat16"}}}, {"input_tensors", fp8}})) ==
        kPlainQuery);
}
