#include "rotary.h"

#include <algorithm>
#include <cmath>

#include "parallel.h"

namespace headroom::measured {

namespace {

constexpr double kTwoPi = 6.283185307179586;

std::vector<float> plain_frequencies(double theta, std::int64_t dim) {
  std::vector<float> frequencies;
  for (std::int64_t i = 0; i < dim; i += 2) {
    const float exponent = static_cast<float>(i) / static_cast<float>(dim);
    const auto power = static_cast<float>(std::pow(theta, static_cast<double>(exponent)));
    frequencies.push_back(1.0F / power);
  }
  return frequencies;
}

/// NTK-aware scaling: theta grows once the sequence exceeds the trained context.
double dynamic_theta(const RopeSpec& rope, std::int64_t dim, std::int64_t positions,
                     std::int64_t trained_positions) {
  const auto trained = static_cast<double>(trained_positions);
  const double longest = std::max(static_cast<double>(positions), trained);
  const auto width = static_cast<double>(dim);
  const double growth = rope.factor * longest / trained - (rope.factor - 1);
  return rope.theta * std::pow(growth, width / (width - 2));
}

/// Llama 3.1: scales low frequencies, keeps high ones and interpolates between.
float llama3_frequency(const RopeSpec& rope, float frequency) {
  const auto context = static_cast<float>(rope.original_max_position_embeddings);
  const auto low = static_cast<float>(rope.low_freq_factor);
  const auto high = static_cast<float>(rope.high_freq_factor);
  const auto factor = static_cast<float>(rope.factor);
  const float wavelength = static_cast<float>(kTwoPi) / frequency;
  if (wavelength > context / low) return frequency / factor;
  if (wavelength < context / high) return frequency;
  const float smooth = (context / wavelength - low) / (high - low);
  return (1.0F - smooth) * frequency / factor + smooth * frequency;
}

/// Dimension that makes `rotations` turns over the original context (arXiv 2309.00071, appendix
/// A.2).
double dimension_of(double rotations, const RopeSpec& rope, double dim) {
  const auto context = static_cast<double>(rope.original_max_position_embeddings);
  return dim * std::log(context / (rotations * kTwoPi)) / (2 * std::log(rope.theta));
}

/// YaRN: keeps high frequencies, scales low ones, with a linear ramp between.
void scale_yarn(const RopeSpec& rope, std::int64_t dim, std::vector<float>& frequencies) {
  const auto width = static_cast<double>(dim);
  double low = dimension_of(rope.beta_fast, rope, width);
  double high = dimension_of(rope.beta_slow, rope, width);
  if (rope.truncate) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, width - 1);
  if (low == high) high += 0.001;  // as in the reference code, to avoid division by zero
  for (std::size_t i = 0; i < frequencies.size(); ++i) {
    const double ramp = std::clamp((static_cast<double>(i) - low) / (high - low), 0.0, 1.0);
    const auto kept = static_cast<float>(1 - ramp);
    const float scaled = frequencies[i] / static_cast<float>(rope.factor);
    frequencies[i] = scaled * (1 - kept) + frequencies[i] * kept;
  }
}

/// Returns whether `positions` exceeds the original context.
bool exceeds_original_context(const RopeSpec& rope, std::int64_t positions) {
  return positions > rope.original_max_position_embeddings;
}

/// LongRoPE: one factor per frequency, is_short the original context and beyond it.
void scale_longrope(const RopeSpec& rope, std::int64_t positions, std::vector<float>& frequencies) {
  const std::vector<double>& factors =
      exceeds_original_context(rope, positions) ? rope.long_factors : rope.short_factors;
  for (std::size_t i = 0; i < frequencies.size(); ++i) {
    frequencies[i] /= static_cast<float>(factors.at(i));
  }
}

/// Axis that turns a pair of a head: 0 time, 1 height, 2 width.
std::size_t axis_of_pair(const RopeSpec& rope, std::int64_t pair) {
  const auto& [time, height, width] = rope.sections;
  if (rope.axes == RopeAxes::sections) {
    if (pair < time) return 0;
    return pair < time + height ? 1 : 2;
  }
  const bool turns_by_height = pair % 3 == 1 && pair < 3 * height;
  const bool turns_by_width = pair % 3 == 2 && pair < 3 * width;
  if (turns_by_height) return 1;
  return turns_by_width ? 2 : 0;
}

/// Rotates one head with interleaved pairs (x[2i], x[2i + 1]).
void rotate_interleaved(float* head, const float* cos, const float* sin, std::int64_t half) {
  for (std::int64_t i = 0; i < half; ++i) {
    const float a = head[2 * i];
    const float b = head[2 * i + 1];
    head[2 * i] = a * cos[i] - b * sin[i];
    head[2 * i + 1] = b * cos[i] + a * sin[i];
  }
}

/// Rotates one head with pairs half a head apart: (a, b) becomes (a·cos - b·sin, b·cos + a·sin).
void rotate_half_split(float* head, const float* cos, const float* sin, std::int64_t half) {
  float* upper = head + half;
#pragma omp simd
  for (std::int64_t i = 0; i < half; ++i) {
    const float a = head[i];
    const float b = upper[i];
    head[i] = a * cos[i] - b * sin[i];
    upper[i] = b * cos[i] + a * sin[i];
  }
}

/// Rotates both halves of a head on their own, each with pairs half of it apart.
void rotate_halves(float* head, const float* cos, const float* sin, std::int64_t half) {
  rotate_half_split(head, cos, sin, half / 2);
  rotate_half_split(head + half, cos + half / 2, sin + half / 2, half / 2);
}

using RotateHead = void (*)(float* head, const float* cos, const float* sin, std::int64_t half);

RotateHead rotation_of(RopeLayout layout) {
  switch (layout) {
    case RopeLayout::half_split:
      return rotate_half_split;
    case RopeLayout::half_split_in_halves:
      return rotate_halves;
    case RopeLayout::interleaved:
      break;
  }
  return rotate_interleaved;
}

}  // namespace

