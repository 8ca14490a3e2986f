// Packed weights that no kernel runs, or whose tensors do not fit together: each is refused at its
// file with the reason.
#include <doctest/doctest.h>

#include <array>
#include <limits>

#include "checkpoint/packed_files.h"

using namespace headroom;
using namespace headroom::test;
using headroom::checkpoint::GroupedWeights;
using headroom::checkpoint::int64_tensor;
using headroom::checkpoint::StoredType;
using headroom::checkpoint::TensorToWrite;

namespace {

constexpr auto kInt32 = StoredType::int32;
constexpr auto kFloat16 = StoredType::float16;
constexpr auto kFloat32 = StoredType::float32;
constexpr auto kUint8 = StoredType::uint8;
constexpr int kFinite = 0x3c;  // bytes of a small number in every float type

TensorToWrite part_of_x(const std::string& label, StoredType type,
                        std::vector<std::int64_t> shape) {
  return filled_with(kFinite, "x." + label, type, std::move(shape));
}

bool says(const std::string& text, std::string_view part) {
  CAPTURE(text);
  return text.find(part) != std::string::npos;
}

/// FP8, [4, 8], with scales of this type and shape.
Tensors float8_with(StoredType type, std::vector<std::int64_t> scales) {
  return {part_of_x("weight", StoredType::float8_e4m3, {4, 8}),
          part_of_x("weight_scale", type, std::move(scales))};
}

/// NF4 of this type and these sizes, with this state.
Tensors nf4(const std::string& state, StoredType type, std::vector<std::int64_t> sizes) {
  return {part_of_x("weight", type, std::move(sizes)), part_of_x("weight.absmax", kFloat32, {4}),
          part_of_x("weight.quant_map", kFloat32, {16}),
          text_tensor("x.weight.quant_state.bitsandbytes__nf4", state)};
}

/// Nested NF4, [2, 16] in blocks of 8, whose state ends so.
Tensors nested_nf4(const std::string& rest) {
  Tensors tensors = nf4(R"({"shape": [2, 16], "blocksize": 8)" + rest + "}", kUint8, {16, 1});
  tensors[1] = part_of_x("weight.absmax", kUint8, {4});
  tensors.push_back(part_of_x("weight.nested_absmax", kFloat32, {1}));
  tensors.push_back(part_of_x("weight.nested_quant_map", kFloat32, {256}));
  return tensors;
}

/// GPTQ, [`out`, 8] of 4 bits in `groups` groups.
Tensors gptq_in_groups(std::int64_t out, std::int64_t groups) {
  return {part_of_x("qweight", kInt32, {1, out}), part_of_x("qzeros", kInt32, {groups, out / 8}),
          part_of_x("scales", kFloat16, {groups, out})};
}

Tensors awq_of(std::int64_t in, std::int64_t words) {
  return {part_of_x("qweight", kInt32, {in, words}), part_of_x("qzeros", kInt32, {1, words}),
          part_of_x("scales", kFloat16, {1, 8})};
}

/// The experts `x`, in groups of twice `bytes`.
std::unique_ptr<ScratchFolder> experts_with(std::int64_t bytes) {
  return packed_folder({filled_with(0, "x_blocks", kUint8, {4, 2, 2, bytes}),
                        filled_with(0, "x_scales", kUint8, {4, 2, 2})});
}

}  // namespace

TEST_CASE("scales are floats or exponents") {
  CHECK(reason_against(float8_with(kFloat32, {})) == "");
  CHECK(reason_against(float8_with(kFloat16, {})) == "");
  CHECK(reason_against(float8_with(StoredType::float8_e8m0, {1})) == "");
  for (const StoredType type :
       {StoredType::boolean, StoredType::float4, StoredType::float6_e2m3, StoredType::float6_e3m2,
        StoredType::int8, StoredType::float8_e5m2, StoredType::float8_e4m3_fnuz,
        StoredType::float8_e5m2_fnuz, StoredType::int16, StoredType::uint16, StoredType::int32,
        StoredType::uint32, StoredType::complex64, StoredType::float64, StoredType::int64,
        StoredType::uint64}) {
    const auto name = std::string(checkpoint::stored_name(type));
    CHECK(reason_against(float8_with(type, {4, 4})) == "scales of type " + name + " are unknown");
  }
}

