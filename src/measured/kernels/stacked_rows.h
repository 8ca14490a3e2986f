// Rows of stacked weights as one matrix, read in order.
#pragma once

#include <cstdint>
#include <vector>

#include "aligned.h"
#include "linear_kernels.h"
#include "source_rows.h"

namespace headroom::measured {

class StackedRows {
 public:
  /// `weights` must outlive the rows.
  explicit StackedRows(const StackedWeights& weights);

  /// Rows `rows` of W, row-major, rounded to its storage type. Valid until the next call.
  [[nodiscard]] const float* read(Range rows);
  /// Copies them to `to`.
  void copy(Range rows, float* to) const;
  /// Releases the memory of the rows before `end` that is not read again.
  void read_until(std::int64_t end);

  /// Calls lay_out(rows, values) for slices of W, multiples of `granule` rows but for the last one.
  template <class LayOut>
  void for_slices(std::int64_t granule, const LayOut& lay_out) {
    const std::int64_t row_bytes = weights_.in * static_cast<std::int64_t>(sizeof(float));
    const std::int64_t in_slice = static_cast<std::int64_t>(kSourceSlice) / row_bytes;
    const std::int64_t some = std::max(granule, in_slice / granule * granule);
    for (std::int64_t row = 0; row < weights_.out; row += some) {
      const Range rows{row, std::min(weights_.out, row + some)};
      lay_out(rows, read(rows));
      read_until(rows.end);
    }
  }

 private:
  /// A part, and its rows in W.
  struct Part {
    const LinearPart* part = nullptr;
    Range rows;
    SourceReading reading;
  };

  const StackedWeights& weights_;
  std::vector<Part> parts_;
  AlignedVector<float> copied_;
};

}  // namespace headroom::measured
