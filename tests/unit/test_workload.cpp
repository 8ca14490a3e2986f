// Requests become workloads; impossible requests are errors.
#include <doctest/doctest.h>

#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "headroom/error.h"
#include "support/data.h"

using namespace headroom;
using namespace headroom::test;

namespace {

ModelSpec preset(const char* name) { return load_model(name).spec; }

/// Average number of four experts in use, over all choices of two of them by each token.
double experts_in_use(int tokens) {
  constexpr std::array kPairs{3U, 5U, 6U, 9U, 10U, 12U};  // two of four bits
  std::vector<unsigned> used{0};
  for (int token = 0; token < tokens; ++token) {
    std::vector<unsigned> next;
    for (const unsigned experts : used) {
      for (const unsigned pair : kPairs) next.push_back(experts | pair);
    }
    used = next;
  }
  double sum = 0;
  for (const unsigned experts : used) sum += std::popcount(experts);
  return sum / static_cast<double>(used.size());
}

Integer experts_read(const LayerTraits& traits, std::int64_t batch, std::int64_t tokens) {
  Workload workload;
  workload.batch_size = batch;
  workload.seq_len = tokens;
  return *bindings_of(workload, traits).get(Symbol::experts_read);
}

}  // namespace

TEST_CASE(
    "the experts that a pass reads are those in use on average over all choices of its tokens") {
  LayerTraits traits;
  traits.num_experts = 4;
  traits.num_experts_per_tok = 2;
  for (const int tokens : {1, 2, 4, 5, 6}) {
    CAPTURE(tokens);
    CHECK(experts_read(traits, 1, tokens) == std::llround(experts_in_use(tokens)));
    CHECK(experts_read(traits, tokens, 1) == std::llround(experts_in_use(tokens)));
  }
  // DeepSeek-V3: one token uses its 8 experts, a long prompt all 256.
  traits.num_experts = 256;
  traits.num_experts_per_tok = 8;
  CHECK(experts_read(traits, 1, 1) == 8);
  CHECK(experts_read(traits, 1, 100'000) == 256);
  // A rank with fewer experts than a token chooses reads all of them.
  traits.num_experts = 4;
  CHECK(experts_read(traits, 1, 1) == 4);
  CHECK(experts_read(LayerTraits{}, 1, 7) == 0);
}

TEST_CASE("unset lengths have stated defaults") {
  CHECK(resolve({}, preset("bert-base")).seq_len == 128);
  CHECK(resolve({}, preset("bert-base")).past_len == 0);
  WorkloadRequest decode;
  decode.phase = Phase::decode;
  const Workload step = resolve(decode, preset("gpt2"));
  CHECK(step.seq_len == 1);
  CHECK(step.past_len == 127);
  CHECK(resolve({}, preset("t5-small")).enc_seq_len == 128);
}

TEST_CASE("activations have the config's 16-bit type by default, else float32") {
  CHECK(resolve({}, preset("llama-3-8b")).dtype == DType::bfloat16);
  CHECK(resolve({}, preset("llama-2-7b")).dtype == DType::float16);
  CHECK(resolve({}, preset("bert-base")).dtype == DType::float32);
}

TEST_CASE("activations of 8 bits are refused with the options for weights and GEMMs") {
  WorkloadRequest request;
  request.dtype = DType::float8;
  try {
    (void)resolve(request, preset("llama-3-8b"));
    FAIL("accepted");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::invalid_input);
    CHECK(error.hint().find("`weights` float8") != std::string::npos);
    CHECK(error.hint().find("`arithmetic` float8") != std::string::npos);
  }
}

TEST_CASE("GEMMs compute in the type of the activations by default") {
  WorkloadRequest request;
  CHECK(resolve(request, preset("llama-3-8b")).arithmetic_type() == DType::bfloat16);
  request.arithmetic = DType::float8;
  const Workload workload = resolve(request, preset("llama-3-8b"));
  CHECK(workload.arithmetic_type() == DType::float8);
  CHECK(workload.dtype == DType::bfloat16);
}

TEST_CASE("the KV-cache has the type of the activations by default") {
  WorkloadRequest request;
  request.dtype = DType::bfloat16;
  CHECK(resolve(request, preset("gpt2")).kv_dtype == DType::bfloat16);
  request.kv_dtype = DType::float8;
  CHECK(resolve(request, preset("gpt2")).kv_dtype == DType::float8);
}

TEST_CASE("a request that a model cannot run is an error") {
  const auto refused = [](const WorkloadRequest& request, const char* name) {
    CHECK_THROWS_AS((void)resolve(request, preset(name)), Error);
  };
  WorkloadRequest decode;
  decode.phase = Phase::decode;
  refused(decode, "bert-base");
  refused(decode, "vit-base");
  WorkloadRequest past;
  past.past_len = 5;
  refused(past, "bert-base");
  past.phase = Phase::train;
  refused(past, "gpt2");
  for (const std::int64_t value : {std::int64_t{0}, std::int64_t{-1}}) {
    WorkloadRequest request;
    request.batch_size = value;
    refused(request, "gpt2");
    request = {};
    request.seq_len = value;
    refused(request, "gpt2");
    request = {};
    request.enc_seq_len = value;
    refused(request, "t5-small");
  }
  WorkloadRequest negative;
  negative.past_len = -1;
  refused(negative, "gpt2");
  WorkloadRequest encoder_length;
  encoder_length.enc_seq_len = 64;
  refused(encoder_length, "gpt2");
  WorkloadRequest recompute;
  recompute.recompute = Recompute::full;
  refused(recompute, "gpt2");
}

TEST_CASE("tokens beyond the trained positions are noted") {
  WorkloadRequest request;
  CHECK(notes_on(resolve(request, preset("bert-base")), preset("bert-base")).empty());
  request.seq_len = 513;
  CHECK(notes_on(resolve(request, preset("bert-base")), preset("bert-base")).size() == 1);
  // RoBERTa's table of 514 rows has 512 usable positions.
  CHECK(notes_on(resolve(request, preset("roberta-base")), preset("roberta-base")).size() == 1);
  request.seq_len = 512;
  CHECK(notes_on(resolve(request, preset("roberta-base")), preset("roberta-base")).empty());
}

TEST_CASE("the pairs under a causal mask are exact for all lengths") {
  Workload workload;
  workload.seq_len = 4;
  workload.past_len = 3;
  // Visible keys by row: 4, 5, 6 and 7.
  CHECK(*bindings_of(workload, LayerTraits{}).get(Symbol::visible_pairs) == 4 + 5 + 6 + 7);
  workload.seq_len = std::numeric_limits<std::int64_t>::max();
  workload.past_len = workload.seq_len;
  const Integer length = workload.seq_len;
  CHECK(*bindings_of(workload, LayerTraits{}).get(Symbol::visible_pairs) ==
        length * length + length * (length + 1) / 2);
}

TEST_CASE("a step of a generation sees the prompt and the tokens before it, up to 2^63 - 1") {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  Workload prompt;
  prompt.past_len = 5;
  prompt.seq_len = 10;
  const Workload third = decode_step(prompt, 3);
  CHECK(third.phase == Phase::decode);
  CHECK(third.past_len == 17);  // 5 and 10, and the first two new tokens
  CHECK(third.seq_len == 1);
  prompt.past_len = kMost - 12;
  CHECK(decode_step(prompt, 3).past_len == kMost);
  CHECK_THROWS_AS((void)decode_step(prompt, 4), Error);
}

TEST_CASE("a KV-cache has the type that the config states, unless another is asked for") {
  nlohmann::json config = nlohmann::json::parse(find_preset("llama-3-8b")->json).at("config");
  config["quantization_config"] = {
      {"quant_method", "modelopt"}, {"quant_algo", "FP8"}, {"kv_cache_quant_algo", "FP8"}};
  const ModelSpec spec = spec_of(config);
  CHECK(resolve({}, spec).kv_dtype == DType::float8);
  CHECK(resolve({}, spec).dtype == DType::bfloat16);
  WorkloadRequest request;
  request.kv_dtype = DType::bfloat16;
  CHECK(resolve(request, spec).kv_dtype == DType::bfloat16);
  CHECK(resolve({}, preset("llama-3-8b")).kv_dtype == DType::bfloat16);
}

TEST_CASE("an image has the config's size unless the model interpolates its positions") {
  WorkloadRequest request;
  request.seq_len = 16;  // an image of 3 × 5 patches and the class token
  CHECK(!refusal_of([&] { (void)resolve(request, preset("vit-base-patch16-224")); }).empty());
  const ModelSpec dinov2 = spec_of(golden_config({{"model", "dinov2"}, {"size", "tiny"}}));
  CHECK(resolve({}, dinov2).seq_len == 17);
  CHECK(resolve(request, dinov2).seq_len == 16);
  request.seq_len = 1;
  CHECK(!refusal_of([&] { (void)resolve(request, dinov2); }).empty());
}

TEST_CASE("the last token's logits are for models that generate, and not for training") {
  WorkloadRequest request;
  request.logits = Logits::last;
  const auto refusal = [&](const char* name) {
    return refusal_of([&] { (void)resolve(request, preset(name)); });
  };
  CHECK(refusal("gpt2").empty());
  CHECK(refusal("t5-small").empty());
  CHECK(refusal("bert-base").find("language-model head") != std::string::npos);
  request.phase = Phase::train;
  CHECK(refusal("gpt2").find("every token") != std::string::npos);
  CHECK(resolve({}, preset("gpt2")).logits == Logits::all);
  CHECK(resolve(prompt_request({}), preset("gpt2")).logits == Logits::last);
}
