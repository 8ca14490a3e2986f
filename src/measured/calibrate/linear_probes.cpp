// Products with weights that come from memory, as in a model that no cache holds, and with weights
// that stay in a cache.
#include <omp.h>

#include <memory>
#include <span>

#include "probes.h"

namespace headroom::measured {
namespace {

using Layers = std::vector<std::unique_ptr<PackedLinear>>;

/// A kernel's tables, for cold and for warm weights.
struct LinearKinds {
  KernelKind cold;
  KernelKind warm;
  RowRange rows;
  WeightStorage storage;
  Pace pace;

  [[nodiscard]] std::size_t rounds(Effort effort) const {
    return pace == Pace::memory ? rounds_of(effort) : 1;
  }
};

/// Fills the points of one pair of sizes, for every number of rows and threads.
class PairProbe {
 public:
  PairProbe(const LinearProbes& probes, const LinearKinds& kinds, std::int64_t in, std::int64_t out)
      : kinds_(kinds), backend_(probes.backend), in_(in), out_(out), weight_(filled(in * out)) {
    const std::int64_t bytes = in * out * (kinds.storage == WeightStorage::bfloat16 ? 2 : 4);
    const std::int64_t copies = 1 + uncached_bytes() / bytes;
    for (std::int64_t i = 0; i < copies; ++i) layers_.push_back(layer_of(out));
    warm_out_ = copies >= kFewestWarm ? out : kWarmFloats / in;
    warm_ = layer_of(warm_out_);
  }

  /// Times of cold and of warm weights; none where they would take too long.
  std::pair<std::optional<KernelTime>, std::optional<KernelTime>> measure(const Budget& budget,
                                                                          std::int64_t rows) {
    const bool is_smallest = rows == 1;
    if (!is_smallest && static_cast<double>(rows * in_ * out_) > kMostProduct) return {};
    const AlignedVector<float> x = filled(rows * in_);
    AlignedVector<float> y = filled(rows * out_);
    warm_->prepare(rows);
    for (const auto& layer : layers_) layer->prepare(rows);
    KernelTime warm =
        time_call(budget, [&](std::int64_t /*i*/) { warm_->run(x.data(), y.data(), rows); });
    warm.seconds *= static_cast<double>(out_) / static_cast<double>(warm_out_);
    Budget paced = budget;
    paced.pace = kinds_.pace;
    if (kinds_.pace == Pace::memory) paced.cached_s = warm.seconds;
    const auto count = static_cast<std::int64_t>(layers_.size());
    const KernelTime cold = time_call(paced, [&](std::int64_t /*i*/) {
      layers_[static_cast<std::size_t>(next_++ % count)]->run(x.data(), y.data(), rows);
    });
    return {cold, warm};
  }

 private:
  static constexpr std::int64_t kTypicalRows = 128;
  /// Products take most of a model's time, so larger ones than of other kernels are worth theirs.
  static constexpr double kMostProduct = 3 * kMostWork;
  /// Of weights that are so many that few copies pass every cache, some outputs only stay in one.
  static constexpr std::int64_t kFewestWarm = 5;
  static constexpr std::int64_t kWarmFloats = std::int64_t{1} << 20;

  [[nodiscard]] std::unique_ptr<PackedLinear> layer_of(std::int64_t out) const {
    const LinearPart part{std::span(weight_).first(static_cast<std::size_t>(in_ * out)), {}};
    return std::make_unique<PackedLinear>(
        std::span(&part, 1), in_,
        LinearOptions{backend_, Epilogue::none, kinds_.rows, kTypicalRows, kinds_.storage});
  }

  LinearKinds kinds_;
  Backend backend_;
  std::int64_t in_;
  std::int64_t out_;
  AlignedVector<float> weight_;
  Layers layers_;
  std::unique_ptr<PackedLinear> warm_;
  std::int64_t warm_out_ = 0;
  std::int64_t next_ = 0;
};

/// Both tables of one kernel with one number of threads, as every round measured them.
struct ColdAndWarm {
  std::vector<KernelTable> cold;
  std::vector<KernelTable> warm;
};

/// Fills all rows of a pair of sizes, whose places along their axes are `in` and `out`.
void probe_pair(PairProbe& pair, const Budget& budget, std::size_t in, std::size_t out,
                KernelTable& cold, KernelTable& warm) {
  const auto& rows = cold.axes[0];
  for (std::size_t row = 0; row < rows.size(); ++row) {
    const auto times = pair.measure(budget, static_cast<std::int64_t>(rows[row]));
    const std::size_t at[] = {row, in, out};
    const std::size_t number = point_number(cold.axes, at);
    store(cold, number, times.first);
    store(warm, number, times.second);
  }
}

}  // namespace

bool probe_linears(const LinearProbes& probes, std::vector<ThreadProfile>& profiles,
                   const std::function<bool(double)>& observer) {
  const LinearKinds kinds[] = {{KernelKind::linear_cold, KernelKind::linear_warm, RowRange::many,
                                WeightStorage::float32, Pace::compute},
                               {KernelKind::stream_float32_cold, KernelKind::stream_float32_warm,
                                RowRange::few, WeightStorage::float32, Pace::memory},
                               {KernelKind::stream_bfloat16_cold, KernelKind::stream_bfloat16_warm,
                                RowRange::few, WeightStorage::bfloat16, Pace::memory}};
  double done = 0;
  for (const LinearKinds& kind : kinds) {
    const KernelGrid axes = calibration_axes(kind.cold, probes.budgets.front().effort);
    const std::size_t rounds = kind.rounds(probes.budgets.front().effort);
    const auto tables_of = [&](KernelKind one) {
      return std::vector<KernelTable>(rounds, unmeasured_table(one, axes));
    };
    const ColdAndWarm unmeasured{tables_of(kind.cold), tables_of(kind.warm)};
    std::vector<ColdAndWarm> tables(profiles.size(), unmeasured);
    for (std::size_t i = 0; i < axes[1].size(); ++i) {
      for (std::size_t o = 0; o < axes[2].size(); ++o) {
        if (!observer(done)) return false;
        PairProbe pair(probes, kind, static_cast<std::int64_t>(axes[1][i]),
                       static_cast<std::int64_t>(axes[2][o]));
        for (std::size_t round = 0; round < rounds; ++round) {
          for (std::size_t t = 0; t < profiles.size(); ++t) {
            omp_set_num_threads(profiles[t].threads);
            ColdAndWarm& both = tables[t];
            probe_pair(pair, probes.budgets[t], i, o, both.cold[round], both.warm[round]);
          }
        }
        done += 1.0 / static_cast<double>(std::size(kinds) * axes[1].size() * axes[2].size());
      }
    }
    for (std::size_t t = 0; t < profiles.size(); ++t) {
      profiles[t].tables.push_back(median_of(tables[t].cold));
      profiles[t].tables.push_back(median_of(tables[t].warm));
    }
  }
  return true;
}

}  // namespace headroom::measured
