// Command lines of engines that train; training_commands.cpp names the documents.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>

#include "headroom/engine_command.h"
#include "headroom/error.h"
#include "support/data.h"

using namespace headroom;
using namespace headroom::test;

namespace {

PlanQuestion asked_to_train(const char* model) {
  PlanQuestion question;
  question.model = load_model(model);
  question.query.purpose = Purpose::train;
  question.rates = device_rates(find_machine("h100-80gb"), Purpose::train, DType::bfloat16);
  question.devices = 16;
  question.load = {64, 8192};
  return question;
}

std::string training_command(Engine engine, const PlanQuestion& question,
                             const PlanChoice& choice) {
  return engine_command(engine, question, choice).text;
}

}  // namespace

TEST_CASE("a training command says which states it keeps and what it needs") {
  PlanQuestion question = asked_to_train("llama-3-8b");
  PlanChoice choice;
  choice.parallel.tensor = 2;
  choice.zero = Zero::weights;
  question.query.states.recipe = Recipe::bfloat16;
  const EngineCommand sharded = engine_command(Engine::megatron, question, choice);
  CHECK(sharded.text.find("--ckpt-format fsdp_dtensor") != std::string::npos);
  CHECK(sharded.notes.front().find("those of --recipe megatron, not bfloat16") !=
        std::string::npos);
  CHECK(training_command(Engine::torchtitan, question, choice).find("--training.dtype bfloat16") !=
        std::string::npos);
  choice.zero = Zero::none;
  question.query.states.recipe = Recipe::megatron;
  CHECK(engine_command(Engine::megatron, question, choice).notes.front() ==
        "set CUDA_DEVICE_MAX_CONNECTIONS=1 on devices before Blackwell");
}

TEST_CASE("Megatron-LM divides layers evenly, with the embedding and the loss where that helps") {
  PlanChoice choice;
  choice.parallel.pipeline = 16;
  choice.parallel.interleave = 8;
  // 126 layers with both ends are 128 in 16 · 8 chunks (arXiv 2407.21783, section 3.3.2).
  const PlanQuestion even = asked_to_train("llama-3.1-405b");
  CHECK(training_command(Engine::megatron, even, choice)
            .find(" --account-for-embedding-in-pipeline-split "
                  "--account-for-loss-in-pipeline-split "
                  "--num-layers-per-virtual-pipeline-stage 1") != std::string::npos);
  choice.parallel.interleave = 1;
  PlanQuestion uneven = asked_to_train("deepseek-v3");
  uneven.query.states.recipe = Recipe::fp8_deepseek_v3;
  uneven.query.states.optimizer = Optimizer::muon;
  const EngineCommand command = engine_command(Engine::megatron, uneven, choice);
  CHECK(command.text.find("pipeline-split") == std::string::npos);
  CHECK(command.notes.front().starts_with("61 layers do not divide evenly into 16 chunks"));
  CHECK(command.text.find(" --multi-latent-attention ") != std::string::npos);
  CHECK(command.text.ends_with(" --bf16 --fp8-format e4m3 --fp8-recipe blockwise"));
  CHECK(std::ranges::count(command.notes, "the optimizer muon is not in the command") == 1);
}