std::vector<float> rotary_frequencies(const RopeSpec& rope, std::int64_t dim,
                                      std::int64_t positions, std::int64_t trained_positions) {
  std::vector<float> frequencies = plain_frequencies(rope.theta, dim);
  switch (rope.scaling) {
    case RopeScalingKind::none:
      break;
    case RopeScalingKind::linear:
      for (float& frequency : frequencies) frequency /= static_cast<float>(rope.factor);
      break;
    case RopeScalingKind::dynamic:
      return plain_frequencies(dynamic_theta(rope, dim, positions, trained_positions), dim);
    case RopeScalingKind::llama3:
      for (float& frequency : frequencies) frequency = llama3_frequency(rope, frequency);
      break;
    case RopeScalingKind::yarn:
      scale_yarn(rope, dim, frequencies);
      break;
    case RopeScalingKind::longrope:
      scale_longrope(rope, positions, frequencies);
      break;
  }
  if (rope.rotated_pairs > 0) {
    const auto turning = std::min<std::int64_t>(rope.rotated_pairs, std::ssize(frequencies));
    std::fill(frequencies.begin() + turning, frequencies.end(), 0.0F);
  }
  return frequencies;
}

RotaryTable make_rotary_table(const RopeSpec& rope, std::int64_t dim, std::int64_t positions,
                              std::int64_t trained_positions) {
  return make_rotary_rows(rope, dim, 0, positions, trained_positions);
}

RotaryTable make_rotary_rows(const RopeSpec& rope, std::int64_t dim, std::int64_t first,
                             std::int64_t end, std::int64_t trained_positions) {
  RotaryTable table{end - first, dim / 2, rope.layout, {}, {}};
  const bool is_short =
      rope.scaling == RopeScalingKind::longrope && !exceeds_original_context(rope, end);
  const auto factor =
      static_cast<float>(is_short ? rope.short_attention_factor : rope.attention_factor);
  const std::vector<float> frequencies = rotary_frequencies(rope, dim, end, trained_positions);
  for (std::int64_t position = first; position < end; ++position) {
    for (const float frequency : frequencies) {
      const float angle = static_cast<float>(position) * frequency;
      table.cos.push_back(static_cast<float>(std::cos(static_cast<double>(angle))) * factor);
      table.sin.push_back(static_cast<float>(std::sin(static_cast<double>(angle))) * factor);
    }
  }
  return table;
}

