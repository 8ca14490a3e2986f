#include "key_compression.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "lane_block.h"
#include "vector_math.h"

namespace headroom::measured {
namespace {

using simd::Floats;

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

/// Keys and gates of one series of a token, [width] each.
struct SeriesRow {
  const float* key = nullptr;
  const float* gate = nullptr;
};

/// Rows of one sequence: those of the state, then the new ones.
class SequenceRows {
 public:
  SequenceRows(const CompressionArguments& args, std::int64_t sequence)
      : args_(args),
        rows_(args.rows + sequence * args.tokens * args.row_floats()),
        before_(args.state == nullptr ? nullptr : args.state + sequence * args.state_floats()) {}

  /// Row of a token since the first of the window that was open.
  [[nodiscard]] const float* row(std::int64_t token) const {
    if (token >= args_.past) return rows_ + (token - args_.past) * args_.row_floats();
    const std::int64_t of_window = token - args_.past / args_.rate * args_.rate;
    return before_ + (args_.series - 1) * args_.rate * 2 * args_.width +
           of_window * args_.row_floats();
  }

  /// A series of a token of this window, or of the window before it.
  [[nodiscard]] SeriesRow series(std::int64_t token, std::int64_t number) const {
    if (token < args_.past / args_.rate * args_.rate) {
      const float* const key = before_ + token % args_.rate * 2 * args_.width;
      return {key, key + args_.width};
    }
    const float* const first = row(token) + number * args_.width;
    return {first, first + args_.series * args_.width};
  }

 private:
  const CompressionArguments& args_;
  const float* rows_;
  const float* before_;
};

/// The rows that window `entry` sums, with their gates' biases.
struct WindowRow {
  SeriesRow row;
  const float* bias = nullptr;
};

std::vector<WindowRow> window_rows(const CompressionArguments& args, const SequenceRows& rows,
                                   std::int64_t entry) {
  std::vector<WindowRow> window;
  const std::int64_t own = args.series - 1;
  const std::int64_t features = args.series * args.width;
  const bool overlaps = args.series > 1 && entry > 0;
  for (std::int64_t i = 0; overlaps && i < args.rate; ++i) {
    window.push_back({rows.series((entry - 1) * args.rate + i, 0), args.bias + i * features});
  }
  for (std::int64_t i = 0; i < args.rate; ++i) {
    window.push_back(
        {rows.series(entry * args.rate + i, own), args.bias + i * features + own * args.width});
  }
  return window;
}

Floats gate_of(const WindowRow& row, const Lanes& features) {
  return features.load(row.row.gate) + features.load(row.bias);
}

/// Σ of the keys, weighted by a softmax over the gates of each feature.
Floats sum_features(const std::vector<WindowRow>& window, const Lanes& features) {
  Floats largest = simd::broadcast(kMinusInfinity);
  for (const WindowRow& row : window) largest = simd::max(largest, gate_of(row, features));
  Floats total = {};
  Floats sum = {};
  for (const WindowRow& row : window) {
    const Floats weight = simd::exp(gate_of(row, features) - largest);
    total += weight;
    sum += weight * features.load(row.row.key);
  }
  return sum / total;
}

/// out [width] = the sums of a window.
void sum_window(const std::vector<WindowRow>& window, std::int64_t width, float* out) {
  for_lanes(width,
            [&](const Lanes& features) { features.store(out, sum_features(window, features)); });
}

/// The state of one sequence after its new tokens.
std::vector<float> next_state(const CompressionArguments& args, const SequenceRows& rows) {
  std::vector<float> state;
  const std::int64_t end = args.past + args.tokens;
  const std::int64_t open = end / args.rate * args.rate;
  for (std::int64_t token = open - args.rate; args.series > 1 && token < open; ++token) {
    if (token < 0) {  // no window is complete
      state.resize(state.size() + static_cast<std::size_t>(2 * args.width));
      continue;
    }
    const SeriesRow row = rows.series(token, 0);
    state.insert(state.end(), row.key, row.key + args.width);
    state.insert(state.end(), row.gate, row.gate + args.width);
  }
  for (std::int64_t token = open; token < end; ++token) {
    const float* const row = rows.row(token);
    state.insert(state.end(), row, row + args.row_floats());
  }
  return state;
}

}  // namespace

void compress_keys(const CompressionArguments& args, float* out) {
  const std::int64_t first = args.past / args.rate;
  const std::int64_t entries = args.new_entries();
#pragma omp parallel for collapse(2) schedule(static)
  for (std::int64_t sequence = 0; sequence < args.batch; ++sequence) {
    for (std::int64_t i = 0; i < entries; ++i) {
      const SequenceRows rows(args, sequence);
      sum_window(window_rows(args, rows, first + i), args.width,
                 out + (sequence * args.out_entries + i) * args.width);
    }
  }
}

void keep_open_window(const CompressionArguments& args) {
  for (std::int64_t sequence = 0; sequence < args.batch; ++sequence) {
    const std::vector<float> state = next_state(args, SequenceRows(args, sequence));
    std::ranges::copy(state, args.state + sequence * args.state_floats());
  }
}

void gather_keys(const MixedKeys& mixed, float* keys) {
  for (std::int64_t sequence = 0; sequence < mixed.batch; ++sequence) {
    float* const to = keys + sequence * mixed.keys() * mixed.width;
    const std::int64_t tokens = mixed.token_keys * mixed.width;
    std::copy_n(mixed.tokens + sequence * mixed.token_stride, tokens, to);
    if (mixed.entry_keys == 0) continue;
    std::copy_n(mixed.entries + sequence * mixed.entry_stride, mixed.entry_keys * mixed.width,
                to + tokens);
  }
}

void mask_keys(const MixedKeys& mixed, float* mask) {
  for (std::int64_t row = 0; row < mixed.batch * mixed.queries; ++row) {
    const std::int64_t query = row % mixed.queries;
    float* const tokens = mask + row * mixed.keys();
    for (std::int64_t key = 0; key < mixed.token_keys; ++key) {
      const bool sees = mixed.cached || (key <= query && query - key < mixed.window);
      tokens[key] = sees ? 0.0F : kMinusInfinity;
    }
    float* const entries = tokens + mixed.token_keys;
    const std::int64_t complete = (mixed.past + query + 1) / mixed.rate;
    for (std::int64_t entry = 0; entry < mixed.entry_keys; ++entry) {
      const bool chosen =
          mixed.choice == nullptr || mixed.choice[row * mixed.entry_keys + entry] == 0;
      entries[entry] = chosen && entry < complete ? 0.0F : kMinusInfinity;
    }
  }
}

}  // namespace headroom::measured
