#include "block_choice.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <vector>

#include "parallel.h"

namespace headroom::measured {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// The best of a row's keys before `visible` in each block, or infinity in the last blocks.
std::vector<float> block_scores(const BlockChoice& choice, std::int64_t visible, const float* row) {
  const std::int64_t blocks = (visible + choice.block_size - 1) / choice.block_size;
  std::vector<float> scores(static_cast<std::size_t>(blocks), kInfinity);
  for (std::int64_t block = 0; block < blocks - choice.local; ++block) {
    const float* const first = row + block * choice.block_size;
    scores[static_cast<std::size_t>(block)] = *std::max_element(first, first + choice.block_size);
  }
  return scores;
}

/// Indices of the best blocks.
std::vector<std::int64_t> best_blocks(const BlockChoice& choice, const std::vector<float>& scores) {
  std::vector<std::int64_t> blocks(scores.size());
  std::iota(blocks.begin(), blocks.end(), std::int64_t{0});
  const auto score = [&](std::int64_t block) { return scores[static_cast<std::size_t>(block)]; };
  const std::int64_t chosen = std::min(choice.blocks, std::ssize(blocks));
  std::ranges::nth_element(blocks, blocks.begin() + chosen, [&](std::int64_t a, std::int64_t b) {
    return score(a) != score(b) ? score(a) > score(b) : a < b;
  });
  blocks.resize(static_cast<std::size_t>(chosen));
  return blocks;
}

void choose_of_row(const BlockChoice& choice, std::int64_t keys, std::int64_t visible, float* row) {
  const std::vector<std::int64_t> best = best_blocks(choice, block_scores(choice, visible, row));
  std::fill_n(row, keys, -kInfinity);
  for (const std::int64_t block : best) {
    const std::int64_t first = block * choice.block_size;
    std::fill(row + first, row + std::min(first + choice.block_size, visible), 0.0F);
  }
}

}  // namespace

void choose_blocks(const IndexerArguments& args, const BlockChoice& choice, float* scores) {
  const std::int64_t rows = args.batch * args.heads * args.queries;
#pragma omp parallel for schedule(static) if (rows * args.keys >= kSerialElements)
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t visible = std::min(args.keys, args.past + row % args.queries + 1);
    choose_of_row(choice, args.keys, visible, scores + row * args.keys);
  }
}

}  // namespace headroom::measured
