#include "pooling.h"

#include <algorithm>
#include <cmath>
#include <span>

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

/// Index of the last id for which `wanted` is true; 0 if there is none.
template <class Wanted>
std::int64_t last_index(std::span<const std::int64_t> ids, const Wanted& wanted) {
  const auto found = std::find_if(ids.rbegin(), ids.rend(), wanted);
  return found == ids.rend() ? 0 : ids.rend() - found - 1;
}

/// The token that stands for sequence number `sequence`.
std::int64_t chosen_token(const PoolingArguments& args, TokenPooling pooling,
                          std::int64_t sequence) {
  std::span<const std::int64_t> ids;  // none in a tower, which pools by place
  if (args.ids != nullptr) {
    ids = {args.ids + sequence * args.seq_len, static_cast<std::size_t>(args.seq_len)};
  }
  switch (pooling) {
    case TokenPooling::greatest_id:
      return std::ranges::max_element(ids) - ids.begin();
    case TokenPooling::first_of_id: {
      const auto found = std::ranges::find(ids, args.token_id);
      return found == ids.end() ? 0 : found - ids.begin();
    }
    case TokenPooling::last_of_id:
      return last_index(ids, [&](std::int64_t id) { return id == args.token_id; });
    case TokenPooling::last_of_other_id:
      return last_index(ids, [&](std::int64_t id) { return id != args.token_id; });
    case TokenPooling::second:
      return 1;
    case TokenPooling::last:
      return args.seq_len - 1;
    case TokenPooling::first:
    case TokenPooling::mean:
    case TokenPooling::first_and_mean:
      break;
  }
  return 0;
}

}  // namespace

void pool_tokens(const PoolingArguments& args, TokenPooling pooling, float* out) {
  for (std::int64_t sequence = 0; sequence < args.batch; ++sequence) {
    const float* const first = args.x + sequence * args.seq_len * args.width;
    switch (pooling) {
      case TokenPooling::first:
      case TokenPooling::second:
      case TokenPooling::last:
      case TokenPooling::first_of_id:
      case TokenPooling::last_of_id:
      case TokenPooling::last_of_other_id:
      case TokenPooling::greatest_id:
        std::copy_n(first + chosen_token(args, pooling, sequence) * args.width, args.width,
                    out + sequence * args.width);
        break;
      case TokenPooling::mean:
        mean_from(args, sequence, args.prefix, out + sequence * args.width);
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