TEST_CASE("the commands of engines that train state degrees, batches, ZeRO and recomputation") {
  const PlanQuestion question = asked_to_train("llama-3-8b");
  PlanChoice choice;
  choice.parallel.tensor = 2;
  choice.parallel.sequence = SequenceParallel::on;
  choice.parallel.pipeline = 2;
  choice.parallel.interleave = 4;
  choice.parallel.data = 4;
  choice.micro_batch = 2;
  choice.zero = Zero::optimizer;
  choice.recompute = {Recompute::full, 4};
  CHECK(training_command(Engine::megatron, question, choice) ==
        "torchrun --nnodes 2 --nproc-per-node 8 pretrain_gpt.py --num-layers 32 --hidden-size 4096 "
        "--ffn-hidden-size 14336 --num-attention-heads 32 --group-query-attention "
        "--num-query-groups 8 --padded-vocab-size 128256 --untie-embeddings-and-output-weights "
        "--normalization RMSNorm --norm-epsilon 1e-05 --swiglu --disable-bias-linear --seq-length "
        "8192 --max-position-embeddings 8192 --position-embedding-type rope --rotary-base 500000 "
        "--attention-dropout 0 --hidden-dropout 0 --micro-batch-size 2 --global-batch-size 64 "
        "--tensor-model-parallel-size 2 --sequence-parallel "
        "--pipeline-model-parallel-size 2 --num-layers-per-virtual-pipeline-stage 4 "
        "--use-distributed-optimizer --recompute-granularity full --recompute-method uniform "
        "--recompute-num-layers 4 --bf16");
  CHECK(training_command(Engine::torchtitan, question, choice) ==
        "torchrun --nnodes 2 --nproc-per-node 8 -m torchtitan.train --training.seq_len 8192 "
        "--training.local_batch_size 16 --parallelism.data_parallel_shard_degree 4 "
        "--parallelism.tensor_parallel_degree 2 --parallelism.pipeline_parallel_degree 2 "
        "--parallelism.pipeline_parallel_schedule Interleaved1F1B "
        "--parallelism.pipeline_parallel_microbatch_size 2 "
        "--parallelism.fsdp_reshard_after_forward never --activation_checkpoint.mode selective "
        "--activation_checkpoint.selective_ac_option 4");
}

// Megatron-LM's own configuration of a small DeepSeek-V3, with 61 layers, 256 experts and three
// dense layers in place of its 14, 64 and three: tests/functional_tests/test_cases/mixtral/
// deepseekv3_proxy_flex_tp1pp4emp16etp1cp1_release/model_config.yaml, core_v0.19.0. Sigmoids need
// no pre-softmax.
TEST_CASE("Megatron-LM's command builds DeepSeek-V3 as its own configuration does") {
  const PlanQuestion question = asked_to_train("deepseek-v3");
  PlanChoice choice;
  choice.parallel.data = 16;
  choice.parallel.expert = 16;
  const EngineCommand command = engine_command(Engine::megatron, question, choice);
  const std::string text = command.text + " ";
  for (const char* const words : {"--num-layers 61",
                                  "--hidden-size 7168",
                                  "--ffn-hidden-size 18432",
                                  "--num-attention-heads 128",
                                  "--position-embedding-type rope",
                                  "--rotary-base 10000",
                                  "--normalization RMSNorm",
                                  "--norm-epsilon 1e-06",
                                  "--swiglu",
                                  "--untie-embeddings-and-output-weights",
                                  "--multi-latent-attention",
                                  "--qk-layernorm",
                                  "--disable-bias-linear",
                                  "--attention-dropout 0",
                                  "--hidden-dropout 0",
                                  "--num-experts 256",
                                  "--moe-layer-freq '([0]*3+[1]*58)'",
                                  "--moe-ffn-hidden-size 2048",
                                  "--moe-shared-expert-intermediate-size 2048",
                                  "--moe-router-topk 8",
                                  "--moe-grouped-gemm",
                                  "--moe-router-group-topk 4",
                                  "--moe-router-num-groups 8",
                                  "--moe-router-topk-scaling-factor 2.5",
                                  "--moe-router-score-function sigmoid",
                                  "--moe-router-enable-expert-bias",
                                  "--moe-router-bias-update-rate 0.001",
                                  "--q-lora-rank 1536",
                                  "--kv-lora-rank 512",
                                  "--qk-head-dim 128",
                                  "--qk-pos-emb-head-dim 64",
                                  "--v-head-dim 128",
                                  "--rotary-scaling-factor 40",
                                  "--mscale 1",
                                  "--mscale-all-dim 1",
                                  "--moe-token-dispatcher-type alltoall",
                                  "--overlap-grad-reduce"}) {
    CHECK_MESSAGE(text.find(fmt::format(" {} ", words)) != std::string::npos, words);
  }
  for (const std::string& note : command.notes) CHECK(note.find("no option builds") != 0);
}

