// W [out, in] in panels of neighbouring outputs, as matrix products of many rows read it fastest.
#pragma once

#include <cstdint>

#include "parallel.h"

namespace headroom::measured {

/// Neighbouring inputs whose weights of one output share a word of 32 bits.
template <class Weight>
inline constexpr std::int64_t kWordInputs = 4 / static_cast<std::int64_t>(sizeof(Weight));

/// Float32 weights, or the bits of bfloat16 ones. With k = kWordInputs, element [o, i] is
/// `(i / k·width + o % width)·k + i % k` weights behind the start of panel o / width. The last
/// panel is filled up with zeros to whole vectors, as is an input word.
template <class Weight>
struct WeightPanels {
  const Weight* first = nullptr;
  std::int64_t in = 0;
  std::int64_t out = 0;
  std::int64_t width = 0;   ///< outputs per panel
  std::int64_t stride = 0;  ///< weights from a panel to the next

  [[nodiscard]] const Weight* column(std::int64_t number) const {
    return first + number / width * stride + number % width * kWordInputs<Weight>;
  }
  /// Weights from an input word to the next.
  [[nodiscard]] std::int64_t word_stride() const { return width * kWordInputs<Weight>; }
};

/// Returns whether panels of this width are whole vectors.
[[nodiscard]] bool can_stream_panels(std::int64_t width) noexcept;

/// Puts panels that are not yet written on the nodes of the threads that stream them.
template <class Weight>
void place_panels(const WeightPanels<Weight>& panels);

}  // namespace headroom::measured
