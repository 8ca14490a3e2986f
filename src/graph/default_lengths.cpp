#include "default_lengths.h"

#include <algorithm>

namespace headroom::detail {

std::optional<std::int64_t> positions_of(const PositionSpec& position) {
  if (position.max_position_embeddings == 0) return std::nullopt;
  return position.max_position_embeddings - position.offset;
}

std::int64_t default_enc_length(const ModelSpec& spec) {
  if (spec.denoiser) return spec.denoiser->text.default_tokens;
  // Speech is padded to the window that the model was trained on.
  if (spec.embedding.audio) return spec.encoder_positions().max_position_embeddings;
  const std::int64_t most = positions_of(spec.encoder_positions()).value_or(kDefaultLength);
  return std::max<std::int64_t>(1, std::min(kDefaultLength, most));
}

}  // namespace headroom::detail
