// Which tensors together are a packed weight, and of which shape: forms of each library, and
// tensors that fit no form, which stay plain.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "checkpoint/packed_files.h"
#include "model_files.h"
#include "packed_weights.h"
#include "support/gguf_writer.h"

using namespace headroom;
using namespace headroom::test;
using headroom::checkpoint::int64_tensor;
using headroom::checkpoint::StoredType;
using headroom::checkpoint::TensorToWrite;

namespace {

/// "NAME: TYPE [SHAPE]" of each packed weight.
std::string forms_at(const std::filesystem::path& path) {
  const checkpoint::ModelFiles files(path);
  std::vector<std::string> forms;
  for (const detail::PackedWeight& weight : detail::find_packed_weights(files)) {
    forms.push_back(
        fmt::format("{}: {} [{}]", weight.name, weight.type, fmt::join(weight.shape, ", ")));
  }
  return fmt::format("{}", fmt::join(forms, "; "));
}

std::string forms_of(const Tensors& tensors, std::string_view config = {}) {
  return forms_at(packed_folder(tensors, config)->path());
}

/// Zeros named x.LABEL.
TensorToWrite piece(const std::string& label, StoredType type, std::vector<std::int64_t> shape) {
  return filled_with(0, "x." + label, type, std::move(shape));
}

TensorToWrite sizes(const std::string& label, const std::vector<std::int64_t>& values) {
  return int64_tensor("x." + label, {std::ssize(values)}, values);
}

/// A size that no weight has; a tensor of none of such rows takes no bytes.
constexpr std::int64_t kTooLarge = std::int64_t{1} << 41U;

constexpr auto kWords = StoredType::int32;
constexpr auto kHalf = StoredType::float16;
constexpr auto kByte = StoredType::uint8;

/// bitsandbytes' values of four bits with this state.
Tensors four_bit(const std::string& state, std::int64_t bytes) {
  return {piece("weight", kByte, {bytes, 1}),
          text_tensor("x.weight.quant_state.bitsandbytes__nf4", state)};
}

/// MLX's values of four bits, [2, 8] in groups of 8.
Tensors mlx_values() {
  return {piece("weight", StoredType::uint32, {2, 1}), piece("scales", kHalf, {2, 1}),
          piece("biases", kHalf, {2, 1})};
}

Tensors torchao(StoredType type, std::vector<std::int64_t> shape,
                std::vector<std::int64_t> scales) {
  return {piece("_weight_qdata", type, std::move(shape)),
          piece("_weight_scale", kHalf, std::move(scales))};
}

/// DeepSeek's split up-projection.
Tensors latent(std::vector<std::int64_t> keys, std::vector<std::int64_t> values) {
  return {piece("attn_k_b.weight", kHalf, std::move(keys)),
          piece("attn_v_b.weight", kHalf, std::move(values))};
}

}  // namespace

TEST_CASE("GPTQ's bits follow from the order of inputs or the zero points") {
  const auto gptq = [](std::int64_t words, std::int64_t out, std::vector<std::int64_t> zeros) {
    return Tensors{piece("qweight", kWords, {words, out}), piece("scales", kHalf, {1, out}),
                   piece("qzeros", kWords, std::move(zeros))};
  };
  CHECK(forms_of(gptq(1, 8, {1, 1})) == "x.weight: GPTQ 4-bit [8, 8]");
  CHECK(forms_of(gptq(3, 32, {1, 3})) == "x.weight: GPTQ 3-bit [32, 32]");
  CHECK(forms_of(gptq(1, 32, {1, 3})) == "");  // 3 bits do not fill one word
  CHECK(forms_of(gptq(1, 8, {1})) == "");
  CHECK(forms_of(gptq(1, 8, {1, 9})) == "");  // 36 bits
  CHECK(forms_of({piece("qweight", kWords, {1, 8}), piece("scales", kHalf, {8})}) == "");
}

