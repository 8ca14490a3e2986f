// Attention in chunks with global tokens against its definition (arXiv 2004.05150, section 3.1).
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "definitions.h"
#include "inputs.h"
#include "kernels/sliding_chunks.h"

using namespace headroom::measured;
using namespace headroom::measured::testing;

namespace {

constexpr std::int64_t kSequences = 2;
constexpr std::int64_t kLength = 13;  // padded to 16: three windows of 4 and one token
constexpr std::int64_t kPaddedLength = 16;
constexpr std::int64_t kHalfWindow = 2;
constexpr std::int64_t kHeadCount = 2;
constexpr std::int64_t kHeadDim = 4;
constexpr std::int64_t kContextWidth = kHeadCount * kHeadDim;
constexpr std::int64_t kRowWidth = 3 * kContextWidth;
constexpr float kScoreScale = 0.5F;

/// Global tokens of both sequences; the second has one fewer, and padding from token 10 on.
const std::set<std::int64_t> kGlobalTokens[kSequences] = {{0, 7}, {3}};
constexpr std::int64_t kReadTokens[kSequences] = {kLength, 10};

std::vector<std::uint8_t> mask_of(const auto& contains) {
  std::vector<std::uint8_t> mask;
  for (std::int64_t b = 0; b < kSequences; ++b) {
    for (std::int64_t i = 0; i < kLength; ++i) mask.push_back(contains(b, i) ? 1 : 0);
  }
  return mask;
}

bool sees(std::int64_t b, std::int64_t query, std::int64_t key) {
  const bool near = std::abs(query - key) <= kHalfWindow;
  return key < kReadTokens[b] && (near || kGlobalTokens[b].contains(key));
}

/// softmax(scale·q·K)·V of one query and head over the keys that it sees.
std::vector<double> attend(const std::vector<float>& rows, std::int64_t b, std::int64_t query,
                           std::int64_t head) {
  const auto value = [&](std::int64_t token, std::int64_t part, std::int64_t i) {
    const std::int64_t at =
        (b * kLength + token) * kRowWidth + part * kContextWidth + head * kHeadDim + i;
    return static_cast<double>(rows[static_cast<std::size_t>(at)]);
  };
  std::vector<double> sums(static_cast<std::size_t>(kHeadDim), 0.0);
  double total = 0;
  for (std::int64_t key = 0; key < kLength; ++key) {
    if (!sees(b, query, key)) continue;
    double score = 0;
    for (std::int64_t i = 0; i < kHeadDim; ++i) score += value(query, 0, i) * value(key, 1, i);
    const double weight = std::exp(static_cast<double>(kScoreScale) * score);
    total += weight;
    for (std::int64_t i = 0; i < kHeadDim; ++i) {
      sums[static_cast<std::size_t>(i)] += weight * value(key, 2, i);
    }
  }
  for (double& sum : sums) sum /= total;
  return sums;
}

/// Element `i` of Q, K or V (`part` 0, 1, 2) of one token and head; zeros behind the last token.
double element(const std::vector<float>& rows, std::int64_t b, std::int64_t token,
               std::int64_t part, std::int64_t i) {
  if (token < 0 || token >= kLength) return 0;
  return at(rows, (b * kLength + token) * kRowWidth + part * kContextWidth + i);
}

/// Global token `index` of a sequence, or one behind its end.
std::int64_t global_token(std::int64_t b, std::int64_t index) {
  const std::set<std::int64_t>& tokens = kGlobalTokens[b];
  if (index >= std::ssize(tokens)) return kLength;
  return *std::next(tokens.begin(), index);
}

/// Multiplies queries and keys in chunks of a window that overlap by half, and queries with the
/// global keys, as the reference code does (transformers, LongformerSelfAttention).
void multiply_in_chunks(const std::vector<float>& rows) {
  const auto multiply = [&](std::int64_t b, std::int64_t query, std::int64_t key) {
    for (std::int64_t head = 0; head < kHeadCount; ++head) {
      (void)sum_of(kHeadDim, [&](std::int64_t i) {
        return times(element(rows, b, query, 0, head * kHeadDim + i),
                     element(rows, b, key, 1, head * kHeadDim + i));
      });
    }
  };
  constexpr std::int64_t kWindow = 2 * kHalfWindow;
  for (std::int64_t b = 0; b < kSequences; ++b) {
    for (std::int64_t first = 0; first + kWindow <= kPaddedLength; first += kHalfWindow) {
      for (std::int64_t pair = 0; pair < kWindow * kWindow; ++pair) {
        multiply(b, first + pair / kWindow, first + pair % kWindow);
      }
    }
    for (std::int64_t query = 0; query < kPaddedLength; ++query) {
      for (std::int64_t i = 0; i < 2; ++i) multiply(b, query, global_token(b, i));
    }
  }
}

/// Contexts by the kernel's probabilities: those of a block with the keys of three blocks, of which
/// all outside a query's window are zeros, and those with the global keys.
std::vector<double> contexts_of_blocks(const std::vector<float>& rows, const ChunkArguments& args,
                                       const std::vector<float>& probabilities) {
  std::vector<double> out(static_cast<std::size_t>(kSequences * kLength * kContextWidth));
  for (std::int64_t row = 0; row < kSequences * kPaddedLength * kContextWidth; ++row) {
    const std::int64_t b = row / (kPaddedLength * kContextWidth);
    const std::int64_t query = row / kContextWidth % kPaddedLength;
    const std::int64_t feature = row % kContextWidth;
    const std::int64_t head = feature / kHeadDim;
    const std::int64_t first = ((b * kHeadCount + head) * kPaddedLength + query) * args.columns();
    CountingScalar sum = sum_of(3 * kHalfWindow, [&](std::int64_t i) {
      const std::int64_t key = query / kHalfWindow * kHalfWindow - kHalfWindow + i;
      const std::int64_t column = key - query + kHalfWindow;
      const bool inside = column >= 0 && column <= 2 * kHalfWindow;
      return times(inside ? at(probabilities, first + 2 + column) : 0,
                   element(rows, b, key, 2, feature));
    });
    for (std::int64_t i = 0; i < 2; ++i) {
      sum += times(at(probabilities, first + i), element(rows, b, global_token(b, i), 2, feature));
    }
    if (query >= kLength) continue;
    out[static_cast<std::size_t>((b * kLength + query) * kContextWidth + feature)] = sum.value();
  }
  return out;
}

ChunkArguments arguments(const std::vector<float>& rows, const std::vector<std::uint8_t>& read) {
  ChunkArguments args;
  AttentionArguments& block = args.rows.block;
  block.heads = block.kv_heads = kHeadCount;
  block.head_dim = block.value_head_dim = kHeadDim;
  block.queries = kHalfWindow;
  block.keys = 3 * kHalfWindow;
  block.scale = kScoreScale;
  args.rows.batch = kSequences;
  args.rows.tokens = kLength;
  args.rows.rows = rows.data();
  args.rows.row_width = kRowWidth;
  args.rows.key_mask = read.data();
  args.rows.least_blocks = 8;
  const auto global = mask_of([](auto b, auto i) { return kGlobalTokens[b].contains(i); });
  args.globals = global_positions(global, read.data(), kSequences, 2);
  return args;
}

}  // namespace

