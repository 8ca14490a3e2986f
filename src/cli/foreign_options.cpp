#include "foreign_options.h"

#include <fmt/format.h>

#include <algorithm>

namespace headroom::cli {
namespace {

/// An option of another program, without its dashes, and the one to give here, with its value where
/// it has another.
struct ForeignOption {
  std::string_view name;
  std::string_view counterpart;
};

// vLLM: vllm/engine/arg_utils.py and benchmarks; SGLang: sglang/srt/server_args.py; llama.cpp:
// tools/server/README.md; Megatron-LM: megatron/training/arguments.py; TensorRT-LLM: trtllm-serve.
// A row applies if the command has the counterpart; earlier rows decide first.
constexpr ForeignOption kForeignOptions[] = {
    {"gpu", "--machine"},
    {"gpu-type", "--machine"},
    {"device", "--machine"},
    {"hardware", "--machine"},
    {"gpus", "--count"},
    {"num-gpus", "--count"},
    {"n-gpus", "--count"},
    {"ngpus", "--count"},
    {"devices", "--count"},
    {"num-devices", "--count"},
    {"nproc-per-node", "--devices-per-node"},
    {"gpus-per-node", "--devices-per-node"},
    {"vram", "--memory"},
    {"gpu-memory", "--memory"},
    {"ram", "--host-memory"},
    {"ctx", "--seq"},
    {"ctx-size", "--seq"},
    {"context", "--seq"},
    {"context-length", "--seq"},
    {"max-model-len", "--seq"},
    {"max-seq-len", "--seq"},
    {"seq-len", "--seq"},
    {"seq-length", "--seq"},
    {"seqlen", "--seq"},
    {"max-position-embeddings", "--seq"},
    {"batch-size", "--batch"},
    {"global-batch-size", "--batch"},
    {"micro-batch-size", "--micro-batch"},
    {"quant", "--weights"},
    {"quantize", "--weights"},
    {"quantization", "--weights"},
    {"load-in-4bit", "--weights nf4"},
    {"load-in-8bit", "--weights int8"},
    {"precision", "--dtype"},
    {"torch-dtype", "--dtype"},
    {"kv-cache-dtype", "--kv-dtype"},
    {"cache-type-k", "--kv-dtype k=TYPE,v=TYPE"},
    {"cache-type-v", "--kv-dtype k=TYPE,v=TYPE"},
    {"tp-size", "--tp"},
    {"tensor-parallel", "--tp"},
    {"tensor-parallel-size", "--tp"},
    {"tensor-model-parallel-size", "--tp"},
    {"pp-size", "--pp"},
    {"pipeline-parallel-size", "--pp"},
    {"pipeline-model-parallel-size", "--pp"},
    {"dp-size", "--dp"},
    {"data-parallel-size", "--dp"},
    {"ep-size", "--ep"},
    {"expert-parallel-size", "--ep"},
    {"expert-model-parallel-size", "--ep"},
    {"expert-tensor-parallel-size", "--etp"},
    {"context-parallel-size", "--cp"},
    {"sequence-parallel", "--sp"},
    {"zero-stage", "--zero"},
    {"fsdp", "--zero 3"},
    {"gradient-checkpointing", "--recompute full"},
    {"activation-checkpointing", "--recompute full"},
    {"train", "--phase train"},
    {"serve", "--phase serve"},
    {"decode", "--phase decode"},
    {"prefill", "--phase prefill"},
    {"lora", "--adapter lora"},
    {"lora", "--adapters"},
    {"qlora", "--adapter qlora"},
    {"enable-lora", "--adapters"},
    {"max-loras", "--adapters"},
    {"lora-rank", "--adapter-rank"},
    {"lora-r", "--adapter-rank"},
    {"max-lora-rank", "--adapter-rank"},
    {"target-modules", "--adapter-targets"},
    {"lora-target-modules", "--adapter-targets"},
    {"qps", "--rate"},
    {"request-rate", "--rate"},
    {"concurrency", "--users"},
    {"max-concurrency", "--users"},
    {"num-users", "--users"},
    {"num-prompts", "--requests"},
    {"input-len", "--input"},
    {"random-input-len", "--input"},
    {"output-len", "--output-tokens"},
    {"random-output-len", "--output-tokens"},
    {"max-num-seqs", "--max-sequences"},
    {"max-num-seqs", "--batch"},
    {"max-running-requests", "--max-sequences"},
    {"max-running-requests", "--batch"},
    {"max-num-batched-tokens", "--batched-tokens"},
    {"chunked-prefill-size", "--batched-tokens"},
    {"num-speculative-tokens", "--draft-tokens"},
    {"speculative-num-draft-tokens", "--draft-tokens"},
    {"model-draft", "--draft"},
    {"max-new-tokens", "--new-tokens"},
    {"max-tokens", "--new-tokens"},
};

/// The counterpart without its value.
std::string_view option_without_value(std::string_view counterpart) {
  return counterpart.substr(0, counterpart.find(' '));
}

}  // namespace

std::string hint_for_foreign_option(std::string_view option, std::span<const std::string> known) {
  constexpr std::string_view kDashes = "--";
  if (!option.starts_with(kDashes)) return {};
  const std::string_view name = option.substr(kDashes.size());
  const auto* const found =
      std::ranges::find_if(kForeignOptions, [&](const ForeignOption& foreign) {
        return foreign.name == name &&
               std::ranges::find(known, option_without_value(foreign.counterpart)) != known.end();
      });
  if (found == std::ranges::end(kForeignOptions)) return {};
  return fmt::format("did you mean {}?", found->counterpart);
}

}  // namespace headroom::cli
