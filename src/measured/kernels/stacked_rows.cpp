#include "stacked_rows.h"

#include <algorithm>

#include "bfloat16.h"

namespace headroom::measured {
namespace {

/// The rows of `part`, whose rows are those of W from its begin on, that `rows` has.
Range common_rows(Range part, Range rows) {
  return {std::max(part.begin, rows.begin), std::min(part.end, rows.end)};
}

}  // namespace

StackedRows::StackedRows(const StackedWeights& weights) : weights_(weights) {
  std::int64_t first = 0;
  for (const LinearPart& part : weights.parts) {
    const std::int64_t rows = std::ssize(part.weight) / weights.in;
    parts_.push_back({&part, {first, first + rows}, {std::as_bytes(part.weight), part.source}});
    first += rows;
  }
}

const float* StackedRows::read(Range rows) {
  const bool as_is = parts_.size() == 1 && weights_.storage != HeldType::bfloat16;
  if (as_is) return parts_.front().part->weight.data() + rows.begin * weights_.in;
  copied_.resize(static_cast<std::size_t>(rows.size() * weights_.in));
  copy(rows, copied_.data());
  return copied_.data();
}

void StackedRows::copy(Range rows, float* to) const {
  const auto in = static_cast<std::size_t>(weights_.in);
  for (const Part& part : parts_) {
    const Range own = common_rows(part.rows, rows);
    if (own.size() <= 0) continue;
    const auto first = static_cast<std::size_t>(own.begin - part.rows.begin) * in;
    const auto values = part.part->weight.subspan(first, static_cast<std::size_t>(own.size()) * in);
    switch (weights_.storage) {
      case HeldType::float32:
      case HeldType::stored:
        to = std::ranges::copy(values, to).out;
        break;
      case HeldType::bfloat16:
        to = std::ranges::transform(values, to, round_to_bfloat16).out;
        break;
    }
  }
}

void StackedRows::read_until(std::int64_t end) {
  for (Part& part : parts_) {
    const std::int64_t rows = std::min(end, part.rows.end) - part.rows.begin;
    if (rows <= 0) continue;
    part.reading.read_until(static_cast<std::size_t>(rows * weights_.in) * sizeof(float));
  }
}

}  // namespace headroom::measured
