#include "replicas.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <numeric>
#include <utility>

#include "headroom/error.h"

namespace headroom::measured {
namespace {

/// Keeps a replica's share of values [batch, …].
template <class Value>
void keep_share(std::vector<Value>& values, GroupPosition replica) {
  const auto share = std::ssize(values) / replica.ranks;
  const auto begin = values.begin() + replica.rank * share;
  values = std::vector<Value>(begin, begin + share);
}

TokenInputs share_of(TokenInputs tokens, GroupPosition replica) {
  tokens.batch /= replica.ranks;
  keep_share(tokens.ids, replica);
  keep_share(tokens.type_ids, replica);
  keep_share(tokens.key_mask, replica);
  keep_share(tokens.global_mask, replica);
  keep_share(tokens.position_shifts, replica);
  return tokens;
}

/// Values of all sequences in one of the dimensions before them.
std::ptrdiff_t block_size(const NamedTensor& tensor) {
  const auto from = tensor.shape.begin() + static_cast<std::ptrdiff_t>(tensor.batch_dimension);
  return std::accumulate(from, tensor.shape.end(), std::ptrdiff_t{1}, std::multiplies<>{});
}

}  // namespace

ModelInputs inputs_of_replica(ModelInputs whole, GroupPosition replica) {
  if (replica.ranks == 1) return whole;
  if (whole.images || whole.audio) {
    throw Error(ErrorCode::invalid_input, "no replicas share images or sound; fit counts them", {},
                "leave out data parallelism");
  }
  whole.main = share_of(std::move(whole.main), replica);
  if (whole.encoder) whole.encoder = share_of(*std::move(whole.encoder), replica);
  keep_share(whole.pixel_values, replica);
  keep_share(whole.hidden_states, replica);
  keep_share(whole.audio_features, replica);
  keep_share(whole.encoder_hidden_states, replica);
  return whole;
}

Workload workload_of_replica(Workload whole, GroupPosition replica) {
  whole.batch_size /= replica.ranks;
  return whole;
}

NamedTensor output_of_replica(const NamedTensor& whole, GroupPosition replica) {
  NamedTensor own{whole.name, whole.shape, {}, whole.batch_dimension};
  own.shape[own.batch_dimension] /= replica.ranks;
  const std::ptrdiff_t share = block_size(own);
  for (auto block = whole.values.begin(); block != whole.values.end(); block += block_size(whole)) {
    const auto begin = block + replica.rank * share;
    own.values.insert(own.values.end(), begin, begin + share);
  }
  return own;
}

void append_replica(const NamedTensor& next, NamedTensor& whole) {
  const std::ptrdiff_t size = block_size(whole);
  const std::ptrdiff_t added = block_size(next);
  std::vector<float> values;
  auto to_add = next.values.begin();
  for (auto block = whole.values.begin(); block != whole.values.end(); block += size) {
    values.insert(values.end(), block, block + size);
    values.insert(values.end(), to_add, to_add + added);
    to_add += added;
  }
  whole.shape[whole.batch_dimension] += next.shape[whole.batch_dimension];
  whole.values = std::move(values);
}

void append_replica(NamedTensor next, std::vector<NamedTensor>& all) {
  const auto known = std::ranges::find(all, next.name, &NamedTensor::name);
  if (known == all.end()) {
    all.push_back(std::move(next));
  } else {
    append_replica(next, *known);
  }
}

}  // namespace headroom::measured
