#include "weight_words.h"

#include <algorithm>
#include <array>
#include <string>

#include "headroom/storage.h"
#include "similar.h"
#include "visit.h"

namespace headroom {
namespace {

using detail::WeightWord;

constexpr std::array<WeightWord, 26> kWeightWords{
    {{"float32", WeightType::float32},   {"fp32", WeightType::float32},
     {"bfloat16", WeightType::bfloat16}, {"bf16", WeightType::bfloat16},
     {"float16", WeightType::float16},   {"fp16", WeightType::float16},
     {"half", WeightType::float16},      {"float8", WeightType::float8},
     {"fp8", WeightType::float8},        {"int8", WeightType::int8},
     {"int4", WeightType::int4},         {"nf4", WeightType::nf4},
     {"mxfp4", WeightType::mxfp4},       {"nvfp4", WeightType::nvfp4},
     {"q8_0", WeightType::q8_0},         {"q6_k", WeightType::q6_k},
     {"q5_k_m", WeightType::q5_k_m},     {"q4_k_m", WeightType::q4_k_m},
     {"q4_0", WeightType::q4_0},         {"q4_1", WeightType::q4_1},
     {"q5_0", WeightType::q5_0},         {"q5_1", WeightType::q5_1},
     {"q2_k", WeightType::q2_k},         {"q3_k_m", WeightType::q3_k_m},
     {"iq4_nl", WeightType::iq4_nl},     {"iq4_xs", WeightType::iq4_xs}}};

/// Other names of mixes in quantize.
constexpr std::array<WeightWord, 3> kAliases{
    {{"q3_k", WeightType::q3_k_m}, {"q4_k", WeightType::q4_k_m}, {"q5_k", WeightType::q5_k_m}}};

/// Another name of "fp8-1x32-s8".
constexpr std::string_view kMxfp8Word = "mxfp8";

template <std::size_t size>
std::optional<WeightForm> type_named(const std::array<WeightWord, size>& words,
                                     std::string_view word) {
  const auto* const found = std::ranges::find(words, word, &WeightWord::word);
  return found == words.end() ? std::nullopt : std::optional<WeightForm>(found->type);
}

}  // namespace

std::string_view name_of(WeightType type) noexcept {
  return std::ranges::find(kWeightWords, type, &WeightWord::type)->word;
}

std::string name_of(const WeightForm& form) {
  return std::visit(Overloaded{[](WeightType type) { return std::string(name_of(type)); },
                               [](const GroupFormat& groups) { return name_of(groups); }},
                    form);
}

std::string name_of(const std::optional<WeightForm>& form) {
  return form ? name_of(*form) : "stored";
}

namespace detail {

std::span<const WeightWord> weight_words() noexcept { return kWeightWords; }

std::optional<WeightForm> weight_form_named(std::string_view word) {
  const std::string lower = lower_case(word);
  if (const auto type = type_named(kWeightWords, lower)) return type;
  if (const auto type = type_named(kAliases, lower)) return type;
  if (lower == kMxfp8Word) return kMxfp8;
  const auto groups = group_format_named(lower);
  const bool has_scales = groups && groups->scales != GroupScales::none;
  return has_scales ? std::optional<WeightForm>(*groups) : std::nullopt;
}

}  // namespace detail
}  // namespace headroom