TEST_CASE("tensors without their values or scales are no packed weight") {
  const std::vector<std::pair<std::string, StoredType>> alone = {
      {"biases", kHalf},
      {"_weight_scale", kHalf},
      {"_weight_qdata", StoredType::int8},
      {"W_q", kByte},
      {"weight_shape", kWords},
      {"weight_zero_point", kWords},
      {"SCB", StoredType::float32},
      {"weight_scale_2", StoredType::float32},
      {"attn_k_b.weight", kHalf},
      {"attn_v_b.weight", kHalf}};
  for (const auto& one : alone) {
    CAPTURE(one.first);
    CHECK(forms_of({piece(one.first, one.second, {2, 2})}) == "");
  }
  CHECK(forms_of({piece("weight", StoredType::uint32, {2, 1}), piece("biases", kHalf, {2, 1})},
                 R"({"quantization": {"group_size": 8}})") == "");
  CHECK(forms_of({filled_with(0, "x_blocks", kByte, {1, 2, 1, 16})}) == "");
  CHECK(forms_of({filled_with(0, "x_scales", kByte, {1, 2, 1})}) == "");
}

TEST_CASE("compressed-tensors states the shape as integers of 32 or 64 bits") {
  const auto with_shape = [](TensorToWrite shape, std::vector<std::int64_t> packed) {
    return Tensors{piece("weight_packed", kWords, std::move(packed)), std::move(shape)};
  };
  const std::string four = "x.weight: packed 4-bit [2, 16]";
  CHECK(forms_of(with_shape(sizes("weight_shape", {2, 16}), {2, 2})) == four);
  CHECK(forms_of(with_shape(integers("x.weight_shape", {2, 16}), {2, 2})) == four);
  CHECK(forms_of(with_shape(sizes("weight_shape", {2, 16}), {2, 0})) == "");
  CHECK(forms_of(with_shape(sizes("weight_shape", {2, 3}), {2, 2})) == "");  // 21.3 bits
  CHECK(forms_of(with_shape(sizes("weight_shape", {3, 16}), {2, 2})) == "");
  CHECK(forms_of(with_shape(sizes("weight_shape", {2, -16}), {2, 2})) == "");
  CHECK(forms_of(with_shape(sizes("weight_shape", {2, kTooLarge}), {2, 2})) == "");
  CHECK(forms_of(with_shape(sizes("weight_shape", {2, 16, 1}), {2, 2})) == "");
  CHECK(forms_of(with_shape(sizes("weight_shape", {2, 1, 1, 1, 1, 1, 1, 1, 16}), {2, 2})) == "");
  CHECK(forms_of(with_shape(piece("weight_shape", kHalf, {2}), {2, 2})) == "");
}

TEST_CASE("bytes of two floats double the last size") {
  const auto packed = [](std::vector<std::int64_t> shape) {
    return forms_of({piece("weight_packed", kByte, std::move(shape))});
  };
  CHECK(packed({2, 16}) == "x.weight: FP4 with scales [2, 32]");
  CHECK(packed({}) == "");
  CHECK(packed({0, kTooLarge}) == "");
  const auto nvfp4 = [](std::vector<std::int64_t> shape) {
    return forms_of({piece("weight", kByte, std::move(shape)),
                     piece("weight_scale_2", StoredType::float32, {}),
                     piece("weight_scale", StoredType::float8_e4m3, {})});
  };
  CHECK(nvfp4({2, 16}) == "x.weight: NVFP4 [2, 32]");
  CHECK(nvfp4({}) == "x.weight: U8, scaled []");
  CHECK(nvfp4({0, kTooLarge}) == fmt::format("x.weight: U8, scaled [0, {}]", kTooLarge));
}

