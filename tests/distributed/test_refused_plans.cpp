// Plans that fit counts and no processes run, and micro-batches that a run cannot make.
#include <doctest/doctest.h>

#include <string>

#include "headroom/error.h"
#include "headroom/model_source.h"
#include "planned_ranks.h"
#include "support/data.h"

using namespace headroom;
using distributed::require_micro_batches_run;
using distributed::require_runs;

namespace {

struct AskedRun {
  ParallelPlan plan;
  WorkloadRequest request;
};

Model tiny_model(const std::string& name) {
  return load_model((test::data_folder() / "golden" / "models" / name).string());
}

std::string refusal_of(const Model& model, const AskedRun& asked) {
  try {
    require_runs(asked.plan, model.spec, resolve(asked.request, model.spec));
  } catch (const Error& error) {
    return error.message();
  }
  return "none";
}

std::string refusal_of_micro_batches(std::int64_t micro_batch, const ParallelPlan& plan,
                                     const Workload& workload) {
  try {
    require_micro_batches_run(micro_batch, plan, workload);
  } catch (const Error& error) {
    return error.message();
  }
  return "none";
}

AskedRun asked(std::int64_t tensor, std::int64_t pipeline, std::int64_t data,
               std::int64_t batch_size) {
  AskedRun run;
  run.plan.tensor = tensor;
  run.plan.pipeline = pipeline;
  run.plan.data = data;
  run.request.batch_size = batch_size;
  run.request.seq_len = 8;
  return run;
}

}  // namespace

TEST_CASE("processes run neither context parallelism nor an interleaved pipeline") {
  const Model model = load_model("bert-tiny");
  const std::string refusal =
      "neither context parallelism nor an interleaved pipeline runs on this machine";
  AskedRun run = asked(1, 1, 1, 1);
  CHECK(refusal_of(model, run) == "none");
  run.plan.context = 2;
  CHECK(refusal_of(model, run) == refusal);
  run = asked(1, 2, 1, 1);
  CHECK(refusal_of(model, run) == "none");
  run.plan.interleave = 2;
  CHECK(refusal_of(model, run) == refusal);
}

TEST_CASE("replicas take equal shares of a batch") {
  const Model model = load_model("bert-tiny");
  CHECK(refusal_of(model, asked(1, 1, 2, 4)) == "none");
  CHECK(refusal_of(model, asked(1, 1, 2, 3)) ==
        "2 replicas do not share a batch of 3 sequences evenly");
  CHECK(refusal_of(model, asked(1, 1, 2, 1)) ==
        "2 replicas do not share a batch of 1 sequence evenly");
}

TEST_CASE("no replicas share images or sound") {
  AskedRun seen = asked(1, 1, 2, 2);
  seen.request.images = 1;
  seen.request.seq_len.reset();
  const std::string refusal = "no replicas share images or sound; fit counts them";
  CHECK(refusal_of(tiny_model("aria_images"), seen) == refusal);
  AskedRun heard = asked(1, 1, 2, 2);
  heard.request.audio = 1;
  heard.request.seq_len.reset();
  CHECK(refusal_of(tiny_model("voxtral_clips"), heard) == refusal);
}

TEST_CASE("ranks of experts divide the replicas that hold them") {
  const Model model = tiny_model("afmoe");
  AskedRun run = asked(1, 1, 1, 1);
  run.plan.expert = 2;
  CHECK(refusal_of(model, run) == "expert parallelism 2 does not divide 1 replica");
  run = asked(1, 1, 3, 3);
  run.plan.expert = 2;
  CHECK(refusal_of(model, run) == "expert parallelism 2 does not divide 3 replicas");
}

TEST_CASE("experts that tensor-parallel ranks divide take no sharded tokens") {
  const Model model = tiny_model("afmoe");
  AskedRun run = asked(2, 1, 2, 2);
  run.plan.expert = 2;
  CHECK(refusal_of(model, run) == "none");
  run.plan.sequence = SequenceParallel::on;
  CHECK(refusal_of(model, run) ==
        "experts that tensor-parallel ranks divide do not run on the tokens that sequence "
        "parallelism shards; fit counts it");
  run.plan.expert_tensor = ExpertTensor::whole;
  CHECK(refusal_of(model, run) == "none");
}

TEST_CASE("two encoders whose outputs are compared, and gated positions, run whole") {
  AskedRun pipeline = asked(1, 2, 1, 1);
  pipeline.request.seq_len.reset();
  CHECK(refusal_of(tiny_model("siglip_more_texts"), pipeline) ==
        "no pipeline runs two encoders whose outputs are compared; fit counts it");
  AskedRun tensor = asked(2, 1, 1, 1);
  tensor.request.seq_len.reset();
  CHECK(refusal_of(tiny_model("wavlm"), tensor) ==
        "tensor-parallel ranks do not run gated relative positions; fit counts them");
}

TEST_CASE("micro-batches divide the sequences of a pipeline") {
  const Model model = load_model("bert-tiny");
  const AskedRun run = asked(1, 2, 2, 6);
  const Workload workload = resolve(run.request, model.spec);
  CHECK(refusal_of_micro_batches(3, run.plan, workload) == "none");
  CHECK(refusal_of_micro_batches(0, run.plan, workload) == "a micro-batch of 0 has no sequences");
  CHECK(refusal_of_micro_batches(2, run.plan, workload) ==
        "micro-batches of 2 do not divide the 3 sequences of a pipeline");
  const Workload two = resolve(asked(1, 2, 2, 2).request, model.spec);
  CHECK(refusal_of_micro_batches(2, run.plan, two) ==
        "micro-batches of 2 do not divide the 1 sequence of a pipeline");
  CHECK(refusal_of_micro_batches(1, asked(2, 1, 1, 6).plan, workload) ==
        "micro-batches flow through a pipeline, and the plan has one stage");
}

TEST_CASE("images and sound belong to no one micro-batch") {
  const std::string refusal =
      "images and sound belong to no one micro-batch of a run; fit counts them";
  AskedRun run = asked(1, 2, 1, 2);
  run.request.seq_len.reset();
  AskedRun seen = run;
  seen.request.images = 1;
  const Model aria = tiny_model("aria_images");
  CHECK(refusal_of_micro_batches(1, run.plan, resolve(seen.request, aria.spec)) == refusal);
  AskedRun heard = run;
  heard.request.audio = 1;
  const Model voxtral = tiny_model("voxtral_clips");
  CHECK(refusal_of_micro_batches(1, run.plan, resolve(heard.request, voxtral.spec)) == refusal);
}
