// Command lines of engines, option by option; engine_command.cpp names the documents.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>

#include "headroom/engine_command.h"
#include "headroom/error.h"
#include "support/data.h"
#include "weight_words.h"

using namespace headroom;
using namespace headroom::test;

namespace {

PlanQuestion asked(const char* model, Purpose purpose) {
  PlanQuestion question;
  question.model = load_model(model);
  question.query.purpose = purpose;
  question.rates = device_rates(find_machine("h100-80gb"), purpose, DType::bfloat16);
  question.devices = 16;
  question.load = {64, 8192};
  return question;
}

std::string command_of(Engine engine, const PlanQuestion& question, const PlanChoice& choice) {
  return engine_command(engine, question, choice).text;
}

}  // namespace

TEST_CASE("the commands of engines that serve state degrees, lengths and types") {
  PlanQuestion question = asked("llama-3-70b", Purpose::serve);
  question.query.weights = WeightType::float8;
  set_type(question.query.kv_cache, KvType::float8);
  PlanChoice choice;
  choice.parallel.tensor = 8;
  choice.parallel.data = 2;
  CHECK(command_of(Engine::vllm, question, choice) ==
        "vllm serve meta-llama/Meta-Llama-3-70B --dtype bfloat16 --tensor-parallel-size 8 "
        "--data-parallel-size 2 --max-model-len 8192 --max-num-seqs 32 --quantization "
        "fp8_per_channel --kv-cache-dtype fp8");
  CHECK(command_of(Engine::sglang, question, choice) ==
        "python -m sglang.launch_server --model-path meta-llama/Meta-Llama-3-70B --dtype bfloat16 "
        "--tp-size 8 --dp-size 2 --context-length 8192 --max-running-requests 64 --quantization "
        "fp8 --kv-cache-dtype fp8_e4m3");
  const EngineCommand tensorrt = engine_command(Engine::tensorrt_llm, question, choice);
  CHECK(tensorrt.text ==
        "trtllm-serve meta-llama/Meta-Llama-3-70B --tp_size 8 --max_seq_len 8192 --max_batch_size "
        "32");
  CHECK(tensorrt.notes.size() == 4);  // replicas, weights, cache
}

