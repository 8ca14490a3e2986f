// Probes of linear layers, with weights from memory, as in a model larger than any cache, and with
// weights in a cache.
#include <omp.h>

#include <memory>
#include <span>
#include <utility>

#include "last_cache.h"
#include "probes.h"
#include "random_blocks.h"
#include "random_groups.h"
#include "visit.h"

namespace headroom::measured {
namespace {

using LinearCopies = std::vector<std::unique_ptr<PackedLinear>>;

/// Kernel with its tables for cold and warm weights.
struct LinearKinds {
  KernelKind cold;
  KernelKind warm;
  RowRange rows;
  HeldType storage;
  Resource resource;
  double max_s;                         ///< time limit of its rounds
  KernelGrid axes{};                    ///< empty: those of the kernel
  std::optional<GemmWeights> stored{};  ///< of weights as they are stored
};

std::int64_t plain_bytes(const LinearKinds& kinds, std::int64_t elements) {
  return elements * (kinds.storage == HeldType::bfloat16 ? 2 : 4);
}

/// Random weights as they are stored, from which layers are packed.
class StoredSource {
 public:
  virtual ~StoredSource() = default;
  [[nodiscard]] virtual std::unique_ptr<PackedLinear> layer(std::int64_t out) const = 0;
  [[nodiscard]] virtual std::int64_t bytes() const = 0;
};

constexpr std::uint64_t kWeightSeed = 1;
constexpr float kDeviation = 0x1p-6F;  // of weights of some thousand inputs

class BlockSource final : public StoredSource {
 public:
  BlockSource(checkpoint::GgmlType type, std::int64_t in, std::int64_t out) : in_(in) {
    SplitMix64 numbers(kWeightSeed);
    blocks_ = random_block_values(type, in * out, 1.0F, numbers);
  }
  [[nodiscard]] std::unique_ptr<PackedLinear> layer(std::int64_t out) const override {
    const checkpoint::GgmlTypeInfo& type = checkpoint::info(blocks_.type);
    const auto bytes = static_cast<std::size_t>(in_ * out / type.block_size * type.block_bytes);
    const BlockPart part{blocks_.type, std::span(blocks_.bytes).first(bytes), {}};
    return std::make_unique<PackedLinear>(std::span(&part, 1), in_, ActivationPath::int8);
  }
  [[nodiscard]] std::int64_t bytes() const override { return std::ssize(blocks_.bytes); }

 private:
  std::int64_t in_;
  StoredBlocks blocks_;
};

class GroupSource final : public StoredSource {
 public:
  GroupSource(const headroom::detail::GroupFormat& format, std::int64_t in, std::int64_t out)
      : format_(format),
        numbers_(kWeightSeed),
        weights_(random_groups(format, out, in, kDeviation, numbers_)) {}
  [[nodiscard]] std::unique_ptr<PackedLinear> layer(std::int64_t out) const override {
    if (out == weights_.rows) return packed(weights_);
    SplitMix64 numbers(kWeightSeed);
    return packed(random_groups(format_, out, weights_.columns, kDeviation, numbers));
  }
  [[nodiscard]] std::int64_t bytes() const override { return bytes_of(weights_); }

 private:
  static std::unique_ptr<PackedLinear> packed(const checkpoint::GroupedWeights& weights) {
    const GroupPart part{&weights, {}};
    return std::make_unique<PackedLinear>(std::span(&part, 1), weights.columns,
                                          ActivationPath::float32);
  }

  headroom::detail::GroupFormat format_;
  SplitMix64 numbers_;
  checkpoint::GroupedWeights weights_;
};

std::unique_ptr<StoredSource> stored_source(const GemmWeights& weights, std::int64_t in,
                                            std::int64_t out) {
  using Source = std::unique_ptr<StoredSource>;
  return std::visit(Overloaded{[&](checkpoint::GgmlType type) -> Source {
                                 return std::make_unique<BlockSource>(type, in, out);
                               },
                               [&](const headroom::detail::GroupFormat& format) -> Source {
                                 return std::make_unique<GroupSource>(format, in, out);
                               }},
                    weights);
}

/// Measures one pair of (in, out) sizes, for every number of rows and threads.
class LinearShapeProbe {
 public:
  LinearShapeProbe(const LinearProbes& probes, const LinearKinds& kinds, std::int64_t in,
                   std::int64_t out)
      : kinds_(kinds), backend_(probes.backend), in_(in), out_(out) {
    if (kinds.stored) {
      stored_ = stored_source(*kinds.stored, in, out);
    } else {
      weight_ = random_floats(in * out);
    }
    const std::int64_t bytes = stored_ ? stored_->bytes() : plain_bytes(kinds, in * out);
    // GEMMs take so long that twice the last-level cache evicts their weights.
    const std::int64_t working_set =
        kinds.resource == Resource::memory ? streamed_bytes() : 2 * last_level_cache_bytes();
    const std::int64_t copies = 1 + working_set / bytes;
    for (std::int64_t i = 0; i < copies; ++i) layers_.push_back(make_layer(out));
    warm_out_ = copies >= kMinCopies ? out : kWarmFloats / in;
    warm_ = make_layer(warm_out_);
  }

