#include "time_mix.h"

#include <algorithm>
#include <cmath>

#include "parallel.h"
#include "scalar_math.h"

namespace headroom::measured {
namespace {

/// One head in one sequence, with its scratch by key dimension and by value dimension.
struct MixHead {
  const TimeMixArguments& args;
  std::int64_t item;
  std::int64_t head;
  float* decay;
  float* removal;
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
float replaced_key(float key, float rate, float replacement) {
  return key * (1.0F + (rate - 1.0F) * replacement);
}

/// Decays, the removal's vector and the keys of one token.
void set_vectors(const MixHead& at, std::int64_t token) {
  constexpr float kDecayFactor = -0.6065306597126334F;  // -e^(-1/2)
  constexpr float kEps = 1e-12F;                        // torch.nn.functional.normalize
  const TimeMixArguments& args = at.args;
  const std::int64_t first = at.keys_of(token);
  const std::int64_t own = at.head * args.key_dim;
  float squares = 0;
  for (std::int64_t i = 0; i < args.key_dim; ++i) {
    const float key = args.key[first + i];
    at.decay[i] = std::exp(kDecayFactor * sigmoid(args.decay[first + i]));
    at.key[i] = replaced_key(key, sigmoid(args.rate[first + i]), args.second[own + i]);
    at.removal[i] = key * args.first[own + i];
    squares += at.removal[i] * at.removal[i];
  }
  const float scale = 1.0F / std::max(std::sqrt(squares), kEps);
  for (std::int64_t i = 0; i < args.key_dim; ++i) at.removal[i] *= scale;
}

/// Reads the state along the removal, into `read`.
std::int64_t read_removed(const MixHead& at) {
  const std::int64_t width = at.args.value_dim;
  std::fill_n(at.read, width, 0.0F);
  const float* row = at.state();
  for (std::int64_t i = 0; i < at.args.key_dim; ++i, row += width) {
    for (std::int64_t j = 0; j < width; ++j) at.read[j] += at.removal[i] * row[j];
  }
  return 2 * at.args.key_dim * width;
}

std::int64_t two_vector_token(const MixHead& at, std::int64_t token) {
  const TimeMixArguments& args = at.args;
  const std::int64_t width = args.value_dim;
  set_vectors(at, token);
  std::int64_t flops = read_removed(at);
  const float* const receptance = args.receptance + at.keys_of(token);
  const float* const rate = args.rate + at.keys_of(token);
  const float* const value = args.value + at.values_of(token);
  float* const out = args.out + at.values_of(token);
  std::fill_n(out, width, 0.0F);
  float* row = at.state();
  for (std::int64_t i = 0; i < args.key_dim; ++i, row += width, flops += 6 * width) {
    const float removed = sigmoid(rate[i]) * at.removal[i];
    for (std::int64_t j = 0; j < width; ++j) {
      row[j] = at.decay[i] * row[j] - removed * at.read[j] + at.key[i] * value[j];
      out[j] += receptance[i] * row[j];
    }
  }
  return flops;
}

std::int64_t addition_token(const MixHead& at, std::int64_t token) {
  const TimeMixArguments& args = at.args;
  const std::int64_t width = args.value_dim;
  const std::int64_t own = at.head * args.key_dim;
  const float* const receptance = args.receptance + at.keys_of(token);
  const float* const key = args.key + at.keys_of(token);
  const float* const value = args.value + at.values_of(token);
  float* const out = args.out + at.values_of(token);
  std::fill_n(out, width, 0.0F);
  float* row = at.state();
  std::int64_t flops = 0;
  for (std::int64_t i = 0; i < args.key_dim; ++i, row += width, flops += 4 * width) {
    const float decay = std::exp(-std::exp(args.first[own + i]));
    for (std::int64_t j = 0; j < width; ++j) {
      const float added = key[i] * value[j];
      out[j] += receptance[i] * (args.second[own + i] * added + row[j]);
      row[j] = added + decay * row[j];
    }
  }
  return flops;
}

}  // namespace

std::int64_t time_mix(const TimeMixArguments& args, float* scratch) {
  std::int64_t flops = 0;
  const std::int64_t places = args.batch * args.heads;
  const std::int64_t own = 3 * args.key_dim + args.value_dim;
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
                     decay + 3 * args.key_dim};
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
    float sum = 0;
    for (std::int64_t i = 0; i < args.key_dim; ++i) {
      const float key = replaced_key(args.key[first + i], sigmoid(args.rate[first + i]),
                                     args.replacement[own + i]);
      sum += args.receptance[first + i] * key * args.bonus[own + i];
    }
    const float* const value = args.value + place * args.value_dim;
    float* const out = args.out + place * args.value_dim;
    for (std::int64_t j = 0; j < args.value_dim; ++j) out[j] += sum * value[j];
  }
}

}  // namespace headroom::measured
