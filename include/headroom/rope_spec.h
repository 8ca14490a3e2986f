// RopeSpec: rotary positions of queries and keys, of tokens and of patches.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace headroom {

enum class RopeScalingKind { none, linear, dynamic, llama3, yarn, longrope };
/// Dimensions of a head that RoPE rotates as a pair: i and i + half, or 2·i and 2·i + 1, or those
/// of `half_split` within each half of the head (Gemma 4's patches).
enum class RopeLayout { half_split, interleaved, half_split_in_halves };

/// Positions that RoPE's angles count. `sequence`: of tokens. Of patches in a tower:
/// `rows_and_columns_alternate`: the pairs of a head alternate between rows and columns, those of
/// rows first (Pixtral, arXiv 2410.07073, section 2.1); `rows_then_columns`: the first half of the
/// pairs turns by the row, the second by the column, both at the same frequencies (Qwen2-VL);
/// `columns_then_rows`: likewise, columns first (Gemma 4); `columns_and_rows_take_turns`:
/// pairs alternate, columns first, and each two share a frequency (MoonViT, arXiv 2504.07491,
/// section 2.1); `time_then_rows_then_columns`: a third of the rotary pairs each, all at the same
/// frequencies; an image stands at time 0 (MiniMax M3). Of tokens on three axes, time, height and
/// width, equal for text (M-RoPE, arXiv 2409.12191, section 2.1): `sections`: consecutive pairs by
/// axis; `interleaved_sections`: pairs take turns, time first (Qwen3-VL, arXiv 2511.21631).
enum class RopeAxes {
  sequence,
  rows_and_columns_alternate,
  rows_then_columns,
  columns_then_rows,
  columns_and_rows_take_turns,
  time_then_rows_then_columns,
  sections,
  interleaved_sections,
};

/// Row and column of a patch as RoPE counts them: from 0, from 1 (Llama 4), or the centre of the
/// patch on a scale from -1 to 1, times 2π (DINOv3, arXiv 2508.10104, section 3.2).
enum class PatchCoordinates { from_zero, from_one, centres };

/// Returns whether tokens have positions on three axes.
[[nodiscard]] constexpr bool has_three_axes(RopeAxes axes) noexcept {
  return axes == RopeAxes::sections || axes == RopeAxes::interleaved_sections;
}

/// Rotary position embedding (arXiv 2104.09864) and its context extension. Changes values, never a
/// count.
struct RopeSpec {
  double theta = 10000;
  std::int64_t rotary_dim = 0;  ///< leading dimensions of a head that rotate; 0: all
  /// Leading pairs with a nonzero frequency (Gemma 4's "proportional" RoPE); 0: all.
  std::int64_t rotated_pairs = 0;
  RopeLayout layout = RopeLayout::half_split;
  RopeAxes axes = RopeAxes::sequence;
  PatchCoordinates coordinates = PatchCoordinates::from_zero;  ///< of patches only
  std::array<std::int64_t, 3> sections{};                      ///< pairs of each of three axes
  RopeScalingKind scaling = RopeScalingKind::none;
  double factor = 1;
  double low_freq_factor = 1;
  double high_freq_factor = 1;
  std::int64_t original_max_position_embeddings = 0;
  double beta_fast = 32;              ///< yarn (arXiv 2309.00071)
  double beta_slow = 1;               ///< yarn
  bool truncate = true;               ///< yarn: rounds the ramp's ends to whole dimensions
  double attention_factor = 1;        ///< multiplies cos and sin: yarn, longrope
  double short_attention_factor = 1;  ///< longrope, within the original context
  double mscale_all_dim = 0;      ///< yarn: MLA multiplies its softmax scale by the square (0: no)
  double query_scaling_beta = 0;  ///< scale of Ministral 3's TemperatureTuning (0: none)
  std::vector<double> short_factors{};  ///< longrope (arXiv 2402.13753), one per pair
  std::vector<double> long_factors{};   ///< longrope, beyond the original context
};

}  // namespace headroom