  /// Times with cold and warm weights; empty if they would take too long.
  std::pair<std::optional<KernelTime>, std::optional<KernelTime>> measure(const Budget& budget,
                                                                          std::int64_t rows) {
    const bool is_smallest = rows == 1;
    const bool has_few_points = stored_ || kinds_.storage == HeldType::bfloat16;
    const double most = has_few_points ? kMaxFewPointsWork : kMaxGemmWork;
    if (!is_smallest && static_cast<double>(rows * in_ * out_) > most) return {};
    const AlignedVector<float> x = random_floats(rows * in_);
    AlignedVector<float> y = random_floats(rows * out_);
    std::optional<KernelTime> warm;
    if (rows <= kMaxWarmRows) warm = time_warm(budget, x, y, rows);
    for (const auto& layer : layers_) layer->prepare(rows);
    const Budget normalised =
        kinds_.resource == Resource::memory ? cold_gemm_budget(budget, warm) : budget;
    const auto count = static_cast<std::int64_t>(layers_.size());
    const KernelTime cold = time_call(normalised, [&](std::int64_t /*i*/) {
      layers_[static_cast<std::size_t>(next_++ % count)]->run(x.data(), y.data(), rows);
    });
    return {cold, warm.value_or(cold)};
  }

 private:
  static constexpr std::int64_t kTypicalRows = 128;
  /// GEMMs take most of a model's time, so larger points are worth measuring.
  static constexpr double kMaxGemmWork = 1.5 * kMaxWork;
  /// Weights with one kernel for any number of rows have few points, and each of them counts.
  static constexpr double kMaxFewPointsWork = 3 * kMaxWork;
  /// With fewer copies a layer's weights are too large for a cache; the warm layer then has fewer
  /// outputs.
  static constexpr std::int64_t kMinCopies = 5;
  static constexpr std::int64_t kWarmFloats = std::int64_t{1} << 20;

  /// Maximum number of rows for which the source of the weights matters: GEMMs of 192 rows took 1
  /// to 3 % longer from memory in the median of a calibration, those of 16 rows 33 to 42 %.
  static constexpr std::int64_t kMaxWarmRows = 64;

  [[nodiscard]] KernelTime time_warm(const Budget& budget, const AlignedVector<float>& x,
                                     AlignedVector<float>& y, std::int64_t rows) {
    warm_->prepare(rows);
    KernelTime time =
        time_call(budget, [&](std::int64_t /*i*/) { warm_->run(x.data(), y.data(), rows); });
    time.seconds *= static_cast<double>(out_) / static_cast<double>(warm_out_);
    return time;
  }

  [[nodiscard]] std::unique_ptr<PackedLinear> make_layer(std::int64_t out) const {
    if (stored_) return stored_->layer(out);
    const LinearPart part{std::span(weight_).first(static_cast<std::size_t>(in_ * out)), {}};
    return std::make_unique<PackedLinear>(
        std::span(&part, 1), in_,
        LinearOptions{backend_, Epilogue::none, kinds_.rows, kTypicalRows, kinds_.storage});
  }

  LinearKinds kinds_;
  Backend backend_;
  std::int64_t in_;
  std::int64_t out_;
  AlignedVector<float> weight_;  ///< unless stored
  std::unique_ptr<StoredSource> stored_;
  LinearCopies layers_;
  std::unique_ptr<PackedLinear> warm_;
  std::int64_t warm_out_ = 0;
  std::int64_t next_ = 0;
};

/// Cold and warm tables of one kernel and number of threads, one per round.
struct ColdAndWarm {
  std::vector<KernelTable> cold;
  std::vector<KernelTable> warm;
};

/// Measures all numbers of rows for the sizes at indices `in` and `out` of their axes.
void measure_rows(LinearShapeProbe& probe, const Budget& budget, std::size_t in, std::size_t out,
                  KernelTable& cold, KernelTable& warm) {
  const auto& rows = cold.axes[0];
  for (std::size_t row = 0; row < rows.size(); ++row) {
    const auto times = probe.measure(budget, to_integer(rows[row]));
    const std::size_t at[] = {row, in, out};
    const std::size_t number = point_number(cold.axes, at);
    store(cold, number, times.first);
    store(warm, number, times.second);
  }
}

/// Measures one kind of linear layer, in rounds, for every number of threads.
class LinearKindProbe {
 public:
  LinearKindProbe(const LinearProbes& probes, const LinearKinds& kinds,
                  std::vector<ThreadProfile>& profiles)
      : probes_(probes), kinds_(kinds), profiles_(profiles), tables_(profiles.size()) {}

