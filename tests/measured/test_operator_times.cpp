// Kernel calls that an operator's predicted time consists of, over all tiny reference models: every
// operator has some, and they do at least its matrix multiplications.
#include <doctest/doctest.h>

#include <algorithm>
#include <bitset>
#include <cmath>

#include "headroom/error.h"
#include "headroom/report.h"
#include "kernel_calls.h"
#include "operator_time.h"
#include "support/data.h"
#include "support/sanitized.h"

using namespace headroom;

namespace {

/// Configs of the tiny models: of every family that has reference outputs, and of state spaces.
std::vector<std::filesystem::path> tiny_models() {
  std::vector<std::filesystem::path> models = test::golden_models();
  for (const char* const folder : {"families", "state_spaces/configs"}) {
    for (const auto& entry : std::filesystem::directory_iterator(test::data_folder() / folder)) {
      models.push_back(entry.path());
    }
  }
  return models;
}

/// The pass that ends at position 16, where every compressed window is complete; empty if the model
/// has none.
std::optional<AnalyzeReport> pass_of(const Model& model, Phase phase,
                                     AttentionImplementation attention) {
  constexpr std::int64_t kTokens = 16;
  WorkloadRequest request;
  request.phase = phase;
  request.attention = attention;
  if (phase == Phase::decode) {
    request.past_len = kTokens - 1;
  } else {
    request.seq_len = kTokens;
  }
  if (model.spec.reads_two_sequences()) request.enc_seq_len = kTokens;
  try {
    return make_analyze_report(model, request);
  } catch (const Error&) {
    return std::nullopt;
  }
}

template <class Check>
void check_operators(const AnalyzeReport& pass, const Check& check) {
  const Bindings sizes = bindings_of(pass.workload, pass.graph);
  auto cost = pass.analysis.nodes.begin();
  for (const Block& block : pass.graph.blocks) {
    const auto layers = static_cast<double>(block.repeat.evaluate(sizes));
    for (const Node& node : block.nodes) {
      const Expr& flops = (cost++)->cost.forward.matrix_flops;
      CAPTURE(block.path + "." + node.path);
      check({pass.graph, block, node}, static_cast<double>(flops.evaluate(sizes)) / layers, sizes);
    }
  }
}

/// Calls check(place, matrix FLOPs in one layer, sizes) for every operator of the tiny models, in
/// prefill and decode, with eager and fused attention.
template <class Check>
void for_each_operator(const Check& check) {
  for (const auto& file : tiny_models()) {
    CAPTURE(file.string());
    const Model model = load_model(file.string());
    if (!model.spec.not_run.empty()) continue;
    for (const Phase phase : {Phase::prefill, Phase::decode}) {
      for (const auto attention :
           {AttentionImplementation::eager, AttentionImplementation::fused}) {
        if (const auto pass = pass_of(model, phase, attention)) check_operators(*pass, check);
      }
    }
  }
}

/// FLOPs per unit of a kernel's work (work_of). Multiply-adds are two; fused attention multiplies
/// twice, and linear attention adds to its state and reads it. An element-wise kernel takes in two
/// multiply-adds at most.
double flops_per_work(KernelKind kind) {
  const std::string_view name = info_of(kind).name;
  const bool two_products = name.find("fused") != std::string_view::npos ||
                            name.find("linear_attention") != std::string_view::npos;
  const bool elementwise = info_of(kind).axes.size() < 3;
  return two_products || elementwise ? 4 : 2;
}

/// Profile by which a unit of any kernel's work takes a nanosecond, and nothing else takes time.
ThreadProfile unit_profile() {
  ThreadProfile profile;
  profile.read = profile.write = {{1 << 20, 1e10}};
  for (const KernelInfo& info : kernel_kinds()) {
    KernelTable table = unmeasured_table(info.kind, KernelGrid(info.axes.size(), {1}));
    table.seconds.front() = 1e-9;
    profile.tables.push_back(std::move(table));
  }
  return profile;
}

template <class Wanted>
constexpr std::size_t kind_number() {
  return Op(Wanted{}).index();
}

}  // namespace

TEST_CASE("every operator that runs takes time" * doctest::skip(test::kSanitized)) {
  const ThreadProfile profile = unit_profile();
  std::bitset<std::variant_size_v<OpVariant>> seen;
  for_each_operator([&](const detail::NodePlace& place, double, const Bindings& sizes) {
    const auto calls = detail::kernel_calls(place, sizes, {});
    REQUIRE_FALSE(calls.empty());
    for (const detail::KernelCall& call : calls) {
      REQUIRE(call.sizes.size() == info_of(call.kind).axes.size());
      CHECK(call.times > 0);
    }
    const double seconds = detail::measured_time(profile, calls, {}, {1e6, 32e6}, 1).time_s;
    CHECK(std::isfinite(seconds));
    CHECK(seconds > 0);
    seen.set(place.node.op.index());
  });
  for (const std::size_t kind :
       {kind_number<KeyCompression>(), kind_number<IndexScores>(), kind_number<KeySelect>(),
        kind_number<StreamWeights>(), kind_number<StreamStep>(), kind_number<ShortConvolution>(),
        kind_number<StateSpaceScan>(), kind_number<GatedDelta>(),
        kind_number<GatedLinearRecurrence>(), kind_number<WeightedKeyValue>(),
        kind_number<ValueBonus>(), kind_number<TransformerXlBias>(), kind_number<ExpertLinear>(),
        kind_number<AttentionScores>(), kind_number<FusedAttention>()}) {
    CAPTURE(kind);
    CHECK(seen.test(kind));
  }
}

TEST_CASE("the kernels of an operator's time multiply at least as much as the operator" *
          doctest::skip(test::kSanitized)) {
  for_each_operator([&](const detail::NodePlace& place, double flops, const Bindings& sizes) {
    double timed = 0;
    for (const detail::KernelCall& call : detail::kernel_calls(place, sizes, {})) {
      timed += call.times * work_of(call.kind, call.sizes) * flops_per_work(call.kind);
    }
    // Sums over positions and biases, which count as products, are not all timed.
    constexpr double kShare = 0.8;
    CHECK(timed >= kShare * flops);
  });
}
