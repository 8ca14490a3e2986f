#include "ggml_type.h"

#include <algorithm>
#include <array>

#include "element_type.h"
#include "headroom/error.h"

namespace headroom::checkpoint {
namespace {

// A block has a 16-bit scale ("d") and packed values; some types add a minimum or finer scales.
constexpr std::array kGgmlTypes{
    GgmlTypeInfo{GgmlType::f32, "F32", 1, 4},
    GgmlTypeInfo{GgmlType::f16, "F16", 1, 2},
    GgmlTypeInfo{GgmlType::q4_0, "Q4_0", 32, 2 + 16},
    GgmlTypeInfo{GgmlType::q4_1, "Q4_1", 32, 2 + 2 + 16},
    GgmlTypeInfo{GgmlType::q5_0, "Q5_0", 32, 2 + 4 + 16},
    GgmlTypeInfo{GgmlType::q5_1, "Q5_1", 32, 2 + 2 + 4 + 16},
    GgmlTypeInfo{GgmlType::q8_0, "Q8_0", 32, 2 + 32},
    GgmlTypeInfo{GgmlType::q8_1, "Q8_1", 32, 2 + 2 + 32},
    GgmlTypeInfo{GgmlType::q2_k, "Q2_K", 256, 2 + 2 + 16 + 64},
    GgmlTypeInfo{GgmlType::q3_k, "Q3_K", 256, 2 + 12 + 32 + 64},
    GgmlTypeInfo{GgmlType::q4_k, "Q4_K", 256, 2 + 2 + 12 + 128},
    GgmlTypeInfo{GgmlType::q5_k, "Q5_K", 256, 2 + 2 + 12 + 32 + 128},
    GgmlTypeInfo{GgmlType::q6_k, "Q6_K", 256, 2 + 16 + 64 + 128},
    GgmlTypeInfo{GgmlType::q8_k, "Q8_K", 256, 4 + 256 + 32},
    GgmlTypeInfo{GgmlType::iq2_xxs, "IQ2_XXS", 256, 2 + 64},
    GgmlTypeInfo{GgmlType::iq2_xs, "IQ2_XS", 256, 2 + 64 + 8},
    GgmlTypeInfo{GgmlType::iq3_xxs, "IQ3_XXS", 256, 2 + 96},
    GgmlTypeInfo{GgmlType::iq1_s, "IQ1_S", 256, 2 + 32 + 16},
    GgmlTypeInfo{GgmlType::iq4_nl, "IQ4_NL", 32, 2 + 16},
    GgmlTypeInfo{GgmlType::iq3_s, "IQ3_S", 256, 2 + 64 + 8 + 32 + 4},
    GgmlTypeInfo{GgmlType::iq2_s, "IQ2_S", 256, 2 + 64 + 8 + 8},
    GgmlTypeInfo{GgmlType::iq4_xs, "IQ4_XS", 256, 2 + 2 + 4 + 128},
    GgmlTypeInfo{GgmlType::i8, "I8", 1, 1},
    GgmlTypeInfo{GgmlType::i16, "I16", 1, 2},
    GgmlTypeInfo{GgmlType::i32, "I32", 1, 4},
    GgmlTypeInfo{GgmlType::i64, "I64", 1, 8},
    GgmlTypeInfo{GgmlType::f64, "F64", 1, 8},
    GgmlTypeInfo{GgmlType::iq1_m, "IQ1_M", 256, 32 + 16 + 8},
    GgmlTypeInfo{GgmlType::bf16, "BF16", 1, 2},
    GgmlTypeInfo{GgmlType::tq1_0, "TQ1_0", 256, 2 + 48 + 4},
    GgmlTypeInfo{GgmlType::tq2_0, "TQ2_0", 256, 2 + 64},
    GgmlTypeInfo{GgmlType::mxfp4, "MXFP4", 32, 1 + 16},
    GgmlTypeInfo{GgmlType::nvfp4, "NVFP4", 64, 4 + 32},
    GgmlTypeInfo{GgmlType::q1_0, "Q1_0", 128, 2 + 16},
    GgmlTypeInfo{GgmlType::q2_0, "Q2_0", 64, 2 + 16},
};

}  // namespace

std::span<const GgmlTypeInfo> ggml_types() { return kGgmlTypes; }

const GgmlTypeInfo& info(GgmlType type) {
  const auto* const found = std::ranges::find(kGgmlTypes, type, &GgmlTypeInfo::type);
  if (found == kGgmlTypes.end())
    throw Error(ErrorCode::internal, "a ggml type is missing from the table");
  return *found;
}

std::optional<GgmlType> ggml_type(std::uint32_t number) {
  const auto* const found = std::ranges::find_if(kGgmlTypes, [&](const GgmlTypeInfo& type) {
    return static_cast<std::uint32_t>(type.type) == number;
  });
  if (found == kGgmlTypes.end()) return std::nullopt;
  return found->type;
}

std::optional<std::int64_t> ggml_bytes(GgmlType type, std::span<const std::int64_t> shape) {
  const GgmlTypeInfo& layout = info(type);
  if (!shape.empty() && shape.back() % layout.block_size != 0) return std::nullopt;
  Integer elements = 1;
  for (const std::int64_t size : shape) {
    if (size < 0) return std::nullopt;
    elements = checked_multiply(elements, size);
    if (elements > kMostStoredElements) return std::nullopt;
  }
  if (elements % layout.block_size != 0) return std::nullopt;
  return static_cast<std::int64_t>(elements / layout.block_size * layout.block_bytes);
}

}  // namespace headroom::checkpoint
