// Kernels of multi-head latent attention (MLA, arXiv 2405.04434, 2.1).
#pragma once

#include <cstdint>

namespace headroom::measured {

struct LatentArguments {
  std::int64_t rows = 0;
  std::int64_t heads = 0;
  std::int64_t nope_dim = 0;    ///< non-rotary dimensions of a head's query and key
  std::int64_t rope_dim = 0;    ///< rotary dimensions
  std::int64_t value_dim = 0;   ///< dimensions of a head's value
  std::int64_t latent_dim = 0;  ///< dimensions of the latent; the rotary key follows it
};

/// Builds the rows of plain attention,
///   out [rows, heads·(nope + rope) | heads·(nope + rope) | heads·value],
/// from queries [rows, heads, nope + rope], key_value [rows, heads, nope + value] and latents
/// [rows, latent + rope].
void concat_latent(const LatentArguments& args, const float* queries, const float* key_value,
                   const float* latents, float* out);

/// Absorbs W^UK into the queries: out [rows, heads, latent + rope] = every head's nope dimensions
/// times its rows of weight [heads, nope + value, latent], then its rotary dimensions. Returns the
/// FLOPs of the matrix product.
std::int64_t queries_to_latent(const LatentArguments& args, const float* weight,
                               const float* queries, float* out);

/// Applies W^UV to the contexts: out [rows, heads, value] = contexts [rows, heads, latent] times
/// the value rows of `weight`. Returns the FLOPs of the matrix product.
std::int64_t contexts_from_latent(const LatentArguments& args, const float* weight,
                                  const float* contexts, float* out);

}  // namespace headroom::measured
