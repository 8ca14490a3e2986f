#include "hard_tokens.h"

#include <algorithm>
#include <memory>
#include <mutex>

#include "kernels/normalize.h"

namespace headroom::measured {
namespace {

/// Hard tokens of one modality, with the embeddings computed so far.
class HardTable {
 public:
  HardTable(const HardTokensSpec& spec, const ModelWeights& weights, std::int64_t width,
            float scale)
      : spec_(spec),
        table_(weights.word_rows(spec.table)),
        projection_(weights.word_rows(spec.projection)),
        norm_(weights.values(spec.norm, 0)),
        width_(width),
        scale_(scale),
        rows_(static_cast<std::size_t>(spec.count)) {}

  [[nodiscard]] bool has(std::int64_t id) const {
    return id >= spec_.first_id && id < spec_.first_id + spec_.count;
  }
  void read(std::int64_t id, float* to) {
    const std::lock_guard lock(mutex_);
    std::vector<float>& row = rows_[static_cast<std::size_t>(id - spec_.first_id)];
    if (row.empty()) row = embed(id - spec_.first_id);
    std::ranges::copy(row, to);
  }

 private:
  [[nodiscard]] NormArguments norm_of(std::int64_t width, const float* weight) const {
    return {1, width, weight, nullptr, static_cast<float>(spec_.eps)};
  }
  [[nodiscard]] std::vector<float> embed(std::int64_t index) const {
    std::vector<float> input(static_cast<std::size_t>(spec_.width));
    table_(index, input.data());
    rms_norm(norm_of(spec_.width, norm_), input.data(), input.data());
    std::vector<float> of_output(input.size());
    std::vector<float> row(static_cast<std::size_t>(width_));
    for (std::int64_t i = 0; i < width_; ++i) {
      projection_(i, of_output.data());
      double sum = 0;
      for (std::size_t j = 0; j < input.size(); ++j) {
        sum += static_cast<double>(of_output[j]) * static_cast<double>(input[j]);
      }
      row[static_cast<std::size_t>(i)] = static_cast<float>(sum);
    }
    rms_norm(norm_of(width_, nullptr), row.data(), row.data());
    for (float& value : row) value /= scale_;
    return row;
  }

  HardTokensSpec spec_;
  RowReader table_;
  RowReader projection_;  ///< of a row per output feature
  const float* norm_;
  std::int64_t width_;
  float scale_;
  std::mutex mutex_{};
  std::vector<std::vector<float>> rows_;
};

}  // namespace

RowReader with_hard_tokens(RowReader words, const std::vector<HardTokensSpec>& specs,
                           const ModelWeights& weights, std::int64_t width, float scale) {
  for (const HardTokensSpec& spec : specs) {
    auto table = std::make_shared<HardTable>(spec, weights, width, scale);
    words = [table = std::move(table), others = std::move(words)](std::int64_t id, float* to) {
      if (table->has(id)) {
        table->read(id, to);
      } else {
        others(id, to);
      }
    };
  }
  return words;
}

}  // namespace headroom::measured