TEST_CASE("attention in chunks is attention in a window and to the global tokens") {
  const auto rows = random_floats(kSequences * kLength * kRowWidth, 3);
  const auto read = mask_of([](auto b, auto i) { return i < kReadTokens[b]; });
  const ChunkArguments args = arguments(rows, read);
  const auto floats = [](std::int64_t count) {
    return std::vector<float>(static_cast<std::size_t>(count));
  };
  auto padded = floats(args.rows.padded_floats());
  auto globals = floats(args.global_floats());
  auto scores = floats(kSequences * kHeadCount * kPaddedLength * args.columns());
  auto scratch = floats(std::max(args.score_scratch_floats(), args.context_scratch_floats()));
  auto out = floats(kSequences * kLength * kContextWidth);
  pad_rows(args.rows, padded.data());
  gather_global_keys(args, padded.data(), globals.data());
  const std::int64_t score_flops =
      chunk_scores(args, padded.data(), globals.data(), scratch.data(), scores.data());
  (void)CountingScalar::take_operations();
  multiply_in_chunks(rows);
  CHECK(score_flops == CountingScalar::take_operations());
  chunk_softmax(args, scores.data());
  const std::int64_t flops =
      chunk_context(args, padded.data(), globals.data(), scores.data(), scratch.data(), out.data());
  const std::vector<double> contexts = contexts_of_blocks(rows, args, scores);
  check_definition(out, flops, contexts);

  std::vector<double> expected;
  for (std::int64_t b = 0; b < kSequences; ++b) {
    for (std::int64_t query = 0; query < kLength; ++query) {
      for (std::int64_t head = 0; head < kHeadCount; ++head) {
        const bool padding = query >= kReadTokens[b];
        const std::vector<double> own =
            padding ? std::vector<double>(kHeadDim, 0.0) : attend(rows, b, query, head);
        expected.insert(expected.end(), own.begin(), own.end());
      }
    }
  }
  CHECK(largest_error(out, expected) < 1e-5);
}

TEST_CASE("padding has no global attention") {
  const std::vector<std::uint8_t> global{1, 0, 1, 1, 0, 0};
  const std::vector<std::uint8_t> read{1, 1, 0, 1, 1, 1};
  const GlobalPositions positions = global_positions(global, read.data(), 2, 2);
  CHECK(positions.tokens == std::vector<std::int64_t>{0, -1, 0, -1});
  CHECK(global_positions(global, nullptr, 2, 2).tokens == std::vector<std::int64_t>{0, 2, 0, -1});
}

TEST_CASE("without a mask, global tokens are the first, the question's or the choice's") {
  // Two sequences of 8 tokens with the separator 2, as [CLS] question [SEP][SEP] choice [SEP].
  TokenInputs tokens{2, 8, {0, 9, 2, 2, 8, 7, 6, 2, 0, 9, 9, 9, 2, 2, 8, 2}, {}, {}};
  const auto masked = [&](headroom::DefaultGlobalTokens chosen) {
    add_default_global_mask({chosen, 2}, tokens);
    return tokens.global_mask;
  };
  using Mask = std::vector<std::uint8_t>;
  using headroom::DefaultGlobalTokens;
  CHECK(masked(DefaultGlobalTokens::none) == Mask(16, 0));
  CHECK(most_global_tokens(tokens) == 0);
  CHECK(masked(DefaultGlobalTokens::first_token) ==
        Mask{1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0});
  CHECK(masked(DefaultGlobalTokens::before_separator) ==
        Mask{1, 1, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 0, 0, 0, 0});
  CHECK(most_global_tokens(tokens) == 4);
  tokens.key_mask = Mask{1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 1, 1, 1, 1, 1, 1};
  CHECK(most_global_tokens(tokens) == 2);
  CHECK(masked(DefaultGlobalTokens::behind_separators) ==
        Mask{0, 0, 0, 0, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 1, 1});
}