  /// Calls `observer` with the completed fraction of these rounds.
  [[nodiscard]] bool measure(const std::function<bool(double)>& observer) {
    const Budget& budget = probes_.budgets.front();
    const KernelGrid axes =
        kinds_.axes.empty() ? calibration_axes(kinds_.cold, budget.effort) : kinds_.axes;
    // In rounds, so that a disturbance of a second spoils only one of them.
    for (Rounds rounds(budget.rounds, kinds_.max_s); rounds.allows_another();
         rounds.finish_round()) {
      for (ColdAndWarm& tables : tables_) {
        tables.cold.push_back(unmeasured_table(kinds_.cold, axes));
        tables.warm.push_back(unmeasured_table(kinds_.warm, axes));
      }
      for (std::size_t in = 0; in < axes[1].size(); ++in) {
        const std::size_t done = rounds.finished() * axes[1].size() + in;
        if (!observer(static_cast<double>(done) /
                      static_cast<double>(budget.rounds * axes[1].size()))) {
          return false;
        }
        measure_outputs(axes, in);
      }
    }
    return true;
  }

  /// Adds the median of the rounds to every profile.
  void store_tables() {
    for (std::size_t t = 0; t < profiles_.size(); ++t) {
      profiles_[t].tables.push_back(median_of(tables_[t].cold));
      profiles_[t].tables.push_back(median_of(tables_[t].warm));
    }
  }

  /// Adds it to every profile as the GEMMs of weights in `format`, in place of older ones.
  void store_gemms(const std::string& format) {
    for (std::size_t t = 0; t < profiles_.size(); ++t) {
      std::erase_if(profiles_[t].stored_gemms,
                    [&](const StoredGemm& gemm) { return gemm.format == format; });
      profiles_[t].stored_gemms.push_back({format, median_of(tables_[t].cold),
                                           median_of(tables_[t].warm), probes_.budgets[t].effort});
    }
  }

 private:
  /// Measures all output sizes for one input size.
  void measure_outputs(const KernelGrid& axes, std::size_t in) {
    for (std::size_t out = 0; out < axes[2].size(); ++out) {
      LinearShapeProbe probe(probes_, kinds_, to_integer(axes[1][in]), to_integer(axes[2][out]));
      for (std::size_t t = 0; t < profiles_.size(); ++t) {
        omp_set_num_threads(profiles_[t].threads);
        measure_rows(probe, probes_.budgets[t], in, out, tables_[t].cold.back(),
                     tables_[t].warm.back());
      }
    }
  }

  const LinearProbes& probes_;
  LinearKinds kinds_;
  std::vector<ThreadProfile>& profiles_;
  std::vector<ColdAndWarm> tables_;
};

}  // namespace

bool probe_linears(const LinearProbes& probes, std::vector<ThreadProfile>& profiles,
                   const std::function<bool(double)>& observer) {
  const LinearKinds all_kinds[] = {
      {KernelKind::linear_cold, KernelKind::linear_warm, RowRange::many, HeldType::float32,
       Resource::compute, 20},
      {KernelKind::stream_float32_cold, KernelKind::stream_float32_warm, RowRange::few,
       HeldType::float32, Resource::memory, 4},
      {KernelKind::linear_bfloat16_cold, KernelKind::linear_bfloat16_warm, RowRange::both,
       HeldType::bfloat16, Resource::memory, 5}};
  double done_s = 0;
  double all_s = 0;
  for (const LinearKinds& kinds : all_kinds) all_s += kinds.max_s;
  for (const LinearKinds& kinds : all_kinds) {
    LinearKindProbe probe(probes, kinds, profiles);
    const auto on_progress = [&](double fraction) {
      return observer((done_s + fraction * kinds.max_s) / all_s);
    };
    if (!probe.measure(on_progress)) return false;
    probe.store_tables();
    done_s += kinds.max_s;
  }
  return true;
}

std::string format_name(const GemmWeights& weights) {
  return std::visit(
      Overloaded{
          [](checkpoint::GgmlType type) { return std::string(checkpoint::info(type).name); },
          [](const headroom::detail::GroupFormat& format) { return headroom::name_of(format); }},
      weights);
}

bool probe_stored_gemms(const LinearProbes& probes, const GemmWeights& weights,
                        std::vector<ThreadProfile>& profiles,
                        const std::function<bool(double)>& observer) {
  LinearKindProbe probe(
      probes,
      {KernelKind::linear_cold, KernelKind::linear_warm, RowRange::both, HeldType::stored,
       Resource::memory, 5, stored_gemm_axes(probes.budgets.front().effort), weights},
      profiles);
  if (!probe.measure(observer)) return false;
  probe.store_gemms(format_name(weights));
  return true;
}

}  // namespace headroom::measured
