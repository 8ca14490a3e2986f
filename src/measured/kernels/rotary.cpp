#include "rotary.h"

#include <algorithm>
#include <cmath>

#include "parallel.h"

namespace headroom::measured {

namespace {

std::vector<float> plain_frequencies(double theta, std::int64_t head_dim) {
  std::vector<float> frequencies;
  for (std::int64_t i = 0; i < head_dim; i += 2) {
    const float exponent = static_cast<float>(i) / static_cast<float>(head_dim);
    const auto power = static_cast<float>(std::pow(theta, static_cast<double>(exponent)));
    frequencies.push_back(1.0F / power);
  }
  return frequencies;
}

/// theta grows with the sequence once it passes the trained context (NTK-aware scaling).
double dynamic_theta(const RopeSpec& rope, std::int64_t head_dim, std::int64_t positions,
                     std::int64_t trained_positions) {
  const auto trained = static_cast<double>(trained_positions);
  const double longest = std::max(static_cast<double>(positions), trained);
  const auto dim = static_cast<double>(head_dim);
  const double stretch = rope.factor * longest / trained - (rope.factor - 1);
  return rope.theta * std::pow(stretch, dim / (dim - 2));
}

/// Llama 3.1: long waves are stretched, short ones kept, and those between are interpolated.
float llama3_frequency(const RopeSpec& rope, float frequency) {
  constexpr double kTwoPi = 6.283185307179586;
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

std::vector<float> rotary_frequencies(const RopeSpec& rope, std::int64_t head_dim,
                                      std::int64_t positions, std::int64_t trained_positions) {
  std::vector<float> frequencies = plain_frequencies(rope.theta, head_dim);
  switch (rope.scaling) {
    case RopeScalingKind::none:
      break;
    case RopeScalingKind::linear:
      for (float& frequency : frequencies) frequency /= static_cast<float>(rope.factor);
      break;
    case RopeScalingKind::dynamic:
      return plain_frequencies(dynamic_theta(rope, head_dim, positions, trained_positions),
                               head_dim);
    case RopeScalingKind::llama3:
      for (float& frequency : frequencies) frequency = llama3_frequency(rope, frequency);
      break;
  }
  return frequencies;
}

RotaryTable make_rotary_table(const RopeSpec& rope, std::int64_t head_dim, std::int64_t positions,
                              std::int64_t trained_positions) {
  RotaryTable table{positions, head_dim / 2, {}, {}};
  const std::vector<float> frequencies =
      rotary_frequencies(rope, head_dim, positions, trained_positions);
  for (std::int64_t position = 0; position < positions; ++position) {
    for (const float frequency : frequencies) {
      const float angle = static_cast<float>(position) * frequency;
      table.cos.push_back(static_cast<float>(std::cos(static_cast<double>(angle))));
      table.sin.push_back(static_cast<float>(std::sin(static_cast<double>(angle))));
    }
  }
  return table;
}

void apply_rotary(const RotaryTable& table, const RotaryArguments& args, float* x) {
  const std::int64_t tokens = args.batch * args.seq_len;
#pragma omp parallel for if (tokens * args.heads * table.half >= kSerialElements) schedule(static)
  for (std::int64_t token = 0; token < tokens; ++token) {
    const std::int64_t place = token % args.seq_len;
    const std::int64_t angle = (args.first_position + place) * table.half;
    float* row = x + token / args.seq_len * args.batch_stride + place * args.stride;
    for (std::int64_t head = 0; head < args.heads; ++head) {
      turn(row + head * 2 * table.half, table.cos.data() + angle, table.sin.data() + angle,
           table.half);
    }
  }
}

}  // namespace headroom::measured
