// Probes of sums, copies, norms and embeddings, and of plain reading and writing.
#include <algorithm>
#include <cstring>
#include <memory>

#include "kernels/bandwidth.h"
#include "kernels/elementwise.h"
#include "kernels/embedding.h"
#include "kernels/normalize.h"
#include "last_cache.h"
#include "probes.h"

namespace headroom::measured {
namespace {

constexpr std::int64_t kRowWidth = 1000;  // row width of row-wise operands

/// Operands of a call: one or two arrays.
struct Arrays {
  AlignedVector<float> x;
  AlignedVector<float> y;

  /// Rewrites x, as the operator before does.
  void rewrite() { write_rows(x, std::min(static_cast<std::int64_t>(x.size()), kRowWidth)); }
};

/// A call with its operands.
struct PreparedCall {
  std::function<void()> run;
  std::shared_ptr<Arrays> operands;
};

std::shared_ptr<Arrays> make_arrays(std::int64_t x, std::int64_t y = 0) {
  return std::make_shared<Arrays>(Arrays{random_floats(x), random_floats(y)});
}

/// Times calls made by `prepare(count)`, each with operands of its own. Operands that were not just
/// written come from the last-level cache, since others have passed through the nearer ones, or
/// from memory if a layer would evict them.
template <class Prepare>
KernelTime time_elements(const Budget& budget, std::int64_t count, const Prepare& prepare) {
  const std::int64_t copies = std::clamp<std::int64_t>(kCycleBytes / 4 / count, 1, 64);
  std::vector<PreparedCall> calls;
  calls.reserve(static_cast<std::size_t>(copies));
  for (std::int64_t i = 0; i < copies; ++i) calls.push_back(prepare(count));
  const auto call = [&](std::int64_t i) -> PreparedCall& {
    return calls[static_cast<std::size_t>(i % copies)];
  };
  return time_call(
      budget, [&](std::int64_t i) { call(i).run(); },
      [&](std::int64_t i) {
        if (copies == 1) evict(calls.front().operands->y);
        // Lowers the clock, as the matrix product before an operator does.
        if (budget.gauge != nullptr) budget.gauge->lower_clock();
        call(i).operands->rewrite();
      });
}

/// Sweeps a kernel over numbers of elements.
template <class Prepare>
KernelTable sweep_elements(const Budget& budget, KernelKind kind, const Prepare& prepare) {
  return sweep(budget, kind, [&](const KernelSizes& sizes) {
    return std::optional(time_elements(budget, to_integer(sizes[0]), prepare));
  });
}

void probe_sum_and_copy(const Budget& budget, std::vector<KernelTable>& tables) {
  tables.push_back(sweep_elements(budget, KernelKind::residual_add, [](std::int64_t count) {
    const auto a = make_arrays(count, count);
    return PreparedCall{[=] { add_residual(a->x.data(), a->y.data(), count); }, a};
  }));
  tables.push_back(sweep_elements(budget, KernelKind::copy, [](std::int64_t count) {
    const auto a = make_arrays(count, count);
    return PreparedCall{[=] {
                          std::memcpy(a->y.data(), a->x.data(),
                                      static_cast<std::size_t>(count) * sizeof(float));
                        },
                        a};
  }));
}

/// Embedding lookup in a table that exceeds every cache.
void probe_embedding(const Budget& budget, std::vector<KernelTable>& tables) {
  tables.push_back(sweep(budget, KernelKind::embedding, [&](const KernelSizes& s) {
    const std::int64_t tokens = to_integer(s[0]);
    const std::int64_t width = to_integer(s[1]);
    const std::int64_t floats = 2 * last_level_cache_bytes() / 4;
    const std::int64_t rows = floats / width;
    const float* const table = shared_floats(floats);
    std::vector<std::int64_t> ids(static_cast<std::size_t>(tokens));
    AlignedVector<float> out = random_floats(tokens * width);
    std::int64_t next = 0;
    const TokenEmbeddingArguments args{
        1, tokens, width,
        [&](std::int64_t row, float* to) { std::copy_n(table + row * width, width, to); },
        ids.data()};
    return std::optional(time_call(budget, [&](std::int64_t /*i*/) {
      for (std::int64_t& id : ids) id = next = (next + 7919) % rows;
      embed_tokens(args, out.data());
    }));
  }));
}

void probe_norms(const Budget& budget, std::vector<KernelTable>& tables) {
  for (const KernelKind kind : {KernelKind::layer_norm, KernelKind::rms_norm}) {
    const auto kernel = kind == KernelKind::layer_norm ? layer_norm : rms_norm;
    tables.push_back(sweep(budget, kind, [&](const KernelSizes& s) {
      const AlignedVector<float> weight = random_floats(to_integer(s[1]));
      const NormArguments args{to_integer(s[0]), to_integer(s[1]), weight.data(),
                               kind == KernelKind::layer_norm ? weight.data() : nullptr, 1e-5F};
      return std::optional(time_elements(budget, to_integer(s[0] * s[1]), [&](std::int64_t count) {
        const auto a = make_arrays(count, count);
        return PreparedCall{[=] { kernel(args, a->x.data(), a->y.data()); }, a};
      }));
    }));
  }
}

/// Working sets from L1 to memory.
std::vector<std::int64_t> working_sets() {
  std::vector<std::int64_t> sets;
  for (std::int64_t bytes = 16 << 10; bytes < 2 * last_level_cache_bytes(); bytes *= 4) {
    sets.push_back(bytes);
  }
  sets.push_back(4 * last_level_cache_bytes());
  return sets;
}

}  // namespace

void probe_elementwise(const Budget& full_budget, std::vector<KernelTable>& tables) {
  const Budget budget = in_one_round(full_budget);
  probe_sum_and_copy(budget, tables);
  probe_embedding(budget, tables);
  probe_norms(budget, tables);
}

std::vector<BandwidthPoint> probe_read(const Budget& budget) {
  std::vector<BandwidthPoint> points;
  for (const std::int64_t bytes : working_sets()) {
    const AlignedVector<float> values = random_floats(bytes / 4);
    const KernelTime time =
        time_call(budget, [&](std::int64_t /*i*/) { read_through(values.data(), bytes / 4); });
    points.push_back({bytes, static_cast<double>(bytes) / time.seconds});
  }
  return points;
}

std::vector<BandwidthPoint> probe_write(const Budget& budget) {
  std::vector<BandwidthPoint> points;
  for (const std::int64_t bytes : working_sets()) {
    AlignedVector<float> values = random_floats(bytes / 4);
    const KernelTime time = time_call(budget, [&](std::int64_t i) {
      write_all(values.data(), bytes / 4, static_cast<float>(i));
    });
    points.push_back({bytes, static_cast<double>(bytes) / time.seconds});
  }
  return points;
}

}  // namespace headroom::measured
