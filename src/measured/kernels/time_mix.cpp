#include "time_mix.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "lane_block.h"
#include "parallel.h"
#include "tile_multiply.h"
#include "vector_math.h"

namespace headroom::measured {
namespace {

using simd::Floats;

/// One head in one sequence, with its scratch by key dimension and by value dimension.
struct MixHead {
  const TimeMixArguments& args;
  std::int64_t item;
  std::int64_t head;
  float* decay;
  float* removal;
  float* removed;  ///< the removal, times its rate
  float* key;
  float* read;  ///< of the state along the removal

  [[nodiscard]] float* state() const {
    return args.state + (item * args.heads + head) * args.key_dim * args.value_dim;
  }
  /// First element of this head in rows of keys.
  [[nodiscard]] std::int64_t keys_of(std::int64_t token) const {
    return (token * args.heads + head) * args.key_dim;
  }
  [[nodiscard]] std::int64_t values_of(std::int64_t token) const {
    return (token * args.heads + head) * args.value_dim;
  }
};

/// The key that takes the place of what the state had.
Floats replaced_key(Floats key, Floats rate, Floats replacement) {
  return key * (1.0F + (rate - 1.0F) * replacement);
}

/// Decays, the removal's vector and the keys of one token.
void set_vectors(const MixHead& at, std::int64_t token) {
  constexpr float kDecayFactor = -0.6065306597126334F;  // -e^(-1/2)
  constexpr float kEps = 1e-12F;                        // torch.nn.functional.normalize
  const TimeMixArguments& args = at.args;
  const std::int64_t first = at.keys_of(token);
  const std::int64_t own = at.head * args.key_dim;
  for_lanes(args.key_dim, [&](const Lanes& keys) {
    const Floats key = keys.load(args.key + first);
    const Floats rate = simd::sigmoid(keys.load(args.rate + first));
    keys.store(at.decay, simd::exp(kDecayFactor * simd::sigmoid(keys.load(args.decay + first))));
    keys.store(at.key, replaced_key(key, rate, keys.load(args.second + own)));
    keys.store(at.removal, key * keys.load(args.first + own));
  });
  const float length = std::sqrt(dot(at.removal, at.removal, args.key_dim));
  const float scale = 1.0F / std::max(length, kEps);
  for_lanes(args.key_dim, [&](const Lanes& keys) {
    const Floats removal = scale * keys.load(at.removal);
    keys.store(at.removal, removal);
    keys.store(at.removed, removal * simd::sigmoid(keys.load(args.rate + first)));
  });
}

/// Reads the state along the removal, into `read`.
template <std::size_t vectors>
std::int64_t read_removed(const MixHead& at, const LaneBlock<vectors>& columns) {
  std::array<Floats, vectors> read = {};
  const float* row = at.state();
  for (std::int64_t i = 0; i < at.args.key_dim; ++i, row += at.args.value_dim) {
    const float removal = at.removal[i];
    simd::unroll<vectors>([&](auto v) { read[v] += removal * columns.load(row, v); });
  }
  simd::unroll<vectors>([&](auto v) { columns.store(at.read, read[v], v); });
  return 2 * at.args.key_dim * columns.count;
}

/// Decays the state, takes what was read from it, adds the key's value, and reads it at the
/// receptance.
template <std::size_t vectors>
std::int64_t replace_columns(const MixHead& at, std::int64_t token,
                             const LaneBlock<vectors>& columns) {
  const TimeMixArguments& args = at.args;
  const float* const receptance = args.receptance + at.keys_of(token);
  std::array<Floats, vectors> value;
  std::array<Floats, vectors> before;
  std::array<Floats, vectors> sum = {};
  simd::unroll<vectors>(
      [&](auto v) { value[v] = columns.load(args.value + at.values_of(token), v); });
  simd::unroll<vectors>([&](auto v) { before[v] = columns.load(at.read, v); });
  float* row = at.state();
  for (std::int64_t i = 0; i < args.key_dim; ++i, row += args.value_dim) {
    const float removed = at.removed[i];
    const float decay = at.decay[i];
    const float key = at.key[i];
    const float read = receptance[i];
    simd::unroll<vectors>([&](auto v) {
      const Floats state = decay * columns.load(row, v) - removed * before[v] + key * value[v];
      columns.store(row, state, v);
      sum[v] += read * state;
    });
  }
  simd::unroll<vectors>([&](auto v) { columns.store(args.out + at.values_of(token), sum[v], v); });
  return 6 * args.key_dim * columns.count;
}

std::int64_t two_vector_token(const MixHead& at, std::int64_t token) {
  std::int64_t flops = 0;
  set_vectors(at, token);
  for_blocks(at.args.value_dim, [&](const auto& columns) {
    flops += read_removed(at, columns);
    flops += replace_columns(at, token, columns);
  });
  return flops;
}

/// Reads the state and the token's own value at the receptance, decays it and adds that value.
template <std::size_t vectors>
std::int64_t add_columns(const MixHead& at, std::int64_t token, const LaneBlock<vectors>& columns) {
  const TimeMixArguments& args = at.args;
  const float* const receptance = args.receptance + at.keys_of(token);
  const float* const keys = args.key + at.keys_of(token);
  const float* const bonus = args.second + at.head * args.key_dim;
  std::array<Floats, vectors> value;
  std::array<Floats, vectors> sum = {};
  simd::unroll<vectors>(
      [&](auto v) { value[v] = columns.load(args.value + at.values_of(token), v); });
  float* row = at.state();
  for (std::int64_t i = 0; i < args.key_dim; ++i, row += args.value_dim) {
    const float decay = at.decay[i];
    const float key = keys[i];
    const float read = receptance[i];
    const float own = bonus[i];
    simd::unroll<vectors>([&](auto v) {
      const Floats added = key * value[v];
      const Floats state = columns.load(row, v);
      sum[v] += read * (own * added + state);
      columns.store(row, added + decay * state, v);
    });
  }
  simd::unroll<vectors>([&](auto v) { columns.store(args.out + at.values_of(token), sum[v], v); });
  return 4 * args.key_dim * columns.count;
}

std::int64_t addition_token(const MixHead& at, std::int64_t token) {
  std::int64_t flops = 0;
  for_blocks(at.args.value_dim,
             [&](const auto& columns) { flops += add_columns(at, token, columns); });
  return flops;
}

/// Decays of a head that adds, which no token changes.
void set_fixed_decays(const MixHead& at) {
  const float* const trained = at.args.first + at.head * at.args.key_dim;
  for_lanes(at.args.key_dim, [&](const Lanes& keys) {
    keys.store(at.decay, simd::exp(-simd::exp(keys.load(trained))));
  });
}

}  // namespace

std::int64_t time_mix(const TimeMixArguments& args, float* scratch) {
  std::int64_t flops = 0;
  const std::int64_t places = args.batch * args.heads;
  const std::int64_t own = args.scratch_floats() / places;
  const bool adds = args.update == StateUpdate::addition;
#pragma omp parallel for schedule(static) reduction(+ : flops)
  for (std::int64_t place = 0; place < places; ++place) {
    float* const decay = scratch + place * own;
    const MixHead at{args,
                     place / args.heads,
                     place % args.heads,
                     decay,
                     decay + args.key_dim,
                     decay + 2 * args.key_dim,
                     decay + 3 * args.key_dim,
                     decay + 4 * args.key_dim};
    if (adds) set_fixed_decays(at);
    for (std::int64_t step = 0; step < args.seq_len; ++step) {
      const std::int64_t token = at.item * args.seq_len + step;
      flops += adds ? addition_token(at, token) : two_vector_token(at, token);
    }
  }
  return flops;
}

void add_value_bonus(const ValueBonusArguments& args) {
  const std::int64_t places = args.rows * args.heads;
#pragma omp parallel for schedule(static) if (places * args.key_dim >= kSerialElements)
  for (std::int64_t place = 0; place < places; ++place) {
    const std::int64_t first = place * args.key_dim;
    const std::int64_t own = place % args.heads * args.key_dim;
    Floats terms = {};
    for_lanes(args.key_dim, [&](const Lanes& keys) {
      const Floats rate = simd::sigmoid(keys.load(args.rate + first));
      const Floats key =
          replaced_key(keys.load(args.key + first), rate, keys.load(args.replacement + own));
      terms += keys.load(args.receptance + first) * key * keys.load(args.bonus + own);
    });
    const float* const value = args.value + place * args.value_dim;
    float* const out = args.out + place * args.value_dim;
    add_scaled(simd::sum(terms), value, args.value_dim, out);
  }
}

}  // namespace headroom::measured
