// Packed weights count as their unpacked values. Shapes are those that each library writes for a
// linear layer [out, in]; see src/weights/packing.h for the sources.
#include <doctest/doctest.h>

#include "inspect/packed_linear.h"
#include "support/data.h"

using namespace headroom;
using namespace headroom::test;

namespace {

Inspection inspect_packed(Packer pack) {
  const nlohmann::json config = small_llama();
  return inspect_folder(config, packed_tensors(config, pack, StoredType::float32));
}

/// The row with all packed weights.
TypeRow row_of(const Inspection& inspection, const std::string& type) {
  const auto found = std::ranges::find(inspection.types, type, &TypeRow::type);
  REQUIRE(found != inspection.types.end());
  return *found;
}

/// Values in all projections of the small Llama: query and output 64 x 64, key and value 32 x 64,
/// three of 96 x 64, in two layers.
constexpr std::int64_t kProjected = 2 * (2 * 64 * 64 + 2 * 32 * 64 + 3 * 96 * 64);

void check_packed(const Inspection& inspection, const std::string& type) {
  CAPTURE(type);
  CHECK(problems_of(inspection).empty());
  CHECK(inspection.extras.empty());
  CHECK(inspection.weights.values == inspection.reconciliation->expected_parameters);
  CHECK(inspection.all.values == inspection.weights.values);
  CHECK(inspection.all.bytes == inspection.weights.bytes);
  CHECK(row_of(inspection, type).totals.values == Integer{kProjected});
}

std::vector<TensorToWrite> gptq_8bit(const std::string& base, std::int64_t out, std::int64_t in) {
  return {zeros(base + ".qweight", {in / 4, out}, StoredType::int32),
          zeros(base + ".qzeros", {in / kGroup, out / 4}, StoredType::int32),
          zeros(base + ".scales", {in / kGroup, out}, StoredType::float16)};
}

std::vector<TensorToWrite> fp8(const std::string& base, std::int64_t out, std::int64_t in) {
  return {zeros(base + ".weight", {out, in}, StoredType::float8_e4m3),
          zeros(base + ".weight_scale_inv", {(out + 127) / 128, (in + 127) / 128})};
}

std::vector<TensorToWrite> bitsandbytes(const std::string& base, std::int64_t out,
                                        std::int64_t in) {
  const std::string state =
      nlohmann::json{{"quant_type", "nf4"}, {"blocksize", 64}, {"shape", {out, in}}}.dump();
  const auto bytes = std::as_bytes(std::span(state));
  const auto size = static_cast<std::int64_t>(bytes.size());
  return {zeros(base + ".weight", {out * in / 2, 1}, StoredType::uint8),
          zeros(base + ".weight.absmax", {out * in / 64}, StoredType::uint8),
          zeros(base + ".weight.nested_absmax", {1}),
          zeros(base + ".weight.nested_quant_map", {256}),
          zeros(base + ".weight.quant_map", {16}),
          {base + ".weight.quant_state.bitsandbytes__nf4",
           StoredType::uint8,
           {size},
           {bytes.begin(), bytes.end()}}};
}

}  // namespace

TEST_CASE("GPTQ, AWQ, bitsandbytes, compressed-tensors and FP8 count as their unpacked values") {
  check_packed(inspect_packed(gptq), "GPTQ 4-bit");
  check_packed(inspect_packed(gptq_8bit), "GPTQ 8-bit");
  check_packed(inspect_packed(awq), "AWQ 4-bit");
  check_packed(inspect_packed(fp8), "F8_E4M3, scaled");
  check_packed(inspect_packed(bitsandbytes), "bitsandbytes 4-bit");
  check_packed(inspect_packed(bitsandbytes_8bit), "I8, bitsandbytes");
  check_packed(inspect_packed(compressed), "packed 4-bit");
}

TEST_CASE("HQQ and torchao count as their unpacked values") {
  check_packed(inspect_packed(hqq), "HQQ 4-bit");
  check_packed(inspect_packed(torchao_int4), "torchao 4-bit");
  check_packed(inspect_packed(torchao_tiles), "torchao 4-bit");
  check_packed(inspect_packed(torchao_float8), "F8_E4M3, torchao");
}

TEST_CASE("MLX counts as its unpacked values by the group of the config") {
  nlohmann::json config = small_llama();
  config["quantization"] = {{"group_size", kGroup}, {"bits", 4}};
  const auto tensors = packed_tensors(config, mlx, StoredType::bfloat16);
  check_packed(inspect_folder(config, tensors), "MLX 4-bit, groups of 32");
  // Without the group, 4 bits in groups of 32 could be 2 bits in groups of 64.
  const Inspection unknown = inspect_folder(small_llama(), tensors);
  CHECK_FALSE(problems_of(unknown).empty());
}

TEST_CASE("the bits of a packed weight include all its pieces") {
  // 4 bits per value, 16 + 4 per group of 32 and output, 32 per input: for query and output this is
  // 4 + 20/32 + 32/64.
  const Inspection inspection = inspect_packed(gptq);
  const TypeRow row = row_of(inspection, "GPTQ 4-bit");
  const Integer bytes = row.totals.bytes;
  std::int64_t expected = 0;
  for (const auto& [out, in] :
       {std::pair{64, 64}, {64, 64}, {32, 64}, {32, 64}, {96, 64}, {96, 64}, {64, 96}}) {
    expected += 2 * (out * in / 2 + (in / kGroup) * (out / 2 + 2 * out) + 4 * in);
  }
  CHECK(bytes == Integer{expected});
}

TEST_CASE("MXFP4 blocks unpack to experts, transposed as in the library") {
  // gpt-oss: blocks [experts, out, in / 32, 16], unpacked [experts, in, out].
  const std::vector<TensorToWrite> tensors = {
      zeros("model.layers.0.mlp.experts.gate_up_proj_blocks", {4, 6, 2, 16}, StoredType::uint8),
      zeros("model.layers.0.mlp.experts.gate_up_proj_scales", {4, 6, 2}, StoredType::uint8),
      zeros("model.layers.0.mlp.experts.gate_up_proj_bias", {4, 6}, StoredType::bfloat16)};
  const Inspection inspection = inspect_folder(tensors);
  const TypeRow row = row_of(inspection, "MXFP4");
  CHECK(row.totals.values == Integer{4 * 6 * 64});
  CHECK(row.totals.bytes == Integer{4 * 6 * 2 * 17});
  CHECK(row.totals.bits_per_value() == 4.25);
  CHECK(inspection.components[0].component == "model.layers.{}.mlp.experts.gate_up_proj_bias");
}

TEST_CASE("pieces that fit no weight are separate tensors") {
  const std::vector<TensorToWrite> tensors = {zeros("a.scales", {2, 2}),
                                              zeros("b.qweight", {2, 2}, StoredType::int32),
                                              zeros("c.qweight", {3, 8}, StoredType::int32),
                                              zeros("c.scales", {1, 8}),
                                              zeros("d.weight_scale", {1}),
                                              zeros("e_blocks", {2, 2}, StoredType::uint8),
                                              zeros("e_scales", {2, 2}, StoredType::uint8),
                                              zeros("f.weight_packed", {4, 1}, StoredType::int32)};
  const Inspection inspection = inspect_folder(tensors);
  CHECK(inspection.all.tensors == 8);
  CHECK(inspection.components.size() == 8);
  CHECK(inspection.all.values == Integer{4 + 4 + 24 + 8 + 1 + 4 + 4 + 4});
}
