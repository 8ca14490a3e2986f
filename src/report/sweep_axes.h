// The axes of a sweep's grid, and where each row lies on them. Internal to src/report.
#pragma once

#include <string>
#include <vector>

#include "document.h"
#include "headroom/report.h"

namespace headroom::detail {

/// One axis with its values in the order of the rows.
struct SweepAxis {
  std::string key;                  ///< of its column: "batch_size"
  std::string title;                ///< "batch"
  std::vector<std::string> values;  ///< different ones: "1", "bfloat16"
  std::vector<double> numbers;      ///< the values, if they are numbers
  std::vector<std::size_t> places;  ///< of each row, into `values`
};

/// The axes of `grid` along which `rows` vary, the longest first; the first of several as long is
/// the sequence, then the past, then the batch.
[[nodiscard]] std::vector<SweepAxis> axes_of(const SweepReport& report);

/// Values of the settings that all rows share: "prefill · float32 · eager attention".
[[nodiscard]] std::string fixed_settings(const SweepReport& report);

/// "seq 128, batch 4"
[[nodiscard]] std::string place_of(const std::vector<SweepAxis>& axes, std::size_t row);

/// One figure of all rows, in one unit.
struct SweepFigure {
  std::string title;  ///< "Matrix FLOPs"
  std::string unit;
  std::vector<double> values;      ///< in the unit, by row
  std::vector<std::string> texts;  ///< exact, with their own unit
  [[nodiscard]] bool is_constant() const;
};

/// Time with a machine, matrix FLOPs, memory, and the KV-cache if there is one.
[[nodiscard]] std::vector<SweepFigure> figures_of(const SweepReport& report);

/// Heat maps, curves or bars of the figures that vary.
[[nodiscard]] std::vector<std::string> pictures_of(const SweepReport& report,
                                                   const std::vector<SweepAxis>& axes,
                                                   const std::vector<SweepFigure>& figures);

/// States which axes the pictures have, and how many combinations of the others they show.
[[nodiscard]] std::string picture_scope(const SweepReport& report,
                                        const std::vector<SweepAxis>& axes);

}  // namespace headroom::detail
