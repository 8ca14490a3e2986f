// Kernels of a Conformer against their definitions: attention of chunks with relative positions,
// its sinusoids, and rows of a convolution over a whole clip.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "definitions.h"
#include "kernels/convolution.h"
#include "kernels/cumulative_norm.h"
#include "kernels/local_attention.h"
#include "kernels/transformer_xl.h"

using namespace headroom;
using namespace headroom::measured;
using namespace headroom::measured::testing;

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

  LocalLayer(std::int64_t chunk, std::int64_t earlier, std::int64_t later,
             ConformerKeys keys = ConformerKeys::scaled) {
    args.keys = keys;
    args.heads = kLocalHeads;
    args.head_dim = kLocalDim;
    args.chunk = chunk;
    args.earlier = earlier;
    args.later = later;
    args.positions = keys == ConformerKeys::plain ? earlier + 1 : args.context() / 2 + 1;
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

/// A query of one head, scaled as in the reference code.
std::vector<double> scaled_query(const LocalLayer& layer, std::int64_t head, std::int64_t query) {
  std::vector<double> scaled;
  for (std::int64_t i = 0; i < kLocalDim; ++i) {
    const double trained = std::log(1 + std::exp(at(layer.scale, i)));
    scaled.push_back(value_at(layer.query, query, head * kLocalDim + i) * trained /
                     std::numbers::ln2 / std::sqrt(kLocalDim));
  }
  return scaled;
}

/// Rows of a clip.
struct Clip {
  std::int64_t begin;
  std::int64_t end;

  [[nodiscard]] bool contains(std::int64_t row) const { return row >= begin && row < end; }
};

/// Context of a query and head: products with all keys and values around its chunk, of which those
/// outside the clip are zeros, and with the keys of all positions.
void add_context(const LocalLayer& layer, const Clip& clip, std::int64_t query, std::int64_t head,
                 std::vector<double>& out) {
  const LocalAttentionArguments& args = layer.args;
  const std::vector<double> q = scaled_query(layer, head, query);
  const auto product = [&](const std::vector<float>& keys, std::int64_t row, double factor) {
    return sum_of(kLocalDim, [&](std::int64_t i) {
      const double key = factor == 0 ? 0 : factor * value_at(keys, row, head * kLocalDim + i);
      return times(q[static_cast<std::size_t>(i)], key);
    });
  };
  std::vector<double> by_position;
  for (std::int64_t row = 0; row < args.positions; ++row) {
    by_position.push_back(product(layer.position_key, row, 1).value());
  }
  const std::int64_t first =
      clip.begin + (query - clip.begin) / args.chunk * args.chunk - args.earlier;
  const bool scaled = args.keys == ConformerKeys::scaled;
  const double key_scale = scaled ? std::log(1 + std::numbers::e) / std::numbers::ln2 : 1;
  const std::int64_t earliest = args.earlier - (scaled ? 1 : 0);
  std::vector<double> weights;
  double total = 0;
  for (std::int64_t key = first; key < first + args.context(); ++key) {
    const std::int64_t distance = query - key;
    const bool near = distance >= 0 ? distance <= earliest : -distance < args.later;
    const bool inside = clip.contains(key);
    const double content = product(layer.key, key, inside ? key_scale : 0).value();
    const std::int64_t position = args.earlier - distance;
    const bool has_position = near && position < args.positions;
    const double relative = has_position ? by_position[static_cast<std::size_t>(position)] : 0;
    weights.push_back(near && inside ? std::exp(3 * std::tanh((content + relative) / 3)) : 0);
    total += weights.back();
  }
  for (std::int64_t i = 0; i < kLocalDim; ++i) {
    out.push_back(sum_of(args.context(), [&](std::int64_t j) {
                    const bool inside = clip.contains(first + j);
                    return times(
                        weights[static_cast<std::size_t>(j)] / total,
                        inside ? value_at(layer.value, first + j, head * kLocalDim + i) : 0);
                  }).value());
  }
}

std::vector<double> context_of(const LocalLayer& layer) {
  std::vector<double> out;
  std::int64_t begin = 0;
  for (const std::int64_t rows : kLocalClips) {
    for (std::int64_t query = begin; query < begin + rows; ++query) {
      for (std::int64_t head = 0; head < kLocalHeads; ++head) {
        add_context(layer, {begin, begin + rows}, query, head, out);
      }
    }
    begin += rows;
  }
  return out;
}

/// Compares the kernel with the definition, values and FLOPs.
void check_local_attention(const LocalLayer& layer) {
  std::vector<float> scratch(static_cast<std::size_t>(layer.args.scratch_floats()));
  std::vector<float> out(kLocalRows * kLocalWidth);
  const std::int64_t flops = local_attention(layer.args, scratch.data(), out.data());
  (void)CountingScalar::take_operations();
  const std::vector<double> expected = context_of(layer);
  check_definition(out, flops, expected);
}

}  // namespace

TEST_CASE("attention of chunks is that of the rows before each row of its clip") {
  for (const std::int64_t later : {0, 2}) {
    CAPTURE(later);
    check_local_attention(LocalLayer(4, 4, later));
  }
}

TEST_CASE("attention of plain keys sees one row more, each with a position of its own") {
  check_local_attention(LocalLayer(4, 3, 0, ConformerKeys::plain));
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

TEST_CASE("a convolution of later rows reads its row and the two behind it") {
  const GridArguments clip{5, 3, 2, 0};
  const auto grid = random_floats(5 * 3 * 2, 6);
  std::vector<float> later(3 * 2 * 18);
  gather_places(clip, grid.data(), later.data());
  // Without the first row, and with a row of zeros behind, the centred one reads those behind row
  // 0.
  std::vector<float> centred(3 * 2 * 18);
  std::vector<float> shifted(grid.begin() + 6, grid.end());
  shifted.resize(grid.size());
  gather_places({5, 3, 2}, shifted.data(), centred.data());
  const auto tap = [](const std::vector<float>& gathered, std::size_t place, std::size_t at) {
    return gathered[place * 18 + at];
  };
  for (std::size_t place = 0; place < 6; ++place) {
    for (std::size_t at = 3; at < 9; ++at) {  // the last two lines of taps of the first channel
      CHECK(tap(later, place, at) == tap(centred, place, at));
    }
  }
  CHECK(tap(later, 0, 1) == grid[0]);  // above the middle: the row itself
}

// transformers, Gemma3nAudioCumulativeGroupNorm.
TEST_CASE("a norm over earlier rows has the mean and the variance of all rows so far") {
  const std::vector<float> x{1, 3, 5, 7};  // two rows of two channels
  const std::vector<float> weight{2, 1};
  std::vector<float> out(4);
  cumulative_norm({2, 2, weight.data(), nullptr, 0}, 2, x.data(), out.data());
  // Means 2 and 4. Squares of row 0 around 2: 1 + 1; of row 1 around 4: 1 + 9.
  const double deviation = std::sqrt((2 + 10) / 4.0);
  CHECK(static_cast<double>(out[0]) == doctest::Approx(-2));
  CHECK(static_cast<double>(out[1]) == doctest::Approx(1));
  CHECK(static_cast<double>(out[2]) == doctest::Approx(2 / deviation));
  CHECK(static_cast<double>(out[3]) == doctest::Approx(3 / deviation));
}
