// Products with weights that come from memory, as in a model that no cache holds, and with weights
// that stay in a cache.
#include <omp.h>

#include <memory>
#include <span>

#include "last_cache.h"
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
};

/// Fills the points of one pair of sizes, for every number of rows and threads.
class PairProbe {
 public:
  PairProbe(const LinearProbes& probes, const LinearKinds& kinds, std::int64_t in, std::int64_t out)
      : kinds_(kinds), backend_(probes.backend), in_(in), out_(out), weight_(filled(in * out)) {
    const std::int64_t bytes = in * out * (kinds.storage == WeightStorage::bfloat16 ? 2 : 4);
    // Products take so long that twice the last cache leaves nothing of their weights in it.
    const std::int64_t enough =
        kinds.pace == Pace::memory ? uncached_bytes() : 2 * last_level_cache_bytes();
    const std::int64_t copies = 1 + enough / bytes;
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
    std::optional<KernelTime> warm;
    if (rows <= kMostWarmRows) warm = time_warm(budget, x, y, rows);
    for (const auto& layer : layers_) layer->prepare(rows);
    Budget paced = budget;
    paced.pace = kinds_.pace;
    if (kinds_.pace == Pace::memory && warm) paced.cached_s = warm->seconds;
    const auto count = static_cast<std::int64_t>(layers_.size());
    const KernelTime cold = time_call(paced, [&](std::int64_t /*i*/) {
      layers_[static_cast<std::size_t>(next_++ % count)]->run(x.data(), y.data(), rows);
    });
    return {cold, warm.value_or(cold)};
  }

 private:
  static constexpr std::int64_t kTypicalRows = 128;
  /// Products take most of a model's time, so larger ones than of other kernels are worth theirs.
  static constexpr double kMostProduct = 1.5 * kMostWork;
  /// Of weights that are so many that few copies pass every cache, some outputs only stay in one.
  static constexpr std::int64_t kFewestWarm = 5;
  static constexpr std::int64_t kWarmFloats = std::int64_t{1} << 20;

  /// Rows beyond which it makes no difference where weights come from.
  static constexpr std::int64_t kMostWarmRows = 192;

  [[nodiscard]] KernelTime time_warm(const Budget& budget, const AlignedVector<float>& x,
                                     AlignedVector<float>& y, std::int64_t rows) {
    warm_->prepare(rows);
    KernelTime time =
        time_call(budget, [&](std::int64_t /*i*/) { warm_->run(x.data(), y.data(), rows); });
    time.seconds *= static_cast<double>(out_) / static_cast<double>(warm_out_);
    return time;
  }

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

/// Which part of the grid, and which of several measurements of it.
struct Turn {
  std::size_t in = 0;  ///< place along the axis of inputs
  std::size_t round = 0;
};

/// Fills all rows of a pair of sizes, whose places along their axes are `in` and `out`.
void probe_pair(PairProbe& pair, const Budget& budget, std::size_t in, std::size_t out,
                KernelTable& cold, KernelTable& warm) {
  const auto& rows = cold.axes[0];
  for (std::size_t row = 0; row < rows.size(); ++row) {
    const auto times = pair.measure(budget, whole(rows[row]));
    const std::size_t at[] = {row, in, out};
    const std::size_t number = point_number(cold.axes, at);
    store(cold, number, times.first);
    store(warm, number, times.second);
  }
}

/// All outputs of one size of inputs, with every number of threads.
void probe_outputs(const LinearProbes& probes, const LinearKinds& kinds, Turn turn,
                   const std::vector<ThreadProfile>& profiles, std::vector<ColdAndWarm>& tables) {
  const KernelGrid& axes = tables.front().cold.front().axes;
  for (std::size_t out = 0; out < axes[2].size(); ++out) {
    PairProbe pair(probes, kinds, whole(axes[1][turn.in]), whole(axes[2][out]));
    for (std::size_t t = 0; t < profiles.size(); ++t) {
      omp_set_num_threads(profiles[t].threads);
      probe_pair(pair, probes.budgets[t], turn.in, out, tables[t].cold[turn.round],
                 tables[t].warm[turn.round]);
    }
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
  const Effort effort = probes.budgets.front().effort;
  const std::size_t rounds = probes.budgets.front().rounds;
  double done = 0;
  for (const LinearKinds& kind : kinds) {
    const KernelGrid axes = calibration_axes(kind.cold, effort);
    const auto tables_of = [&](KernelKind one) {
      return std::vector<KernelTable>(rounds, unmeasured_table(one, axes));
    };
    const ColdAndWarm unmeasured{tables_of(kind.cold), tables_of(kind.warm)};
    std::vector<ColdAndWarm> tables(profiles.size(), unmeasured);
    // A round after another, so that what slows the machine for a second spoils one of them.
    const double step = 1.0 / static_cast<double>(std::size(kinds) * rounds * axes[1].size());
    for (std::size_t round = 0; round < rounds; ++round) {
      for (std::size_t in = 0; in < axes[1].size(); ++in) {
        if (!observer(done)) return false;
        probe_outputs(probes, kind, {in, round}, profiles, tables);
        done += step;
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
