// Walks a row in blocks of whole vectors, the last of them partial.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "aligned.h"
#include "simd.h"

namespace headroom::measured {

/// Neighbouring elements of a row, `vectors` whole vectors or a part of one.
template <std::size_t vectors>
struct LaneBlock {
  static constexpr std::int64_t kElements = static_cast<std::int64_t>(vectors) * simd::kLanes;

  std::int64_t first = 0;
  std::int64_t count = kElements;

  /// Vector `v` of the block in `row`; lanes after the last element are zero.
  [[nodiscard]] simd::Floats load(const float* row, std::size_t v = 0) const {
    const float* const from = row + first + static_cast<std::int64_t>(v) * simd::kLanes;
    return count == kElements ? simd::load(from) : simd::load_first(from, count);
  }
  void store(float* row, simd::Floats value, std::size_t v = 0) const {
    float* const to = row + first + static_cast<std::int64_t>(v) * simd::kLanes;
    if (count == kElements) return simd::store(to, value);
    simd::store_first(to, value, count);
  }
};

/// Part of one vector, or all of it.
using Lanes = LaneBlock<1>;

/// The lanes from element `first` of `width` on.
inline Lanes lanes_at(std::int64_t first, std::int64_t width) {
  return {first, std::min(simd::kLanes, width - first)};
}

/// Calls body(lanes) for all elements of a row, a vector at a time.
template <class Body>
void for_lanes(std::int64_t width, const Body& body) {
  for (std::int64_t first = 0; first < width; first += simd::kLanes) body(lanes_at(first, width));
}

/// Calls body(block) for all elements of a row, four vectors at a time while there are as many, so
/// that their sums cover the latency of multiply–adds.
template <class Body>
void for_blocks(std::int64_t width, const Body& body) {
  constexpr std::size_t kVectors = 4;
  constexpr std::int64_t kElements = LaneBlock<kVectors>::kElements;
  std::int64_t first = 0;
  for (; first + kElements <= width; first += kElements) body(LaneBlock<kVectors>{first});
  for (; first < width; first += simd::kLanes) body(lanes_at(first, width));
}

/// Elements of a row of `width` in whole vectors.
inline std::int64_t whole_width(std::int64_t width) {
  return (width + simd::kLanes - 1) / simd::kLanes * simd::kLanes;
}

/// Rows of whole vectors: those given, or a copy with zeros behind each row, since a part of a
/// vector costs several whole ones.
class WholeRows {
 public:
  /// Copies `count` rows of `width` if they are not whole.
  void read(float* rows, std::int64_t count, std::int64_t width) {
    rows_ = rows;
    count_ = count;
    width_ = width;
    stride_ = whole_width(width);
    if (stride_ == width) return;
    copy_.resize(static_cast<std::size_t>(count * stride_));
    for (std::int64_t row = 0; row < count; ++row) {
      float* const copied = copy_.data() + row * stride_;
      std::copy_n(rows + row * width, width, copied);
      std::fill_n(copied + width, stride_ - width, 0.0F);
    }
  }
  /// Writes the copy back, if there is one.
  void write() const {
    if (stride_ == width_) return;
    for (std::int64_t row = 0; row < count_; ++row) {
      std::copy_n(copy_.data() + row * stride_, width_, rows_ + row * width_);
    }
  }
  [[nodiscard]] float* data() { return stride_ == width_ ? rows_ : copy_.data(); }
  [[nodiscard]] std::int64_t stride() const { return stride_; }

 private:
  AlignedVector<float> copy_;
  float* rows_ = nullptr;
  std::int64_t count_ = 0;
  std::int64_t width_ = 0;
  std::int64_t stride_ = 0;
};

/// A row to read in whole vectors: the row given, or a copy.
class WholeRow {
 public:
  const float* read(const float* row, std::int64_t width) {
    if (whole_width(width) == width) return row;
    copy_.resize(static_cast<std::size_t>(whole_width(width)));
    std::copy_n(row, width, copy_.data());
    return copy_.data();
  }

 private:
  AlignedVector<float> copy_;
};

}  // namespace headroom::measured
