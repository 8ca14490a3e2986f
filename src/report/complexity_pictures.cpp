// Curves of layers over the length: FLOPs, and times where there are any.
#include <algorithm>

#include "picture.h"
#include "pictures.h"
#include "study_words.h"

namespace headroom::detail {
namespace {

std::string curves(const std::string& title, const std::string& unit,
                   std::vector<PlotSeries> series) {
  std::erase_if(series, [](const PlotSeries& one) { return one.points.empty(); });
  return plot(
      {title,
       "On logarithmic axes a straight line is a power of the length: its slope is the order "
       "of growth.",
       {"length s [tokens]", AxisScale::logarithmic},
       {unit, AxisScale::logarithmic},
       std::move(series),
       {}});
}

}  // namespace

std::vector<std::string> pictures_of(const ComplexityReport& report) {
  std::vector<PlotSeries> flops;
  std::vector<PlotSeries> predictions;
  std::vector<PlotSeries> times;
  for (const LayerStudy& study : report.layers) {
    PlotSeries counted{name_of(study.layer), Drawn::line};
    PlotSeries predicted{name_of(study.layer), Drawn::line};
    PlotSeries measured{name_of(study.layer), Drawn::line};
    for (const std::int64_t length : report.lengths) {
      counted.points.push_back({static_cast<double>(length),
                                static_cast<double>(study.layer.flops.by_length.at(length)) / 1e9});
    }
    for (const PredictedRun& run : study.times.predicted) {
      predicted.points.push_back({static_cast<double>(run.seq_len), run.time_s * 1e3});
    }
    for (const LengthRun& run : study.times.runs) {
      measured.points.push_back({static_cast<double>(run.seq_len), run.time_s * 1e3});
    }
    flops.push_back(std::move(counted));
    predictions.push_back(std::move(predicted));
    times.push_back(std::move(measured));
  }
  return {curves("Matrix FLOPs of the layers", "GFLOP", std::move(flops)),
          curves("Predicted time of the layers", "ms", std::move(predictions)),
          curves("Measured time of the layers", "ms", std::move(times))};
}

}  // namespace headroom::detail