TEST_CASE("a scale per tensor, row or group has their number; other shapes are refused") {
  for (const std::vector<std::int64_t>& fits :
       {std::vector<std::int64_t>{}, {1}, {1, 1}, {4}, {4, 1}, {4, 2}, {4, 8}, {4, 2, 1}}) {
    CHECK(reason_against(float8_with(kFloat32, fits)) == "");
  }
  for (const std::vector<std::int64_t>& other :
       {std::vector<std::int64_t>{4, 0}, {4, 3}, {2, 8}, {8}, {4, 1, 2}, {2, 2, 2}}) {
    CHECK(says(reason_against(float8_with(kFloat32, other)),
               "is no scale per tensor, row, group or block of 128 × 128 of a weight [4, 8]"));
  }
}

TEST_CASE("bitsandbytes' state in JSON states blocks that divide rows") {
  const auto with = [](const std::string& blocksize) {
    return reason_against(nf4(R"({"shape": [2, 16])" + blocksize + "}", kUint8, {16, 1}));
  };
  CHECK(with(R"(, "blocksize": 8)") == "");
  CHECK(says(with(""), "no kernel runs blocks of 0 values"));
  CHECK(says(with(R"(, "blocksize": "8")"), "no kernel runs blocks of 0 values"));
  CHECK(says(with(R"(, "blocksize": -8)"), "no kernel runs blocks of 0 values"));
  CHECK(says(with(R"(, "blocksize": 16777217)"), "no kernel runs blocks of 0 values"));
  CHECK(with(R"(, "blocksize": 3)") == "no kernel runs blocks of 3 values that cross rows of 16");
}

TEST_CASE("bitsandbytes' four bits are matrices of two values per byte") {
  CHECK(says(reason_against(nf4(R"({"shape": [2, 2, 8], "blocksize": 8})", kUint8, {16, 1})),
             "only matrices run in 4 bits"));
  CHECK(reason_against(nf4(R"({"shape": [3, 3], "blocksize": 3})", kUint8, {5, 1})) ==
        "does not have two values per byte");
  CHECK(reason_against(nf4(R"({"shape": [2, 16], "blocksize": 8})", kFloat16, {16, 1})) ==
        "does not have two values per byte");
}

TEST_CASE("sizes whose product is beyond all figures are refused at the file and the tensor") {
  const std::string huge = std::to_string(std::int64_t{1} << 40U);
  const std::string shape = huge + ", " + huge + ", " + huge + ", " + huge;
  const auto folder = packed_folder(nf4(R"({"shape": [)" + shape + "]}", kUint8, {16, 1}));
  try {
    (void)detail::read_packed(folder->path());
    FAIL("reads a damaged shape");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::overflow);
    CHECK(says(error.where(), "model.safetensors"));
    CHECK(says(error.where(), "x.weight"));
    CHECK(says(error.hint(), "download or convert"));
  }
  CHECK(detail::has_packed_weights(folder->path()));
}

TEST_CASE("bitsandbytes' FP4 is read as its NF4, by the state that names it") {
  Tensors tensors = nf4(R"({"shape": [2, 16], "blocksize": 8})", kUint8, {16, 1});
  tensors.back().name = "x.weight.quant_state.bitsandbytes__fp4";
  CHECK(reason_against(tensors) == "");
  tensors.push_back(text_tensor("x.weight.quant_state.bitsandbytes__nf4", "[]"));
  CHECK(reason_against(tensors) == "is not a JSON object");
}

TEST_CASE("bitsandbytes' nested scales have blocks of 256 and an offset") {
  CHECK(reason_against(nested_nf4(R"(, "nested_blocksize": 256, "nested_offset": 0.5)")) == "");
  for (const char* const rest :
       {"", R"(, "nested_blocksize": 128, "nested_offset": 0.5)", R"(, "nested_blocksize": 256)",
        R"(, "nested_blocksize": 256, "nested_offset": "0.5")"}) {
    CAPTURE(rest);
    CHECK(reason_against(nested_nf4(rest)) ==
          "its nested scales are not in blocks of 256 with an offset");
  }
}

TEST_CASE("bitsandbytes' eight bits are matrices, row after row") {
  const auto with = [](std::vector<std::int64_t> shape, std::vector<std::int64_t> layout,
                       int value) {
    return reason_against({part_of_x("weight", StoredType::int8, std::move(shape)),
                           part_of_x("SCB", kFloat32, {4}),
                           filled_with(value, "x.weight_format", kUint8, std::move(layout))});
  };
  CHECK(with({4, 8}, {}, 0) == "");
  CHECK(says(with({4, 8}, {}, 1), "tiled layouts (weight_format)"));
  CHECK(says(with({4, 8}, {2}, 0), "tiled layouts (weight_format)"));
  CHECK(says(with({4, 2, 4}, {}, 0), "only matrices run in 8 bits"));
}

