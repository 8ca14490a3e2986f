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

/// theta grows with the sequence once it passes the trained context (NTK-aware scaling).
double dynamic_theta(const RopeSpec& rope, std::int64_t dim, std::int64_t positions,
                     std::int64_t trained_positions) {
  const auto trained = static_cast<double>(trained_positions);
  const double longest = std::max(static_cast<double>(positions), trained);
  const auto width = static_cast<double>(dim);
  const double stretch = rope.factor * longest / trained - (rope.factor - 1);
  return rope.theta * std::pow(stretch, width / (width - 2));
}

/// Llama 3.1: long waves are stretched, short ones kept, and those between are interpolated.
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

/// The dimension whose wave turns `rotations` times over the original context (arXiv 2309.00071,
/// appendix A.2).
double dimension_of(double rotations, const RopeSpec& rope, double dim) {
  const auto context = static_cast<double>(rope.original_max_position_embeddings);
  return dim * std::log(context / (rotations * kTwoPi)) / (2 * std::log(rope.theta));
}

/// YaRN: short waves are kept, long ones stretched, and a ramp leads from one to the other.
void stretch_yarn(const RopeSpec& rope, std::int64_t dim, std::vector<float>& frequencies) {
  const auto width = static_cast<double>(dim);
  double low = dimension_of(rope.beta_fast, rope, width);
  double high = dimension_of(rope.beta_slow, rope, width);
  if (rope.truncate) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, width - 1);
  if (low == high) high += 0.001;  // as the reference code keeps the ramp from being a step
  for (std::size_t i = 0; i < frequencies.size(); ++i) {
    const double ramp = std::clamp((static_cast<double>(i) - low) / (high - low), 0.0, 1.0);
    const auto kept = static_cast<float>(1 - ramp);
    const float stretched = frequencies[i] / static_cast<float>(rope.factor);
    frequencies[i] = stretched * (1 - kept) + frequencies[i] * kept;
  }
}

/// Whether so many positions leave the original context.
bool is_beyond(const RopeSpec& rope, std::int64_t positions) {
  return positions > rope.original_max_position_embeddings;
}

/// LongRoPE: every wave has a factor of its own, within the original context and beyond it.
void stretch_longrope(const RopeSpec& rope, std::int64_t positions,
                      std::vector<float>& frequencies) {
  const std::vector<double>& factors =
      is_beyond(rope, positions) ? rope.long_factors : rope.short_factors;
  for (std::size_t i = 0; i < frequencies.size(); ++i) {
    frequencies[i] /= static_cast<float>(factors.at(i));
  }
}

/// One head of neighbouring pairs.
void turn_neighbours(float* head, const float* cos, const float* sin, std::int64_t half) {
  for (std::int64_t i = 0; i < half; ++i) {
    const float a = head[2 * i];
    const float b = head[2 * i + 1];
    head[2 * i] = a * cos[i] - b * sin[i];
    head[2 * i + 1] = b * cos[i] + a * sin[i];
  }
}

/// One head: (a, b) becomes (a·cos - b·sin, b·cos + a·sin).
void turn(float* head, const float* cos, const float* sin, std::int64_t half) {
  float* upper = head + half;
#pragma omp simd
  for (std::int64_t i = 0; i < half; ++i) {
    const float a = head[i];
    const float b = upper[i];
    head[i] = a * cos[i] - b * sin[i];
    upper[i] = b * cos[i] + a * sin[i];
  }
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
      stretch_yarn(rope, dim, frequencies);
      break;
    case RopeScalingKind::longrope:
      stretch_longrope(rope, positions, frequencies);
      break;
  }
  return frequencies;
}

RotaryTable make_rotary_table(const RopeSpec& rope, std::int64_t dim, std::int64_t positions,
                              std::int64_t trained_positions) {
  RotaryTable table{positions, dim / 2, rope.layout, {}, {}};
  const bool within = rope.scaling == RopeScalingKind::longrope && !is_beyond(rope, positions);
  const auto factor =
      static_cast<float>(within ? rope.short_attention_factor : rope.attention_factor);
  const std::vector<float> frequencies =
      rotary_frequencies(rope, dim, positions, trained_positions);
  for (std::int64_t position = 0; position < positions; ++position) {
    for (const float frequency : frequencies) {
      const float angle = static_cast<float>(position) * frequency;
      table.cos.push_back(static_cast<float>(std::cos(static_cast<double>(angle))) * factor);
      table.sin.push_back(static_cast<float>(std::sin(static_cast<double>(angle))) * factor);
    }
  }
  return table;
}

void apply_rotary(const RotaryTable& table, const RotaryArguments& args, float* x) {
  const std::int64_t tokens = args.batch * args.seq_len;
  const auto turn_head = table.layout == RopeLayout::half_split ? turn : turn_neighbours;
#pragma omp parallel for if (tokens * args.heads * table.half >= kSerialElements) schedule(static)
  for (std::int64_t token = 0; token < tokens; ++token) {
    const std::int64_t place = token % args.seq_len;
    const std::int64_t angle = (args.first_position + place) * table.half;
    float* row = x + token / args.seq_len * args.batch_stride + place * args.stride;
    for (std::int64_t head = 0; head < args.heads; ++head) {
      turn_head(row + head * args.head_stride, table.cos.data() + angle, table.sin.data() + angle,
                table.half);
    }
  }
}

}  // namespace headroom::measured
