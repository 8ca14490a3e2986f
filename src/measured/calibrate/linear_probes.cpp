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
  double most_s;  ///< in which the rounds stay, if they can
};

/// Fills the points of one pair of sizes, for every number of rows and threads.
class PairProbe {
 public:
  PairProbe(const LinearProbes& probes, const LinearKinds& kinds, std::int64_t in, std::int64_t out)
      : kinds_(kinds), backend_(probes.backend), in_(in), out_(out), weight_(filled(in * out)) {
    const std::int64_t bytes = in * out * (kinds.storage == WeightStorage::bfloat16 ? 2 : 4);
    // Products take so long that twice the last cache leaves nothing of their weights in it.
    const std::int64_t enough =
        kinds.pace == Pace::memory ? streamed_bytes() : 2 * last_level_cache_bytes();
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

/// Every product of one kind, in rounds, with every number of threads.
class KindProbe {
 public:
  KindProbe(const LinearProbes& probes, const LinearKinds& kinds,
            std::vector<ThreadProfile>& profiles)
      : probes_(probes), kinds_(kinds), profiles_(profiles), tables_(profiles.size()) {}

  /// `observer` is told of the share of these rounds that is done.
  [[nodiscard]] bool measure(const std::function<bool(double)>& observer) {
    const Budget& budget = probes_.budgets.front();
    const KernelGrid axes = calibration_axes(kinds_.cold, budget.effort);
    // A round after another, so that what slows the machine for a second spoils one of them.
    for (Rounds rounds(budget.rounds, kinds_.most_s); rounds.go_on(); rounds.done()) {
      for (ColdAndWarm& tables : tables_) {
        tables.cold.push_back(unmeasured_table(kinds_.cold, axes));
        tables.warm.push_back(unmeasured_table(kinds_.warm, axes));
      }
      for (std::size_t in = 0; in < axes[1].size(); ++in) {
        const std::size_t done = rounds.number() * axes[1].size() + in;
        if (!observer(static_cast<double>(done) /
                      static_cast<double>(budget.rounds * axes[1].size()))) {
          return false;
        }
        measure_outputs(axes, in);
      }
    }
    return true;
  }

  /// Adds the middle of the rounds to every profile.
  void store_tables() {
    for (std::size_t t = 0; t < profiles_.size(); ++t) {
      profiles_[t].tables.push_back(median_of(tables_[t].cold));
      profiles_[t].tables.push_back(median_of(tables_[t].warm));
    }
  }

 private:
  /// All outputs of one size of inputs.
  void measure_outputs(const KernelGrid& axes, std::size_t in) {
    for (std::size_t out = 0; out < axes[2].size(); ++out) {
      PairProbe pair(probes_, kinds_, whole(axes[1][in]), whole(axes[2][out]));
      for (std::size_t t = 0; t < profiles_.size(); ++t) {
        omp_set_num_threads(profiles_[t].threads);
        probe_pair(pair, probes_.budgets[t], in, out, tables_[t].cold.back(),
                   tables_[t].warm.back());
      }
    }
  }

  const LinearProbes& probes_;
  const LinearKinds& kinds_;
  std::vector<ThreadProfile>& profiles_;
  std::vector<ColdAndWarm> tables_;
};

}  // namespace

bool probe_linears(const LinearProbes& probes, std::vector<ThreadProfile>& profiles,
                   const std::function<bool(double)>& observer) {
  const LinearKinds all_kinds[] = {
      {KernelKind::linear_cold, KernelKind::linear_warm, RowRange::many, WeightStorage::float32,
       Pace::compute, 20},
      {KernelKind::stream_float32_cold, KernelKind::stream_float32_warm, RowRange::few,
       WeightStorage::float32, Pace::memory, 4},
      {KernelKind::stream_bfloat16_cold, KernelKind::stream_bfloat16_warm, RowRange::few,
       WeightStorage::bfloat16, Pace::memory, 4}};
  double done_s = 0;
  double all_s = 0;
  for (const LinearKinds& kinds : all_kinds) all_s += kinds.most_s;
  for (const LinearKinds& kinds : all_kinds) {
    KindProbe probe(probes, kinds, profiles);
    const auto seen = [&](double share) {
      return observer((done_s + share * kinds.most_s) / all_s);
    };
    if (!probe.measure(seen)) return false;
    probe.store_tables();
    done_s += kinds.most_s;
  }
  return true;
}

}  // namespace headroom::measured
