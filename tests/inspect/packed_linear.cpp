#include "inspect/packed_linear.h"

namespace headroom::test {

std::vector<TensorToWrite> packed_tensors(const nlohmann::json& config, Packer pack,
                                          StoredType others) {
  const std::string suffix = ".weight";
  std::vector<TensorToWrite> packed;
  for (const TensorToWrite& tensor : tensors_of(config)) {
    if (!tensor.name.ends_with("_proj" + suffix)) {
      packed.push_back(zeros(tensor.name, tensor.shape, others));
      continue;
    }
    const std::string base = tensor.name.substr(0, tensor.name.size() - suffix.size());
    for (TensorToWrite& piece : pack(base, tensor.shape[0], tensor.shape[1])) {
      packed.push_back(std::move(piece));
    }
  }
  return packed;
}

std::vector<TensorToWrite> gptq(const std::string& base, std::int64_t out, std::int64_t in) {
  return {zeros(base + ".qweight", {in / 8, out}, StoredType::int32),
          zeros(base + ".qzeros", {in / kGroup, out / 8}, StoredType::int32),
          zeros(base + ".scales", {in / kGroup, out}, StoredType::float16),
          zeros(base + ".g_idx", {in}, StoredType::int32)};
}

std::vector<TensorToWrite> awq(const std::string& base, std::int64_t out, std::int64_t in) {
  return {zeros(base + ".qweight", {in, out / 8}, StoredType::int32),
          zeros(base + ".qzeros", {in / kGroup, out / 8}, StoredType::int32),
          zeros(base + ".scales", {in / kGroup, out}, StoredType::float16)};
}

std::vector<TensorToWrite> bitsandbytes_8bit(const std::string& base, std::int64_t out,
                                             std::int64_t in) {
  return {zeros(base + ".weight", {out, in}, StoredType::int8), zeros(base + ".SCB", {out}),
          zeros(base + ".weight_format", {}, StoredType::uint8)};
}

std::vector<TensorToWrite> compressed(const std::string& base, std::int64_t out, std::int64_t in) {
  const std::vector<std::int64_t> shape{out, in};
  return {zeros(base + ".weight_packed", {out, in / 8}, StoredType::int32),
          zeros(base + ".weight_scale", {out, in / kGroup}, StoredType::bfloat16),
          checkpoint::int64_tensor(base + ".weight_shape", {2}, shape)};
}

std::vector<TensorToWrite> mlx(const std::string& base, std::int64_t out, std::int64_t in) {
  return {zeros(base + ".weight", {out, in / 8}, StoredType::uint32),
          zeros(base + ".scales", {out, in / kGroup}, StoredType::bfloat16),
          zeros(base + ".biases", {out, in / kGroup}, StoredType::bfloat16)};
}

std::vector<TensorToWrite> hqq(const std::string& base, std::int64_t out, std::int64_t in) {
  const std::int64_t groups = out * in / kGroup;
  const std::vector<std::int64_t> shape{out, in};
  return {zeros(base + ".W_q", {kGroup / 2, groups}, StoredType::uint8),
          zeros(base + ".scale", {1, groups}, StoredType::bfloat16),
          zeros(base + ".zero", {1, groups}, StoredType::bfloat16),
          checkpoint::int64_tensor(base + ".shape", {2}, shape),
          zeros(base + ".nbits", {1}, StoredType::int32),
          zeros(base + ".group_size", {1}, StoredType::int32),
          zeros(base + ".packing", {7}, StoredType::uint8)};
}

std::vector<TensorToWrite> torchao_int4(const std::string& base, std::int64_t out,
                                        std::int64_t in) {
  return {zeros(base + "._weight_qdata", {out, in / 2}, StoredType::int8),
          zeros(base + "._weight_scale", {in / kGroup, out}, StoredType::bfloat16),
          zeros(base + "._weight_zero_point", {in / kGroup, out}, StoredType::bfloat16)};
}

std::vector<TensorToWrite> torchao_tiles(const std::string& base, std::int64_t out,
                                         std::int64_t in) {
  return {zeros(base + "._weight_qdata", {out / 8, in / 32, 32, 1}, StoredType::int32),
          zeros(base + "._weight_scale_and_zero", {in / kGroup, out, 2}, StoredType::bfloat16)};
}

std::vector<TensorToWrite> torchao_float8(const std::string& base, std::int64_t out,
                                          std::int64_t in) {
  return {zeros(base + "._weight_qdata", {out, in}, StoredType::float8_e4m3),
          zeros(base + "._weight_scale", {out, 1})};
}

}  // namespace headroom::test