RotaryTable make_patch_rotary_table(const RopeSpec& rope, std::int64_t dim,
                                    const std::vector<PatchPoint>& points) {
  RotaryTable table{std::ssize(points), dim / 2, rope.layout, {}, {}};
  const bool has_time = rope.axes == RopeAxes::time_then_rows_then_columns;
  constexpr std::int64_t kAxes = 3;
  const std::vector<float> frequencies =
      plain_frequencies(rope.theta, has_time ? dim / kAxes : dim);
  const bool alternates = rope.axes == RopeAxes::rows_and_columns_alternate;
  const bool columns_first = rope.axes == RopeAxes::columns_then_rows;
  const auto add_pair = [&](float position, float frequency) {
    const auto angle = static_cast<double>(position * frequency);
    table.cos.push_back(static_cast<float>(std::cos(angle)));
    table.sin.push_back(static_cast<float>(std::sin(angle)));
  };
  const auto add = [&](float position, std::size_t first) {
    for (std::size_t i = first; i < frequencies.size(); i += 2) add_pair(position, frequencies[i]);
  };
  for (const PatchPoint& point : points) {
    if (has_time) {
      for (const float position : {0.0F, point.row, point.column}) {
        for (const float frequency : frequencies) add_pair(position, frequency);
      }
      continue;
    }
    if (rope.axes == RopeAxes::columns_and_rows_take_turns) {
      for (std::size_t i = 0; i < frequencies.size(); i += 2) {
        add_pair(point.column, frequencies[i]);
        add_pair(point.row, frequencies[i]);
      }
      continue;
    }
    add(columns_first ? point.column : point.row, 0);
    add(columns_first ? point.row : point.column, alternates ? 1 : 0);
  }
  return table;
}

RotaryTable make_axis_rotary_table(const RopeSpec& rope, std::int64_t dim,
                                   std::int64_t trained_positions,
                                   const std::vector<AxisPosition>& positions) {
  RotaryTable table{std::ssize(positions), dim / 2, rope.layout, {}, {}};
  const std::vector<float> frequencies =
      rotary_frequencies(rope, dim, table.positions, trained_positions);
  const auto factor = static_cast<float>(rope.attention_factor);
  for (const AxisPosition& position : positions) {
    for (std::size_t pair = 0; pair < frequencies.size(); ++pair) {
      const auto axis = axis_of_pair(rope, static_cast<std::int64_t>(pair));
      const float angle = static_cast<float>(position[axis]) * frequencies[pair];
      table.cos.push_back(static_cast<float>(std::cos(static_cast<double>(angle))) * factor);
      table.sin.push_back(static_cast<float>(std::sin(static_cast<double>(angle))) * factor);
    }
  }
  return table;
}

void apply_rotary(const RotaryTable& table, const RotaryArguments& args, float* x) {
  const std::int64_t tokens = args.batch * args.seq_len;
  const RotateHead rotate_head = rotation_of(table.layout);
#pragma omp parallel for if (tokens * args.heads * table.half >= kSerialElements) schedule(static)
  for (std::int64_t token = 0; token < tokens; ++token) {
    const std::int64_t place = token % args.seq_len;
    const std::int64_t sequence = token / args.seq_len;
    const std::int64_t shift = args.shifts == nullptr ? 0 : args.shifts[sequence];
    const std::int64_t angle = (args.first_position + place + shift) * table.half;
    float* row = x + sequence * args.batch_stride + place * args.stride;
    for (std::int64_t head = 0; head < args.heads; ++head) {
      rotate_head(row + head * args.head_stride, table.cos.data() + angle, table.sin.data() + angle,
                  table.half);
    }
  }
}

}  // namespace headroom::measured