TEST_CASE("bitsandbytes states the shape in JSON") {
  CHECK(forms_of(four_bit(R"({"shape": [2, 8]})", 8)) == "x.weight: bitsandbytes 4-bit [2, 8]");
  CHECK(forms_of(four_bit(R"({"shape": [3, 3]})", 5)) == "x.weight: bitsandbytes 4-bit [3, 3]");
  for (const char* const state :
       {"", "[2, 8]", "{}", R"({"shape": 16})", R"({"shape": [2, -8]})", R"({"shape": [2, 8.0]})",
        R"({"shape": ["2", 8]})", R"({"shape": [2, 9]})", R"({"shape": [2199023255552, 8]})",
        R"({"shape": [1, 1, 1, 2, 8]})", R"({"shape": [18446744073709551616]})"}) {
    CAPTURE(state);
    CHECK(forms_of(four_bit(state, 8)) == "");
  }
}

TEST_CASE("scales of activations alone leave weights of all float types plain") {
  const auto beside = [](StoredType type) {
    return forms_of({piece("weight", type, {2, 8}), piece("input_scale", StoredType::float32, {})});
  };
  CHECK(beside(StoredType::float32) == "");
  CHECK(beside(StoredType::float16) == "");
  CHECK(beside(StoredType::bfloat16) == "");
  CHECK(beside(StoredType::float8_e4m3) == "x.weight: F8_E4M3, scaled [2, 8]");
}

TEST_CASE("MXFP4's blocks and scales agree on experts, rows and groups") {
  const auto mxfp4 = [](std::vector<std::int64_t> blocks, std::vector<std::int64_t> scales) {
    return forms_of({filled_with(0, "x_blocks", kByte, std::move(blocks)),
                     filled_with(0, "x_scales", kByte, std::move(scales))});
  };
  CHECK(mxfp4({4, 2, 3, 16}, {4, 2, 3}) == "x: MXFP4 [4, 96, 2]");
  CHECK(mxfp4({4, 2, 3, 16}, {4, 2}) == "");
  CHECK(mxfp4({4, 2, 3, 16}, {4, 2, 2}) == "");
  CHECK(mxfp4({4, 2, 3, 33}, {4, 2, 3}) == "");
  CHECK(mxfp4({0, 2, kTooLarge, 16}, {0, 2, kTooLarge}) == "");
}

TEST_CASE("MLX's groups are those of the config, or of the module where it states its own") {
  const std::string four = "x.weight: MLX 4-bit, groups of 8 [2, 8]";
  for (const char* const config :
       {R"({"quantization": {"group_size": 8}})", R"({"quantization_config": {"group_size": 8}})",
        R"({"quantization": {"group_size": 64, "x": {"group_size": 8}}})",
        R"({"quantization": {"group_size": 8, "y": {"group_size": 64}, "x": {"bits": 4}}})"}) {
    CAPTURE(config);
    CHECK(forms_of(mlx_values(), config) == four);
  }
  for (const char* const config :
       {"", "[]", "{", "{}", R"({"quantization": 7})", R"({"quantization": {}})",
        R"({"quantization": {"group_size": "8"}})", R"({"quantization": {"group_size": 0}})",
        R"({"quantization": {"group_size": -8}})", R"({"quantization": {"group_size": 65537}})",
        R"({"quantization": {"group_size": 3}})"}) {
    CAPTURE(config);
    CHECK(forms_of(mlx_values(), config) == "");
  }
}

TEST_CASE("MLX's values are words with scales of the same rows") {
  const auto mlx = [](StoredType type, std::vector<std::int64_t> values,
                      std::vector<std::int64_t> scales) {
    return forms_of(
        {piece("weight", type, std::move(values)), piece("scales", kHalf, std::move(scales))},
        R"({"quantization": {"group_size": 8}})");
  };
  CHECK(mlx(StoredType::uint32, {3, 2, 1}, {3, 2, 1}) ==
        "x.weight: MLX 4-bit, groups of 8 [3, 2, 8]");
  CHECK(mlx(kWords, {2, 1}, {2, 1}) == "");
  CHECK(mlx(StoredType::uint32, {2}, {2}) == "");
  CHECK(mlx(StoredType::uint32, {2, 1}, {2, 1, 1}) == "");
  CHECK(mlx(StoredType::uint32, {2, 1}, {4, 1}) == "");
  CHECK(mlx(StoredType::uint32, {0, 1}, {0, kTooLarge}) == "");
}

