// The measured half of check_model: real runs of tiny models.
#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "golden_values.h"
#include "headroom/error.h"
#include "model_properties.h"
#include "run_memory.h"
#include "session.h"

namespace headroom::test {
namespace {

using namespace headroom::measured;

/// Larger runs take too long for many of them.
constexpr Integer kMostParameters = 2'000'000;
constexpr Integer kMostFlops = 50'000'000;

Lengths lengths_of_workload(const Workload& workload) {
  Lengths lengths;
  lengths.batch = workload.batch_size;
  lengths.seq_len = workload.seq_len;
  lengths.enc_seq_len = workload.enc_seq_len;
  lengths.past = workload.past_len;
  lengths.capacity = workload.past_len + workload.seq_len;
  lengths.images = workload.images.totals;
  lengths.global_tokens = workload.global_tokens;
  return lengths;
}

/// A prediction of headroom's own kernels.
TimeRequest own_kernels() {
  TimeRequest request;
  request.computes_in_float32 = true;
  return request;
}

void check_counts(const Session& session, const Workload& workload, const RunFigures& figures,
                  Findings& findings) {
  const ModelInputs inputs = random_inputs(session.spec(), workload, 1);
  const Lengths lengths = lengths_of_workload(workload);
  KvCache cache = session.make_cache(lengths);
  cache.fill(1);
  const auto program = session.program(workload.phase, inputs, lengths, cache);
  program->run();
  std::int64_t flops = 0;
  for (const ProgramBlock& block : program->blocks()) {
    for (const StepCount& count : block.counts) flops += count.matrix_flops;
  }
  const auto equal = [&](Integer counted, Integer analysed, const char* what) {
    findings.require(
        counted == analysed,
        fmt::format("{} {}: the run counts {}, the analysis {} {}", name_of(workload.phase),
                    name_of(workload.attention), to_string(counted), to_string(analysed), what));
  };
  equal(flops, figures.matrix_flops, "matrix FLOPs");
  equal(cache.bytes(), figures.kv_cache_bytes.value_or(0), "bytes of KV-cache");
  equal(program->arena_peak_bytes(), figures.peak_activation_bytes, "bytes of activations");
  equal(session.weights().bytes(), figures.weight_bytes, "bytes of weights");
}

}  // namespace

bool check_run(const ModelSpec& spec, const WorkloadRequest& asked, Findings& findings) {
  WorkloadRequest request = asked;
  if (request.phase == Phase::train) request.phase = Phase::prefill;
  request.recompute = Recompute::none;
  request.kernels = Kernels::reference;
  const Workload workload = resolve(request, spec);
  const RunFigures figures = predict_run(spec, workload, own_kernels());
  if (figures.parameters > kMostParameters || figures.matrix_flops > kMostFlops) return false;
  require_run_fits(spec, {workload, 0, HeldType::float32}, memory_limit());
  const auto source = random_weights(1);
  const Session session(
      spec, *source, {Backend::eigen, HeldType::float32, RowRange::both, 18, workload.attention});
  check_counts(session, workload, figures, findings);
  return true;
}

/// Padding advances no position of a prefill, but counts as past of RoBERTa's decode steps
/// (create_position_ids_from_input_ids), so that both give other positions.
bool has_padding(const ModelSpec& spec, std::span<const std::int64_t> ids) {
  const std::int64_t padding = spec.position.offset - 1;
  return spec.position.skips_padding && std::ranges::find(ids, padding) != ids.end();
}

void check_decode(const ModelSpec& spec, Random& random, Findings& findings) {
  const bool generates = spec.main_stack().causal() && spec.head.language_model &&
                         spec.kind != ModelKind::encoder_decoder && !spec.tower &&
                         spec.embedding.input == InputKind::tokens;
  constexpr std::int64_t kNewTokens = 4;
  constexpr std::int64_t kLongestPrompt = 9;
  // longrope's factors change with the length of a pass, and so does the base of dynamic scaling
  // beyond the trained positions: a prefill rotates all keys differently.
  const RopeSpec& rope = spec.position.rope;
  const bool is_beyond =
      kLongestPrompt + kNewTokens > spec.position.max_position_embeddings - spec.position.offset;
  const bool changes_rotation =
      !rope.long_factors.empty() || (rope.scaling == RopeScalingKind::dynamic && is_beyond);
  if (!generates || changes_rotation) return;
  WorkloadRequest request;
  request.dtype = DType::float32;
  request.seq_len = random.between(1, kLongestPrompt);
  const Workload prompt = resolve(request, spec);
  require_run_fits(spec, {prompt, kNewTokens, HeldType::float32}, memory_limit());
  const auto source = random_weights(random.below(1000));
  Session session(spec, *source, {});
  ModelInputs inputs = random_inputs(spec, prompt, 1);
  const Generation steps = session.generate({inputs.main, {}, kNewTokens});
  inputs.main.ids.assign(steps.ids.begin(), steps.ids.end() - 1);
  if (has_padding(spec, inputs.main.ids)) return;
  inputs.main.seq_len = std::ssize(inputs.main.ids);
  const auto outputs = session.forward(inputs);
  const auto all = std::ranges::find(outputs, "logits", &NamedTensor::name);
  if (all == outputs.end()) return findings.require(false, "a language model has no logits");
  const std::vector<float>& got = steps.logits.values;
  const std::vector<float> whole(all->values.end() - std::ssize(got), all->values.end());
  // Random weights amplify rounding, most through recurrences; a wrong position or key gives 10^4.
  constexpr double kMostRounding = 100;
  const double error = measured::testing::error_over_tolerance(got, whole);
  findings.require(error <= kMostRounding,
                   fmt::format("decode steps differ from one prefill by {}", error));
}

}  // namespace headroom::test
