// Pooling of sequences, and scales of channels.
#pragma once

#include <cstdint>
#include <vector>

#include "headroom/op.h"

namespace headroom::measured {

struct PoolingArguments {
  std::int64_t batch = 1;
  std::int64_t seq_len = 0;
  std::int64_t width = 0;
  const float* x = nullptr;            ///< [batch, seq_len, width]
  const std::uint8_t* mask = nullptr;  ///< [batch, seq_len], 0 for padding; null for none
  const std::int64_t* ids = nullptr;   ///< [batch, seq_len]; of poolings by id
  std::int64_t token_id = 0;
  std::int64_t prefix = 0;  ///< tokens before those whose mean is taken
};

/// Pools each sequence to `out` [batch, width], or [batch, 2·width] for first_and_mean. A mean
/// leaves padding out. A sequence without the wanted id pools its first token, as the reference
/// code does.
void pool_tokens(const PoolingArguments& args, TokenPooling pooling, float* out);

/// Scales a row in place by `values`: its weight; or mean and factor; or weight, bias, mean and
/// variance of a batch norm.
void scale_channels(ChannelScale::Statistics statistics, const std::vector<const float*>& values,
                    std::int64_t width, float* row);

}  // namespace headroom::measured
