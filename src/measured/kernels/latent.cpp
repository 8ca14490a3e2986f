#include "latent.h"

#include <algorithm>

#include "parallel.h"
#include "tile_multiply.h"

namespace headroom::measured {

void concat_latent(const LatentArguments& args, const float* queries, const float* key_value,
                   const float* latents, float* out) {
  const std::int64_t head_dim = args.nope_dim + args.rope_dim;
  const std::int64_t expanded = args.nope_dim + args.value_dim;
  const std::int64_t width = args.heads * (2 * head_dim + args.value_dim);
#pragma omp parallel for if (args.rows * width >= kSerialElements) schedule(static)
  for (std::int64_t row = 0; row < args.rows; ++row) {
    float* to = std::copy_n(queries + row * args.heads * head_dim, args.heads * head_dim,
                            out + row * width);
    const float* const row_key_value = key_value + row * args.heads * expanded;
    const float* const rope_key =
        latents + row * (args.latent_dim + args.rope_dim) + args.latent_dim;
    for (std::int64_t head = 0; head < args.heads; ++head) {
      to = std::copy_n(row_key_value + head * expanded, args.nope_dim, to);
      to = std::copy_n(rope_key, args.rope_dim, to);
    }
    for (std::int64_t head = 0; head < args.heads; ++head) {
      to = std::copy_n(row_key_value + head * expanded + args.nope_dim, args.value_dim, to);
    }
  }
}

std::int64_t queries_to_latent(const LatentArguments& args, const float* weight,
                               const float* queries, float* out) {
  const std::int64_t head_dim = args.nope_dim + args.rope_dim;
  const std::int64_t latent_head = args.latent_dim + args.rope_dim;
  const std::int64_t expanded = args.nope_dim + args.value_dim;
#pragma omp parallel for if (args.heads * args.nope_dim * args.latent_dim >= kSerialElements) \
    schedule(static)
  for (std::int64_t head = 0; head < args.heads; ++head) {
    const float* const from = queries + head * head_dim;
    float* const to = out + head * latent_head;
    const std::int64_t from_row = args.heads * head_dim;
    const std::int64_t to_row = args.heads * latent_head;
    multiply({from, from_row, 1}, {weight + head * expanded * args.latent_dim, args.latent_dim},
             {to, to_row}, {args.rows, args.latent_dim, args.nope_dim}, Output::overwrite);
    for (std::int64_t row = 0; row < args.rows; ++row) {
      std::copy_n(from + row * from_row + args.nope_dim, args.rope_dim,
                  to + row * to_row + args.latent_dim);
    }
  }
  return 2 * args.rows * args.heads * args.nope_dim * args.latent_dim;
}

std::int64_t contexts_from_latent(const LatentArguments& args, const float* weight,
                                  const float* contexts, float* out) {
  const std::int64_t expanded = args.nope_dim + args.value_dim;
#pragma omp parallel for collapse(2) \
    schedule(static) if (args.heads * args.value_dim * args.latent_dim >= kSerialElements)
  for (std::int64_t row = 0; row < args.rows; ++row) {
    for (std::int64_t head = 0; head < args.heads; ++head) {
      const float* const context = contexts + (row * args.heads + head) * args.latent_dim;
      const float* const rows = weight + (head * expanded + args.nope_dim) * args.latent_dim;
      float* const to = out + (row * args.heads + head) * args.value_dim;
      for (std::int64_t i = 0; i < args.value_dim; ++i) {
        to[i] = dot(context, rows + i * args.latent_dim, args.latent_dim);
      }
    }
  }
  return 2 * args.rows * args.heads * args.value_dim * args.latent_dim;
}

}  // namespace headroom::measured
