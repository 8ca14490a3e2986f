#include "gated_bias.h"

#include <cmath>
#include <numeric>

#include "headroom/op.h"
#include "parallel.h"

namespace headroom::measured {
namespace {

/// Sigmoid of the sum of gate `gate`'s values for a head's part `x` of a row.
float gate_of(const GatedBiasArguments& args, const float* x, std::int64_t gate) {
  constexpr std::int64_t kSummed = GatedPositionBias::kSummed;
  float sum = 0;
  for (std::int64_t value = gate * kSummed; value < (gate + 1) * kSummed; ++value) {
    const float* const row = args.weight + value * args.head_dim;
    sum += std::inner_product(x, x + args.head_dim, row, args.weight_bias[value]);
  }
  return 1 / (1 + std::exp(-sum));
}

/// The factor of a query's biases in one head.
float factor_of(const GatedBiasArguments& args, const float* x, std::int64_t head) {
  return gate_of(args, x, 0) * (gate_of(args, x, 1) * args.scale[head] - 1) + 2;
}

/// Fills row `row` of [batch, heads, tokens].
void fill_row(const GatedBiasArguments& args, std::int64_t row, float* out) {
  const std::int64_t query = row % args.tokens;
  const std::int64_t head = row / args.tokens % args.heads;
  const std::int64_t sequence = row / args.tokens / args.heads;
  const float* const x =
      args.input + ((sequence * args.tokens + query) * args.heads + head) * args.head_dim;
  const float* const biases = args.bias + (head * args.tokens + query) * args.tokens;
  const float factor = factor_of(args, x, head);
  for (std::int64_t key = 0; key < args.tokens; ++key) out[key] = factor * biases[key];
}

}  // namespace

std::int64_t gated_position_bias(const GatedBiasArguments& args, float* out) {
  const std::int64_t rows = args.batch * args.heads * args.tokens;
#pragma omp parallel if (rows * args.tokens > kSerialElements)
  {
    const Range range = thread_range(rows);
    for (std::int64_t row = range.begin; row < range.end; ++row) {
      fill_row(args, row, out + row * args.tokens);
    }
  }
  return 2 * rows * args.head_dim * GatedPositionBias::kValues;
}

}  // namespace headroom::measured