TEST_CASE("torchao's bytes are one value, or two where their scales say so") {
  const auto form = [](StoredType type, std::vector<std::int64_t> values,
                       std::vector<std::int64_t> scales) {
    return forms_of(torchao(type, std::move(values), std::move(scales)));
  };
  CHECK(form(StoredType::int8, {4, 8}, {4, 1}) == "x.weight: I8, torchao [4, 8]");
  CHECK(form(StoredType::int8, {4, 8}, {4}) == "x.weight: I8, torchao [4, 8]");
  CHECK(form(StoredType::int8, {4, 8}, {2, 3}) == "x.weight: I8, torchao [4, 8]");
  CHECK(form(StoredType::int8, {4, 8}, {2, 4}) == "x.weight: torchao 4-bit [4, 16]");
  CHECK(form(kByte, {4, 8}, {4, 1}) == "x.weight: torchao 4-bit [4, 16]");
  CHECK(form(StoredType::int16, {4, 8}, {4, 1}) == "");
  CHECK(form(kWords, {4, 8}, {4, 1}) == "");
  CHECK(form(StoredType::int8, {8}, {1}) == "");
  CHECK(form(kByte, {0, kTooLarge}, {0, 1}) == "");
}

TEST_CASE("torchao's tiles of words have the rows of their scales") {
  const auto tiles = [](std::vector<std::int64_t> values, std::vector<std::int64_t> scales) {
    return forms_of({piece("_weight_qdata", kWords, std::move(values)),
                     piece("_weight_scale_and_zero", kHalf, std::move(scales))});
  };
  CHECK(tiles({1, 2, 32, 1}, {1, 8, 2}) == "x.weight: torchao 4-bit [8, 64]");
  CHECK(tiles({1, 2, 32, 1}, {1, 8}) == "");
  CHECK(tiles({1, 2, 32, 1}, {1, 0, 2}) == "");
  CHECK(tiles({1, 2, 32, 1}, {1, 7, 2}) == "");
}

TEST_CASE("HQQ's bits are those of its bytes over the values of its shape") {
  const auto hqq = [](std::int64_t bytes, const std::vector<std::int64_t>& shape) {
    return forms_of({piece("W_q", kByte, {bytes, 1}), sizes("shape", shape)});
  };
  CHECK(hqq(8, {4, 4}) == "x.weight: HQQ 4-bit [4, 4]");
  CHECK(hqq(16, {4, 4}) == "x.weight: HQQ 8-bit [4, 4]");
  CHECK(hqq(8, {0, 4}) == "");
  CHECK(hqq(8, {2, 2, 4}) == "");
  CHECK(hqq(1, {4, 4}) == "");
  CHECK(hqq(32, {4, 4}) == "");
}

TEST_CASE("the halves of a latent projection share heads and rank") {
  CHECK(forms_of(latent({4, 2, 3}, {4, 5, 2})) == "x.attn_kv_b.weight: F16 [32, 2]");
  CHECK(forms_of(latent({4, 6}, {4, 5, 2})) == "");
  CHECK(forms_of(latent({4, 2, 3}, {20, 2})) == "");
  CHECK(forms_of(latent({4, 2, 3}, {2, 5, 2})) == "");
  CHECK(forms_of(latent({4, 2, 3}, {4, 5, 3})) == "");
  CHECK(forms_of(latent({1, 0, kTooLarge}, {1, 5, 0})) == "");
}

TEST_CASE("tensors of a GGUF file with a library's names are no values of that library") {
  const ScratchFolder folder;
  const auto path = folder.write("model.gguf", GgufWriter()
                                                   .tensor("a._weight_qdata", {4, 8})
                                                   .tensor("a._weight_scale", {4, 1})
                                                   .tensor("b.weight", {2, 1})
                                                   .tensor("b.scales", {2, 1})
                                                   .tensor("c.weight_packed", {2, 2})
                                                   .tensor("c.weight_shape", {2})
                                                   .str());
  CHECK(forms_at(path) == "");
}
