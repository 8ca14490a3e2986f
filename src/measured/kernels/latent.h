// Pieces of multi-head latent attention (arXiv 2405.04434, 2.1).
#pragma once

#include <cstdint>

namespace headroom::measured {

struct LatentArguments {
  std::int64_t rows = 0;
  std::int64_t heads = 0;
  std::int64_t nope_dim = 0;    ///< of a head's query and key, what does not turn
  std::int64_t rope_dim = 0;    ///< what turns
  std::int64_t value_dim = 0;   ///< of a head's value
  std::int64_t latent_dim = 0;  ///< of the latent vector, behind which the turned key stands
};

/// out [rows, heads·(nope + rope) | heads·(nope + rope) | heads·value] from queries
/// [rows, heads, nope + rope], key_value [rows, heads, nope + value] and latents
/// [rows, latent + rope].
void concat_latent(const LatentArguments& args, const float* queries, const float* key_value,
                   const float* latents, float* out);

/// out [rows, heads, latent + rope]: every head's nope dimensions times its rows of
/// weight [heads, nope + value, latent]; the turned ones follow. Returns the product's operations.
std::int64_t queries_to_latent(const LatentArguments& args, const float* weight,
                               const float* queries, float* out);

/// out [rows, heads, value] = contexts [rows, heads, latent] times the values' rows of `weight`.
/// Returns the product's operations.
std::int64_t contexts_from_latent(const LatentArguments& args, const float* weight,
                                  const float* contexts, float* out);

}  // namespace headroom::measured
