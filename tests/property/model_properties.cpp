#include "model_properties.h"

#include <exception>
#include <optional>
#include <typeinfo>

#include "headroom/error.h"

namespace headroom::test {
namespace {

/// Calls `function`. An error must say what is wrong with the input; anything else is a finding.
/// Returns the message of the error, if there was one.
template <class Function>
std::optional<std::string> guarded(const char* step, Findings& findings, const Function& function) {
  try {
    function();
    return std::nullopt;
  } catch (const Error& error) {
    findings.require(error.code() != ErrorCode::internal,
                     std::string(step) + ": internal error: " + error.what());
    findings.require(!error.message().empty(), std::string(step) + ": an error without a message");
    return error.what();
  } catch (const std::exception& error) {
    findings.require(false, std::string(step) + ": " + typeid(error).name() + ": " + error.what());
    return error.what();
  }
}

WorkloadRequest random_request(const ModelSpec& spec, Random& random) {
  WorkloadRequest request;
  request.phase = random.one_of(std::vector{Phase::prefill, Phase::decode, Phase::train});
  request.attention =
      random.one_of(std::vector{AttentionImplementation::eager, AttentionImplementation::fused});
  request.batch_size = random.between(1, 3);
  request.dtype = DType::float32;
  const bool decodes = request.phase == Phase::decode;
  if (!spec.embedding.image) request.seq_len = decodes ? 1 : random.between(1, 20);
  if (decodes) request.past_len = random.between(1, 20);
  if (spec.reads_two_sequences()) request.enc_seq_len = random.between(1, 20);
  if (request.phase == Phase::train) {
    request.recompute =
        random.one_of(std::vector{Recompute::none, Recompute::selective, Recompute::full});
    request.kernels = random.one_of(std::vector{Kernels::reference, Kernels::fused});
  }
  return request;
}

}  // namespace

CheckedModel check_model(const nlohmann::json& config, std::uint64_t seed) {
  CheckedModel checked;
  Findings& findings = checked.findings;
  Random random(seed);
  ModelSpec spec;
  const auto refusal = guarded(
      "read", findings, [&] { spec = read_model_spec(config.dump(), "config.json", "random"); });
  if (refusal) {
    checked.refusal = *refusal;
    return checked;
  }
  checked.reached = Reached::counted;
  const WorkloadRequest request = random_request(spec, random);
  guarded("analyze", findings, [&] { check_report(spec, request, findings); });
  guarded("explain", findings, [&] { check_explanations(spec, request, findings); });
  guarded("shard", findings, [&] { check_shards(spec, random, findings); });
  if (!spec.not_run.empty()) return checked;
  guarded("measure", findings, [&] {
    if (check_run(spec, request, findings)) checked.reached = Reached::run;
  });
  if (checked.reached == Reached::run) {
    guarded("decode", findings, [&] { check_decode(spec, random, findings); });
  }
  return checked;
}

}  // namespace headroom::test