TEST_CASE("Megatron-LM's command builds other models, and names what no option builds") {
  const auto text_of = [](const char* model) {
    return training_command(Engine::megatron, asked_to_train(model), {}) + " ";
  };
  const auto has = [](const std::string& text, const char* words) {
    return text.find(fmt::format(" {} ", words)) != std::string::npos;
  };
  const std::string qwen = text_of("qwen3-30b-a3b");
  // 32 heads of 128 from 2,048.
  CHECK(has(qwen, "--kv-channels 128"));
  CHECK(has(qwen, "--qk-layernorm"));
  CHECK_FALSE(has(qwen, "--moe-router-pre-softmax"));  // the chosen weights sum to 1
  CHECK_FALSE(has(qwen, "--moe-layer-freq"));
  CHECK(has(text_of("deepseek-v2"), "--moe-router-pre-softmax"));
  const std::string gpt = text_of("gpt2");
  CHECK(has(gpt, "--openai-gelu"));
  CHECK(has(gpt, "--max-position-embeddings 1024"));
  CHECK(has(gpt, "--hidden-dropout 0.1"));
  CHECK_FALSE(has(gpt, "--disable-bias-linear"));
  CHECK_FALSE(has(gpt, "--untie-embeddings-and-output-weights"));
  CHECK(has(text_of("qwen2.5-7b"), "--disable-bias-linear --add-qkv-bias"));
  CHECK(has(text_of("llama-3.1-8b"), "--use-rope-scaling --rope-scaling-factor 8"));
  const std::string oss = text_of("gpt-oss-20b");
  CHECK(has(oss, "--softmax-type learnable"));
  CHECK(has(oss, "--window-size 127,0"));
  const EngineCommand gemma = engine_command(Engine::megatron, asked_to_train("gemma-2-9b"), {});
  CHECK(std::ranges::any_of(gemma.notes, [](const std::string& note) {
    return note.starts_with("no option builds the places of norms");
  }));
}

// Megatron-LM, megatron/training/arguments.py; torchtitan 0.2, config/job_config.py, whose
// asynchronous tensor parallelism needs torch.compile; components/loss.py of later versions.
TEST_CASE("engines that train write collectives beside GEMMs, and name what no option does") {
  const PlanQuestion question = asked_to_train("llama-3-8b");
  PlanChoice choice;
  choice.parallel.tensor = 8;
  choice.parallel.sequence = SequenceParallel::on;
  choice.step.tensor_overlap = TensorOverlap::on;
  CHECK(training_command(Engine::megatron, question, choice)
            .find(" --sequence-parallel --tp-comm-overlap ") != std::string::npos);
  CHECK(training_command(Engine::torchtitan, question, choice)
            .find(" --compile.enable --parallelism.enable_async_tensor_parallel ") !=
        std::string::npos);
  const std::size_t notes = engine_command(Engine::megatron, question, choice).notes.size();
  choice.step.offload_layers = 4;
  choice.step.loss_chunks = 8;
  const EngineCommand command = engine_command(Engine::megatron, question, choice);
  CHECK(command.notes.size() == notes + 1);
  CHECK(command.text.find(" --cpu-offloading-num-layers 4 ") != std::string::npos);
  const EngineCommand titan = engine_command(Engine::torchtitan, question, choice);
  const auto has_note = [&](std::string_view words) {
    return std::ranges::any_of(titan.notes, [&](const std::string& note) {
      return note.find(words) != std::string::npos;
    });
  };
  CHECK(has_note("torchtitan 0.2"));
  CHECK(has_note("no option keeps layers' activations on the host"));
  CHECK(has_note("--loss.num_chunks 8"));
}
