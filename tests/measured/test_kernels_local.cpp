// Kernels of a Conformer against their definitions: attention of chunks with relative positions,
// its sinusoids, and rows of a convolution over a whole clip.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "kernel_data.h"
#include "kernels/convolution.h"
#include "kernels/local_attention.h"
#include "kernels/transformer_xl.h"

using namespace headroom;
using namespace headroom::measured;
using headroom::measured::testing::largest_error;
using headroom::measured::testing::random_floats;

namespace {

constexpr std::int64_t kLocalHeads = 2;
constexpr std::int64_t kLocalDim = 4;
constexpr std::int64_t kLocalWidth = kLocalHeads * kLocalDim;
const std::vector<std::int64_t> kLocalClips{7, 3};  // rows: two chunks, the last one short, and one
constexpr std::int64_t kLocalRows = 10;

/// Operands of a layer. A row sees itself, `earlier` - 1 before it and `later` - 1 behind it.
struct LocalLayer {
  LocalAttentionArguments args;
  std::vector<float> query = random_floats(kLocalRows * kLocalWidth, 1, 2);
  std::vector<float> key = random_floats(kLocalRows * kLocalWidth, 2, 2);
  std::vector<float> value = random_floats(kLocalRows * kLocalWidth, 3);
  std::vector<float> scale = random_floats(kLocalDim, 4);
  std::vector<float> position_key;

  LocalLayer(std::int64_t chunk, std::int64_t earlier, std::int64_t later) {
    args.heads = kLocalHeads;
    args.head_dim = kLocalDim;
    args.chunk = chunk;
    args.earlier = earlier;
    args.later = later;
    args.positions = args.context() / 2 + 1;
    args.soft_cap = 3;
    args.clips = kLocalClips;
    position_key = random_floats(args.positions * kLocalWidth, 5);
    args.query = query.data();
    args.key = key.data();
    args.value = value.data();
    args.scale = scale.data();
    args.position_key = position_key.data();
  }
};

double value_at(const std::vector<float>& values, std::int64_t row, std::int64_t feature) {
  return static_cast<double>(values[static_cast<std::size_t>(row * kLocalWidth + feature)]);
}

/// Score of a query and a key of one head, `distance` rows before it.
double score(const LocalLayer& layer, std::int64_t head, std::int64_t query,
             std::int64_t distance) {
  double sum = 0;
  const std::int64_t position = layer.args.earlier - distance;
  for (std::int64_t i = 0; i < kLocalDim; ++i) {
    const std::int64_t feature = head * kLocalDim + i;
    const double trained =
        std::log(1 + std::exp(static_cast<double>(layer.scale[static_cast<std::size_t>(i)])));
    const double q =
        value_at(layer.query, query, feature) * trained / std::numbers::ln2 / std::sqrt(kLocalDim);
    const double k = value_at(layer.key, query - distance, feature) *
                     std::log(1 + std::numbers::e) / std::numbers::ln2;
    const bool has_position = position < layer.args.positions;
    const double r = has_position ? value_at(layer.position_key, position, feature) : 0;
    sum += q * (k + r);
  }
  return 3 * std::tanh(sum / 3);
}

/// Context of a query of a clip that begins with row `begin`.
std::vector<double> context_of(const LocalLayer& layer, std::int64_t begin, std::int64_t rows,
                               std::int64_t query) {
  std::vector<double> out;
  for (std::int64_t feature = 0; feature < kLocalWidth; ++feature) {
    double total = 0;
    double sum = 0;
    for (std::int64_t key = begin; key < begin + rows; ++key) {
      const std::int64_t distance = query - key;
      const bool seen =
          distance >= 0 ? distance < layer.args.earlier : -distance < layer.args.later;
      if (!seen) continue;
      const double weight = std::exp(score(layer, feature / kLocalDim, query, distance));
      total += weight;
      sum += weight * value_at(layer.value, key, feature);
    }
    out.push_back(sum / total);
  }
  return out;
}

std::vector<double> context_of(const LocalLayer& layer) {
  std::vector<double> out;
  std::int64_t begin = 0;
  for (const std::int64_t rows : kLocalClips) {
    for (std::int64_t query = begin; query < begin + rows; ++query) {
      const std::vector<double> row = context_of(layer, begin, rows, query);
      out.insert(out.end(), row.begin(), row.end());
    }
    begin += rows;
  }
  return out;
}

}  // namespace

TEST_CASE("attention of chunks is that of the rows before each row of its clip") {
  for (const std::int64_t later : {0, 2}) {
    CAPTURE(later);
    LocalLayer layer(4, 4, later);
    std::vector<float> scratch(static_cast<std::size_t>(layer.args.scratch_floats()));
    std::vector<float> out(kLocalRows * kLocalWidth);
    const std::int64_t flops = local_attention(layer.args, scratch.data(), out.data());
    CHECK(largest_error(out, context_of(layer)) < 1e-5);
    // Each row of 8 values with the keys and values of 8 + later rows, and 5 positions or 6.
    CHECK(flops == 2 * 10 * 8 * (2 * (8 + later) + 5 + later / 2));
  }
}

// transformers, Gemma4AudioRelPositionalEncoding: frequencies from 1 to 1/10000.
TEST_CASE("sinusoids of earlier positions run from the most distant one to the row itself") {
  std::vector<float> out(3 * 6);
  fill_relative_sinusoids({1, 3, 6, 0, SinusoidRows::earlier}, out.data());
  const double frequencies[] = {1, 0.01, 0.0001};
  for (std::size_t row = 0; row < 3; ++row) {
    const double distance = 2 - static_cast<double>(row);
    for (std::size_t i = 0; i < 3; ++i) {
      const float* const values = out.data() + row * 6 + i;
      CHECK(static_cast<double>(values[0]) == doctest::Approx(std::sin(distance * frequencies[i])));
      CHECK(static_cast<double>(values[3]) == doctest::Approx(std::cos(distance * frequencies[i])));
    }
  }
}

TEST_CASE("rows of a convolution's output read those of a whole clip, and zeros behind it") {
  const GridArguments clip{5, 3, 2};
  const auto grid = random_floats(5 * 3 * 2, 6);
  const std::int64_t row = 2 * 2 * 9;  // 2 places with 9 taps of 2 channels
  std::vector<float> whole(static_cast<std::size_t>(3 * row));
  gather_places(clip, grid.data(), whole.data());
  std::vector<float> part(static_cast<std::size_t>(2 * row), 1);
  gather_places(clip, {2, 2}, grid.data(), part.data());
  CHECK(std::equal(part.begin(), part.begin() + row, whole.begin() + 2 * row));
  CHECK(std::count(part.begin() + row, part.end(), 0.0F) == row);
}