TEST_CASE("commands have the passes, blocks and positions that the plan was counted with") {
  PlanQuestion question = asked("llama-3-8b", Purpose::serve);
  question.load = {1, 32'768};
  question.query.kv_cache.policy = KvPolicy::vllm;
  question.query.kv_cache.block = 32;
  question.query.kv_cache.batched_tokens = 4096;
  const PlanChoice choice;
  const auto has = [&](Engine engine, const char* words) {
    return command_of(engine, question, choice).find(words) != std::string::npos;
  };
  CHECK(has(Engine::vllm, "--max-num-batched-tokens 4096 --block-size 32"));
  CHECK(has(Engine::sglang, "--chunked-prefill-size 4096 --page-size 32"));
  CHECK(has(Engine::tensorrt_llm, "--max_num_tokens 4096"));
  CHECK(engine_command(Engine::vllm, question, choice).notes.back() ==
        "the model has 8192 positions: a longer context needs VLLM_ALLOW_LONG_MAX_MODEL_LEN=1");
  question.query.kv_cache.policy = KvPolicy::llama_cpp_swa_full;
  CHECK(has(Engine::llama_cpp, "--swa-full --batch-size 4096 --ubatch-size 4096"));
  question.query.kv_cache = {};
  question.query.prefill_tokens = 512;
  CHECK(has(Engine::vllm, "--max-num-batched-tokens 512"));
}

TEST_CASE("engines that serve text refuse models of images") {
  PlanQuestion question = asked("vit-base-patch16-224", Purpose::serve);
  for (const Engine engine : {Engine::vllm, Engine::sglang, Engine::tensorrt_llm}) {
    CHECK_THROWS_AS((void)command_of(engine, question, {}), Error);
  }
}

// Of 79.65 GiB, the weights take 65.7 on each of two devices, and a sequence of 8,192 tokens 1.25,
// of 49,152 tokens 7.5, of 65,536 tokens 10: with 3 GiB of activations, context, driver and NCCL,
// 0.88, 0.96 and 0.99 of the device.
TEST_CASE("a command states the memory of a plan that takes more than the engine's default") {
  PlanQuestion question = asked("llama-3-70b", Purpose::serve);
  PlanChoice choice;
  choice.parallel.tensor = 2;
  const auto asks = [&](Engine engine, std::int64_t tokens, const char* words) {
    question.load = {1, tokens};
    return engine_command(engine, question, choice).text.find(words) != std::string::npos;
  };
  CHECK_FALSE(asks(Engine::vllm, 8192, "--gpu-memory-utilization"));
  CHECK(asks(Engine::vllm, 49'152, "--gpu-memory-utilization 0.96"));
  CHECK(asks(Engine::vllm, 65'536, "--gpu-memory-utilization 0.98"));
  CHECK_FALSE(asks(Engine::sglang, 8192, "--mem-fraction-static"));
  CHECK(asks(Engine::sglang, 49'152, "--mem-fraction-static 0.92"));
  CHECK(engine_command(Engine::vllm, question, choice).notes.front().find("default") !=
        std::string::npos);
  question.load = {1, 65'536};
  CHECK(engine_command(Engine::vllm, question, choice).notes.front() ==
        "the plan fills the device: the engine may hold fewer sequences");
}

// docs/multi-gpu.md: "tensor" is tensor parallelism, needs --flash-attn on and an unquantised
// cache; "layer" is pipeline parallelism.
TEST_CASE("llama.cpp's command states its split mode, context and slots") {
  PlanQuestion question = asked("llama-3-70b", Purpose::serve);
  question.load = {4, 8192};
  PlanChoice choice;
  choice.parallel.pipeline = 2;
  CHECK(command_of(Engine::llama_cpp, question, choice) ==
        "llama-server -m llama-3-70b.gguf --gpu-layers all --split-mode layer --ctx-size 32768 "
        "--parallel 4 --flash-attn on");
  choice.parallel.pipeline = 1;
  choice.parallel.tensor = 4;
  choice.parallel.data = 2;
  set_type(question.query.kv_cache, KvType::q8_0);
  const EngineCommand tensor = engine_command(Engine::llama_cpp, question, choice);
  CHECK(tensor.text ==
        "llama-server -m llama-3-70b.gguf --gpu-layers all --split-mode tensor --ctx-size 16384 "
        "--parallel 2 --flash-attn on --cache-type-k q8_0 --cache-type-v q8_0");
  CHECK(tensor.notes.size() == 4);  // experimental, quantised cache, GGUF, replicas
}

// vLLM: features/quantization/gguf and online of its documentation, and _ONLINE_SHORTHANDS in
// vllm/config/quantization.py. SGLang: QUANTIZATION_CHOICES in srt/arg_groups/choices.py, and
// advanced_features/quantization and model_loading of its documentation. TensorRT-LLM:
// load_hf_quant_config in _torch/model_config.py, models/quant_config_utils.py, and QuantAlgo.
// llama.cpp: QUANT_OPTIONS in tools/quantize/quantize.cpp.
TEST_CASE("commands convert weights as the engine can, or say what it needs, or that it has none") {
  const auto stored = [](std::string_view form) {
    return fmt::format("no option converts weights to {}: name a repository that stores them so",
                       form);
  };
  const auto none = [](std::string_view form) {
    return fmt::format("the engine has no weights of type {}", form);
  };
  const auto unwritten = [](std::string_view form) {
    return fmt::format("llama-quantize writes no weights of type {}", form);
  };
  const auto by_dtype = [](std::string_view form) {
    return fmt::format("--dtype is the type of weights and activations: none are held as {}", form);
  };
  const std::string checkpoint =
      "weights are converted beforehand: name a checkpoint that stores them so";
  const std::string quantized = "weights are converted beforehand, by llama-quantize to ";
  const std::string bitsandbytes = "--load-format bitsandbytes --quantization bitsandbytes";
  /// Of vLLM and SGLang an option, or else a note; of the others a note.
  struct Words {
    std::string form, vllm, sglang, tensorrt_llm, llama_cpp;
  };
  const Words all[] = {
      {"q4_1", "q4_1 weights need vLLM's plugin for GGUF and a GGUF file that stores them so",
       "q4_1 weights need a GGUF file that stores them so", none("q4_1"), quantized + "q4_1"},
      {"float32", by_dtype("float32"), by_dtype("float32"), checkpoint, quantized + "f32"},
      {"float8", "--quantization fp8_per_channel", "--quantization fp8", checkpoint,
       unwritten("float8")},
      {"int8", stored("int8"), "--quantization auto-round-int8", checkpoint, unwritten("int8")},
      {"int4", stored("int4"), stored("int4"), checkpoint, unwritten("int4")},
      {"nf4", "nf4 weights need vLLM's plugin for bitsandbytes, and then " + bitsandbytes,
       bitsandbytes, none("nf4"), unwritten("nf4")},
      {"mxfp4", "--quantization mxfp4", stored("mxfp4"), checkpoint, quantized + "mxfp4_moe"},
      {"nvfp4", stored("nvfp4"), stored("nvfp4"), checkpoint, unwritten("nvfp4")},
      {"fp8-128x128-s32", "--quantization fp8_per_block", stored("fp8-128x128-s32"), checkpoint,
       unwritten("fp8-128x128-s32")},
      {"fp8-tensor-s32", "--quantization fp8_per_tensor", stored("fp8-tensor-s32"), checkpoint,
       unwritten("fp8-tensor-s32")},
      {"fp8-1x32-s8", "--quantization mxfp8", "--quantization mxfp8", checkpoint,
       unwritten("fp8-1x32-s8")},
      {"fp8-1x128-s32", stored("fp8-1x128-s32"), stored("fp8-1x128-s32"), none("fp8-1x128-s32"),
       unwritten("fp8-1x128-s32")},
      {"int8-1x32-s8", none("int8-1x32-s8"), none("int8-1x32-s8"), none("int8-1x32-s8"),
       unwritten("int8-1x32-s8")},
      {"int8-7x3-s16", none("int8-7x3-s16"), none("int8-7x3-s16"), none("int8-7x3-s16"),
       unwritten("int8-7x3-s16")}};
  for (const Words& words : all) {
    CAPTURE(words.form);
    PlanQuestion question = asked("llama-3-8b", Purpose::serve);
    question.query.weights = detail::weight_form_named(words.form);
    REQUIRE(question.query.weights);
    const std::pair<Engine, std::string> expected[] = {{Engine::vllm, words.vllm},
                                                       {Engine::sglang, words.sglang},
                                                       {Engine::tensorrt_llm, words.tensorrt_llm},
                                                       {Engine::llama_cpp, words.llama_cpp}};
    for (const auto& one : expected) {
      const EngineCommand command = engine_command(one.first, question, {});
      const bool is_option = one.second.starts_with("--quantization") || one.second == bitsandbytes;
      CHECK(command.text.ends_with(" " + one.second) == is_option);
      CHECK(std::ranges::count(command.notes, one.second) == (is_option ? 0 : 1));
      CHECK((command.text.find("--quantization") != std::string::npos) == is_option);
    }
  }
}

// vLLM and SGLang have one conversion to FP8, whose arithmetic is the device's (docs.vllm.ai: W8A8
// on Ada, Hopper and Blackwell, W8A16 before).
TEST_CASE("a command of FP8 weights says which arithmetic its prediction has") {
  PlanQuestion question = asked("llama-3-8b", Purpose::serve);
  question.query.weights = WeightType::float8;
  const auto notes_on_float8 = [&question](Engine engine) {
    return std::ranges::count_if(
        engine_command(engine, question, {}).notes, [](const std::string& note) {
          return note.find("multiplies these weights in float8") != std::string::npos;
        });
  };
  for (const Engine engine : {Engine::vllm, Engine::sglang}) {
    question.query.arithmetic.reset();
    CHECK(notes_on_float8(engine) == 1);
    question.query.arithmetic = DType::float8;
    CHECK(notes_on_float8(engine) == 0);
  }
}

TEST_CASE("commands say which matrices MXFP4 covers: all in vLLM, experts' by llama-quantize") {
  PlanQuestion question = asked("gpt-oss-20b", Purpose::serve);
  question.query.weights = WeightType::mxfp4;
  const auto notes_once = [&question](Engine engine, std::string_view note) {
    return std::ranges::count(engine_command(engine, question, {}).notes, note) == 1;
  };
  CHECK(notes_once(Engine::vllm, "--quantization mxfp4 converts every matrix of the layers"));
  CHECK(notes_once(Engine::llama_cpp, "mxfp4_moe stores all matrices but experts' in q8_0"));
}

TEST_CASE("experts are spread over all ranks in vLLM, by a degree elsewhere") {
  const PlanQuestion question = asked("mixtral-8x7b", Purpose::serve);
  PlanChoice choice;
  choice.parallel.data = 8;
  choice.parallel.expert = 8;
  const EngineCommand whole = engine_command(Engine::vllm, question, choice);
  CHECK(whole.text.find(" --enable-expert-parallel") != std::string::npos);
  CHECK(whole.notes.empty());
  choice.parallel.expert = 4;
  CHECK(engine_command(Engine::vllm, question, choice).notes ==
        std::vector<std::string>{"vLLM spreads experts over tp · dp = 8 ranks"});
  CHECK(command_of(Engine::sglang, question, choice).find(" --ep-size 4") != std::string::npos);
}

// SGLang's server_args.py requires dp_size to divide tp_size under --enable-dp-attention, and
// ep_size to divide tp_size; TensorRT-LLM's mapping.py that moe_tp · moe_ep is tp_size.
TEST_CASE("replicas that share experts are replicas of attention among tensor-parallel ranks") {
  const PlanQuestion question = asked("mixtral-8x7b", Purpose::serve);
  PlanChoice choice;
  choice.parallel.data = 8;
  choice.parallel.expert = 8;
  CHECK(command_of(Engine::sglang, question, choice)
            .find(" --tp-size 8 --dp-size 8 --enable-dp-attention --ep-size 8 ") !=
        std::string::npos);
  const EngineCommand tensorrt = engine_command(Engine::tensorrt_llm, question, choice);
  CHECK(tensorrt.text.find(" --tp_size 8 --ep_size 8 ") != std::string::npos);
  CHECK(tensorrt.notes.front().ends_with("enable_attention_dp: true"));
  choice.parallel.expert = 1;
  CHECK(command_of(Engine::sglang, question, choice).find("dp-attention") == std::string::npos);
}

TEST_CASE("a plan of several nodes says how each is started") {
  const PlanQuestion question = asked("llama-3-70b", Purpose::serve);
  PlanChoice choice;
  choice.parallel.tensor = 8;
  choice.parallel.pipeline = 2;
  for (const Engine engine : {Engine::vllm, Engine::sglang, Engine::tensorrt_llm}) {
    const EngineCommand command = engine_command(engine, question, choice);
    CHECK(std::ranges::any_of(command.notes, [](const std::string& note) {
      return note.starts_with("the plan spans 2 nodes: ");
    }));
  }
}

// Options as the engines document them: docs.vllm.ai, serving/expert_parallel_deployment and
// design/dbo; docs.sglang.io, advanced_features/expert_parallelism.
TEST_CASE("exchanges by node and two batches are the engines' options for DeepEP") {
  const PlanQuestion question = asked("mixtral-8x7b", Purpose::serve);
  PlanChoice choice;
  choice.parallel.data = 8;
  choice.parallel.expert = 8;
  const auto has = [&](Engine engine, const std::string& words) {
    return command_of(engine, question, choice).find(words) != std::string::npos;
  };
  CHECK_FALSE(has(Engine::vllm, "deepep"));
  CHECK_FALSE(has(Engine::sglang, "deepep"));
  choice.parallel.batch_overlap = BatchOverlap::two_batches;
  CHECK(has(Engine::vllm, " --all2all-backend deepep_low_latency --enable-dbo "));
  CHECK(has(Engine::sglang,
            " --moe-a2a-backend deepep --deepep-mode low_latency --enable-two-batch-overlap "));
  choice.parallel.expert_exchange = ExpertExchange::by_node;
  CHECK(has(Engine::vllm, " --all2all-backend deepep_high_throughput --enable-dbo "));
  CHECK(has(Engine::sglang, " --deepep-mode normal --enable-two-batch-overlap "));
  CHECK(engine_command(Engine::tensorrt_llm, question, choice).notes.size() == 3);
}

TEST_CASE(
    "ZeRO 3 without a pipeline accumulates gradients in torchtitan, and is FSDP in Megatron") {
  PlanQuestion question = asked("llama-3-8b", Purpose::train);
  question.devices = 8;
  PlanChoice choice;
  choice.parallel.data = 8;
  choice.zero = Zero::weights;
  const std::string titan = command_of(Engine::torchtitan, question, choice);
  CHECK(titan.find("torchrun --nproc-per-node 8 ") == 0);
  CHECK(titan.find(" --training.local_batch_size 1 --training.global_batch_size 64") !=
        std::string::npos);
  CHECK(titan.find("reshard") == std::string::npos);
  CHECK(command_of(Engine::megatron, question, choice)
            .find(" --use-megatron-fsdp --data-parallel-sharding-strategy optim_grads_params") !=
        std::string::npos);
}

TEST_CASE("an engine that serves refuses a training plan, and the other way round") {
  const PlanQuestion serving = asked("llama-3-8b", Purpose::serve);
  const PlanQuestion training = asked("llama-3-8b", Purpose::train);
  CHECK(refusal_of([&] { (void)engine_command(Engine::vllm, training, {}); }) ==
        "vllm serves models");
  CHECK(refusal_of([&] { (void)engine_command(Engine::megatron, serving, {}); }) ==
        "megatron trains models");
}

TEST_CASE("a config without weights is PATH in the command, and a note says what that is") {
  PlanQuestion question = asked("llama-3-8b", Purpose::serve);
  question.model.spec.name = "my-own-model";
  for (const Engine engine : {Engine::vllm, Engine::sglang, Engine::tensorrt_llm}) {
    const EngineCommand command = engine_command(engine, question, {});
    CHECK(command.text.find(" PATH --") != std::string::npos);
    CHECK(std::ranges::count(command.notes,
                             "the config has no weights beside it: PATH is the folder or "
                             "repository that has them") == 1);
    question.model.weight_files = "/models/mine";
    CHECK(engine_command(engine, question, {}).text.find(" /models/mine --") != std::string::npos);
    question.model.weight_files.clear();
  }
}

TEST_CASE("a path with blanks is one word of the command") {
  PlanQuestion question = asked("gpt2", Purpose::serve);
  question.model.weight_files = "/models/it's mine";
  CHECK(command_of(Engine::vllm, question, {}).find("vllm serve '/models/it'\\''s mine' ") == 0);
}
