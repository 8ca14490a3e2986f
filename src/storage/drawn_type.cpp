#include "drawn_type.h"

#include <algorithm>
#include <array>
#include <utility>

#include "similar.h"
#include "visit.h"

namespace headroom::detail {
namespace {

using MixName = std::pair<std::string_view, GgufMix>;

constexpr std::array<MixName, 7> kMixes{{{"q4_1", GgufMix::q4_1},
                                         {"q5_0", GgufMix::q5_0},
                                         {"q5_1", GgufMix::q5_1},
                                         {"q2_k", GgufMix::q2_k},
                                         {"q3_k_m", GgufMix::q3_k_m},
                                         {"iq4_nl", GgufMix::iq4_nl},
                                         {"iq4_xs", GgufMix::iq4_xs}}};

/// quantize's other name of Q3_K_M.
constexpr MixName kAlias{"q3_k", GgufMix::q3_k_m};

std::string_view word_of(GgufMix mix) {
  return std::ranges::find(kMixes, mix, &MixName::second)->first;
}

}  // namespace

std::vector<std::string> drawn_mixes() {
  std::vector<std::string> words;
  words.reserve(kMixes.size());
  for (const auto& [word, mix] : kMixes) words.emplace_back(word);
  return words;
}

std::optional<DrawnType> drawn_type_named(std::string_view word) {
  const std::string lower = lower_case(word);
  if (lower == kAlias.first) return kAlias.second;
  const auto* const mix = std::ranges::find(kMixes, lower, &MixName::first);
  if (mix != kMixes.end()) return mix->second;
  const auto groups = group_format_named(lower);
  const bool has_scales = groups && groups->scales != GroupScales::none;
  return has_scales ? std::optional<DrawnType>(*groups) : std::nullopt;
}

std::string name_of(const DrawnType& type) {
  return std::visit(Overloaded{[](GgufMix mix) { return std::string(word_of(mix)); },
                               [](const GroupFormat& groups) { return name_of(groups); }},
                    type);
}

}  // namespace headroom::detail
