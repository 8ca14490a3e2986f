#include "pooling.h"

#include <algorithm>
#include <cmath>

namespace headroom::measured {

namespace {

/// Mean of the tokens of one sequence from `first` on.
void mean_from(const PoolingArguments& args, std::int64_t sequence, std::int64_t first,
               float* out) {
  std::fill_n(out, args.width, 0.0F);
  std::int64_t count = 0;
  for (std::int64_t token = first; token < args.seq_len; ++token) {
    const std::int64_t at = sequence * args.seq_len + token;
    if (args.mask != nullptr && args.mask[at] == 0) continue;
    ++count;
    for (std::int64_t i = 0; i < args.width; ++i) out[i] += args.x[at * args.width + i];
  }
  const float share = 1.0F / static_cast<float>(std::max<std::int64_t>(1, count));
  for (std::int64_t i = 0; i < args.width; ++i) out[i] *= share;
}

/// The token that stands for sequence number `sequence`.
std::int64_t chosen_token(const PoolingArguments& args, TokenPooling pooling,
                          std::int64_t sequence) {
  const std::int64_t* const ids = args.ids + sequence * args.seq_len;
  const std::int64_t* const end = ids + args.seq_len;
  const std::int64_t* const token = pooling == TokenPooling::greatest_id
                                        ? std::max_element(ids, end)
                                        : std::find(ids, end, args.token_id);
  return token == end ? 0 : token - ids;
}

}  // namespace

void pool_tokens(const PoolingArguments& args, TokenPooling pooling, float* out) {
  for (std::int64_t sequence = 0; sequence < args.batch; ++sequence) {
    const float* const first = args.x + sequence * args.seq_len * args.width;
    switch (pooling) {
      case TokenPooling::first:
        std::copy_n(first, args.width, out + sequence * args.width);
        break;
      case TokenPooling::second:
        std::copy_n(first + args.width, args.width, out + sequence * args.width);
        break;
      case TokenPooling::last:
        std::copy_n(first + (args.seq_len - 1) * args.width, args.width,
                    out + sequence * args.width);
        break;
      case TokenPooling::first_of_id:
      case TokenPooling::greatest_id:
        std::copy_n(first + chosen_token(args, pooling, sequence) * args.width, args.width,
                    out + sequence * args.width);
        break;
      case TokenPooling::mean:
        mean_from(args, sequence, 0, out + sequence * args.width);
        break;
      case TokenPooling::first_and_mean:
        std::copy_n(first, args.width, out + 2 * sequence * args.width);
        mean_from(args, sequence, args.prefix, out + (2 * sequence + 1) * args.width);
        break;
    }
  }
}

void scale_channels(ChannelScale::Statistics statistics, const std::vector<const float*>& values,
                    std::int64_t width, float* row) {
  constexpr float kBatchNormEps = 1e-5F;  // torch.nn.BatchNorm1d
  for (std::int64_t i = 0; i < width; ++i) {
    switch (statistics) {
      case ChannelScale::Statistics::none:
        row[i] *= values[0][i];
        break;
      case ChannelScale::Statistics::mean_and_factor:
        row[i] = (row[i] - values[0][i]) * values[1][i];
        break;
      case ChannelScale::Statistics::batch_norm:
        row[i] = (row[i] - values[2][i]) / std::sqrt(values[3][i] + kBatchNormEps) * values[0][i] +
                 values[1][i];
        break;
    }
  }
}

}  // namespace headroom::measured
