// Requests become workloads; impossible requests are errors.
#include <doctest/doctest.h>

#include <limits>

#include "headroom/error.h"
#include "support/data.h"

using namespace headroom;
using namespace headroom::test;

namespace {

ModelSpec preset(const char* name) { return load_model(name).spec; }

}  // namespace

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

TEST_CASE("the KV-cache has the type of the weights by default") {
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