TEST_CASE("a scale of NVFP4 and MXFP4 covers whole groups") {
  const auto reason = [](std::int64_t bytes, StoredType type, bool is_nvfp4) {
    Tensors tensors = {part_of_x("weight_packed", kUint8, {2, bytes}),
                       part_of_x("weight_scale", type, {2, 1})};
    if (is_nvfp4) tensors.push_back(part_of_x("weight_global_scale", kFloat32, {1}));
    return reason_against(tensors);
  };
  CHECK(reason(16, kUint8, false) == "");
  CHECK(reason(8, StoredType::float8_e4m3, true) == "");
  CHECK(says(reason(20, kUint8, false), "F8_E8M0 or U8 [2, 40 / 32], the scales of MXFP4"));
  CHECK(
      says(reason(12, StoredType::float8_e4m3, true), "F8_E4M3 [2, 24 / 16], the scales of NVFP4"));
}

TEST_CASE("MXFP4 runs as stacked experts in groups of 32") {
  CHECK(reason_against(*experts_with(16), "x", 3) == "");
  CHECK(reason_against(*experts_with(16), "x") == "MXFP4 runs as stacked experts");
  CHECK(reason_against(*experts_with(15), "x", 3) == "MXFP4 runs as stacked experts");
  CHECK(reason_against(*experts_with(16), "x", 4) == "has 4 experts, not an expert 4");
  CHECK(reason_against(*experts_with(16), "x", -1) == "has 4 experts, not an expert -1");
  const auto matrix = packed_folder(
      {filled_with(0, "x_blocks", kUint8, {2, 2, 16}), filled_with(0, "x_scales", kUint8, {2, 2})});
  CHECK(reason_against(*matrix, "x", 0) == "MXFP4 runs as stacked experts");
}

TEST_CASE("GPTQ runs in groups that divide its inputs, of whole words of outputs") {
  CHECK(reason_against(gptq_in_groups(8, 1)) == "");
  CHECK(says(reason_against(gptq_in_groups(8, 3)),
             "has scales of 3 groups, which do not divide 8 inputs"));
  CHECK(reason_against(gptq_in_groups(8, 2)) == "no kernel runs groups of 4 of 8 inputs in 4 bits");
  Tensors odd = gptq_in_groups(12, 1);
  odd.push_back(integers("x.g_idx", std::vector<std::int32_t>(8, 0)));
  CHECK(reason_against(odd) == "GPTQ's outputs do not fill words");
}

TEST_CASE("AWQ runs in 4 bits with an even number of inputs, in its GEMM version") {
  CHECK(reason_against(awq_of(8, 1)) == "");
  CHECK(reason_against(awq_of(8, 2)) == "AWQ runs in 4 bits");
  CHECK(reason_against(awq_of(7, 1)) == "AWQ has 7 inputs, an odd number");
  const auto version = [](const std::string& name) {
    return reason_against(
        *packed_folder(awq_of(8, 1), R"({"quantization_config": {"version": )" + name + "}}"));
  };
  CHECK(version("\"GEMM\"") == "");
  CHECK(version("2") == "");  // no text: not stated
  CHECK(version("\"gemv\"") == "the version \"gemv\" of AWQ is not supported");
}

TEST_CASE("weights of MLX, torchao and HQQ are counted and not run") {
  const char* const group = R"({"quantization": {"group_size": 8}})";
  const auto refused = [&](const Tensors& tensors) {
    return reason_against(*packed_folder(tensors, group));
  };
  Tensors mlx = {part_of_x("weight", StoredType::uint32, {2, 1}),
                 part_of_x("scales", kFloat16, {2, 1})};
  CHECK(refused(mlx) == "no kernel runs MLX 4-bit, groups of 8 weights");
  mlx.push_back(part_of_x("biases", kFloat16, {2, 1}));
  CHECK(refused(mlx) == "no kernel runs MLX 4-bit, groups of 8 weights");
  CHECK(refused({part_of_x("_weight_qdata", StoredType::int8, {4, 8}),
                 part_of_x("_weight_scale", kFloat16, {4, 1})}) ==
        "no kernel runs I8, torchao weights");
  const std::array<std::int64_t, 2> shape{4, 4};
  CHECK(refused({part_of_x("W_q", kUint8, {8, 1}), int64_tensor("x.shape", {2}, shape)}) ==
        "no kernel runs HQQ 4-bit weights");
  const auto latent = packed_folder({part_of_x("attn_k_b.weight", kFloat16, {4, 2, 3}),
                                     part_of_x("attn_v_b.weight", kFloat16, {4, 5, 2})});
  CHECK(reason_against(*latent, "x.attn_kv_b.weight") == "no kernel runs F16 weights");
}
