#include "embedding.h"

#include <cmath>

#include "parallel.h"

namespace headroom::measured {

namespace {

void add_row(float* out, const float* row, std::int64_t width) {
  for (std::int64_t i = 0; i < width; ++i) out[i] += row[i];
}

}  // namespace

void embed_tokens(const TokenEmbeddingArguments& args, float* out) {
  const std::int64_t tokens = args.batch * args.seq_len;
#pragma omp parallel for if (tokens * args.width >= kSerialElements) schedule(static)
  for (std::int64_t token = 0; token < tokens; ++token) {
    float* to = out + token * args.width;
    args.word_row(args.ids[token], to);
    const float scale =
        args.token_scales == nullptr ? args.scale : args.scale * args.token_scales[token];
    for (std::int64_t i = 0; i < args.width; ++i) to[i] *= scale;
    if (args.position_table != nullptr) {
      const std::int64_t position = args.position_ids != nullptr
                                        ? args.position_ids[token]
                                        : args.first_position + token % args.seq_len;
      add_row(to, args.position_table + position * args.width, args.width);
    }
    if (args.type_table != nullptr) {
      const std::int64_t type = args.type_ids != nullptr ? args.type_ids[token] : 0;
      add_row(to, args.type_table + type * args.width, args.width);
    }
  }
}

std::vector<float> sinusoidal_positions(std::int64_t positions, std::int64_t width) {
  std::vector<float> table;
  table.reserve(static_cast<std::size_t>(positions * width));
  for (std::int64_t position = 0; position < positions; ++position) {
    for (std::int64_t i = 0; i < width; ++i) {
      const std::int64_t pair = i - i % 2;  // sine and cosine share an angle
      const double exponent = static_cast<double>(pair) / static_cast<double>(width);
      const double angle = static_cast<double>(position) / std::pow(10000.0, exponent);
      table.push_back(static_cast<float>(i % 2 == 0 ? std::sin(angle) : std::cos(angle)));
    }
  }
  return table;
}

std::vector<float> sinusoidal_halves(std::int64_t positions, std::int64_t width) {
  const std::vector<float> pairs = sinusoidal_positions(positions, width);
  std::vector<float> table(pairs.size());
  const std::int64_t half = (width + 1) / 2;
  for (std::int64_t i = 0; i < positions * width; ++i) {
    const std::int64_t column = i % width;
    const std::int64_t to = column % 2 == 0 ? column / 2 : half + column / 2;
    table[static_cast<std::size_t>(i - column + to)] = pairs[static_cast<std::size_t>(i)];
  }
  return table;
}

std::vector<float> tensor2tensor_positions(std::int64_t positions, std::int64_t width) {
  const std::int64_t half = width / 2;
  std::vector<float> table(static_cast<std::size_t>(positions * width));
  for (std::int64_t position = 0; position < positions; ++position) {
    for (std::int64_t i = 0; i < half; ++i) {
      const double exponent = static_cast<double>(i) / static_cast<double>(half - 1);
      const double angle = static_cast<double>(position) / std::pow(10000.0, exponent);
      const auto at = static_cast<std::size_t>(position * width + i);
      table[at] = static_cast<float>(std::sin(angle));
      table[at + static_cast<std::size_t>(half)] = static_cast<float>(std::cos(angle));
    }
  }
  return table;
}

}  // namespace headroom::measured
