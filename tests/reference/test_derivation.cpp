// Derivations step by step: the subtotals that textbooks give.
#include <doctest/doctest.h>

#include <algorithm>

#include "headroom/derivation.h"
#include "support/data.h"

using namespace headroom;
using namespace headroom::test;

namespace {

const DerivationGroup& group_of(const Derivation& derivation, const std::string& path,
                                const std::string& name) {
  for (const DerivationBlock& block : derivation.blocks) {
    if (block.path != path) continue;
    const auto group = std::ranges::find(block.groups, name, &DerivationGroup::name);
    REQUIRE(group != block.groups.end());
    return *group;
  }
  FAIL("no block " << path);
  return derivation.blocks.front().groups.front();
}

std::string subtotal(const Derivation& derivation, const std::string& path,
                     const std::string& name) {
  return format(group_of(derivation, path, name).subtotal.formula);
}

WorkloadRequest training_16_bit() {
  WorkloadRequest request;
  request.phase = Phase::train;
  request.dtype = DType::bfloat16;
  request.kernels = Kernels::fused;
  return request;
}

}  // namespace

TEST_CASE("the FLOPs of BERT derive as 8bsd² + 4bs²d and 16bsd² per layer") {
  // Narayanan et al. 2021, arXiv 2104.04473, appendix: 6 + 2 and 2 + 2, and 8 + 8.
  const Derivation derivation = make_derivation(load_model("bert-base"), {}, Subject::flops);
  CHECK(subtotal(derivation, "encoder.layers", "attention") == "8·b·s·d² + 4·b·s²·d");
  CHECK(subtotal(derivation, "encoder.layers", "mlp") == "16·b·s·d²");
  std::vector<std::string> names;
  const DerivationGroup& attention = group_of(derivation, "encoder.layers", "attention");
  for (const DerivationStep& step : attention.steps) names.push_back(step.name);
  CHECK(names ==
        std::vector<std::string>{"query", "key", "value", "scores", "softmax", "context", "out"});
  CHECK(attention.steps.front().operands == "X[b,s,d] × W[d,h·k] → [b,s,h·k]");
  CHECK(format(attention.steps.front().product) == "2·b·s·d·h·k");
  CHECK(format(attention.steps.front().formula) == "2·b·s·d²");
}

TEST_CASE("the parameters of BERT derive as 4d² and 8d² per layer and biases") {
  // Devlin et al. 2019: 110 M; Kaplan et al. 2020, table 1: 12·l·d² without biases and norms.
  const Derivation derivation = make_derivation(load_model("bert-base"), {}, Subject::params);
  CHECK(subtotal(derivation, "encoder.layers", "attention") == "4·d² + 4·d");
  CHECK(subtotal(derivation, "encoder.layers", "mlp") == "8·d² + 5·d");
  CHECK(derivation.total.value == 109'482'240);
}

TEST_CASE("the saved activations of GPT-2 derive as 11bsd + 5bs²h, 19bsd and 4bsd per layer") {
  // Korthikanti et al. 2022, arXiv 2205.05198, section 4.1; the paper leaves out the statistics of
  // the norms, 2 bytes for the mean and 2 for the deviation of each row.
  const Derivation derivation =
      make_derivation(load_model("gpt2"), training_16_bit(), Subject::activations);
  CHECK(subtotal(derivation, "decoder.layers", "attention") == "11·b·s·d + 5·b·s²·h");
  CHECK(subtotal(derivation, "decoder.layers", "mlp") == "19·b·s·d");
  CHECK(subtotal(derivation, "decoder.layers", "norms") == "4·b·s·d + 8·b·s");
}

TEST_CASE("a KV-cache derives as keys and values, with 2 bytes each") {
  WorkloadRequest request;
  request.seq_len = 8192;
  request.dtype = DType::bfloat16;
  const Derivation derivation = make_derivation(load_model("llama-3-8b"), request, Subject::kv);
  const DerivationGroup& attention = group_of(derivation, "decoder.layers", "attention");
  REQUIRE(attention.steps.size() == 2);
  CHECK(attention.steps[0].operands == "[b,g,t,k] × 2 B");
  CHECK(format(attention.steps[0].formula) == "2·b·s·g·k");
  CHECK(derivation.total.value == 1'073'741'824);  // 131,072 B per token, as engines allocate
}

TEST_CASE("model states derive as 2 + 4 + 12 bytes per parameter with Adam in mixed precision") {
  const Derivation derivation =
      make_derivation(load_model("gpt2"), training_16_bit(), Subject::states);
  CHECK(derivation.total.value == Integer{18} * 124'439'808);
  CHECK(derivation.blocks.front().groups[0].subtotal.value == Integer{6} * 124'439'808);
  CHECK(derivation.blocks.front().groups[1].subtotal.value == Integer{12} * 124'439'808);
}

TEST_CASE("full recomputation adds the layers' forward pass to a training step") {
  WorkloadRequest request = training_16_bit();
  request.recompute = Recompute::full;
  const Derivation derivation = make_derivation(load_model("gpt2"), request, Subject::training);
  REQUIRE(derivation.blocks.size() == 3);
  CHECK(derivation.blocks[1].all.value == 2 * derivation.blocks[0].all.value);
  // 12 layers of 24·b·s·d² + 4·b·s²·d (Narayanan et al. 2021, eq. 3)
  CHECK(derivation.blocks[2].all.value == 22'347'251'712);
}

TEST_CASE("a figure that is no sum of steps is refused with a remedy") {
  CHECK(refusal_of([] {
          return make_derivation(load_model("bert-base"), {}, Subject::activations);
        }).find("maximum over the operators") != std::string::npos);
  CHECK(refusal_of([] {
          return make_derivation(load_model("bert-base"), {}, Subject::states);
        }).find("training step") != std::string::npos);
  CHECK(refusal_of([] {
          return make_derivation(load_model("bert-base"), {}, Subject::kv);
        }).find("no KV-cache") != std::string::npos);
}
