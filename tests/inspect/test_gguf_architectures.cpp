// Every supported GGUF architecture: a published model's metadata, as converters write them, must
// give its published parameter count. Sizes come from the models' config.json files, parameters
// from the reference code's counts in tests/data/golden, tests/data/wild and the presets.
#include <doctest/doctest.h>

#include <algorithm>

#include "inspect/model_folder.h"
#include "inspect/published_gguf.h"
#include "support/data.h"
#include "support/gguf_writer.h"

using namespace headroom;
using namespace headroom::test;

namespace {

std::vector<PublishedGguf> published_models() {
  return {
      {"llama-3.1-8b",
       "llama",
       {131072, 4096, 32, 14336, 32, 8, 128256},
       {},
       {"output.weight"},
       8030261248},
      {"mixtral-8x7b",
       "llama",
       {32768, 4096, 32, 14336, 32, 8, 32000},
       {{"expert_count", 8}, {"expert_used_count", 2}},
       {"output.weight"},
       46702792704},
      {"qwen2-0.5b", "qwen2", {32768, 896, 24, 4864, 14, 2, 151936}, {}, {}, 494032768},
      {"qwen3-1.7b",
       "qwen3",
       {40960, 2048, 28, 6144, 16, 8, 151936},
       {{"attention.key_length", 128}, {"attention.value_length", 128}},
       {},
       1720574976},
      {"baichuan2-7b",
       "baichuan",
       {4096, 4096, 32, 11008, 32, 32, 125696},
       {{"rope.dimension_count", 128}},
       {"output.weight"},
       7505973248},
      {"qwen3-30b-a3b",
       "qwen3moe",
       {40960, 2048, 48, 6144, 32, 4, 151936},
       {{"attention.key_length", 128},
        {"expert_count", 128},
        {"expert_used_count", 8},
        {"expert_feed_forward_length", 768}},
       {"output.weight"},
       30532122624},
      {"gemma-2b",
       "gemma",
       {8192, 2048, 18, 16384, 8, 1, 256000},
       {{"attention.key_length", 256}},
       {},
       2506172416},
      {"gemma-2-2b",
       "gemma2",
       {8192, 2304, 26, 9216, 8, 4, 256000},
       {{"attention.key_length", 256}, {"attention.sliding_window", 4096}},
       {},
       2614341888},
      {"gemma-3-1b",
       "gemma3",
       {32768, 1152, 26, 6912, 4, 1, 262144},
       {{"attention.key_length", 256}, {"attention.sliding_window", 512}},
       {},
       999885952},
      {"embeddinggemma-300m",
       "gemma-embedding",
       {2048, 768, 24, 1152, 3, 1, 262144},
       {{"attention.key_length", 256}, {"attention.sliding_window", 512}},
       {},
       302863104},
      {"t5-small's encoder",
       "t5encoder",
       {512, 512, 6, 2048, 8, 8, 32128},
       {{"attention.key_length", 64}, {"attention.relative_buckets_count", 32}},
       {},
       35330816},
      {"gpt-j-6b",
       "gptj",
       {2048, 4096, 28, 16384, 16, 16, 50400},
       {{"rope.dimension_count", 64}},
       {"output.weight"},
       6050882784},
      {"phi-3-mini-4k",
       "phi3",
       {4096, 3072, 32, 8192, 32, 32, 32064},
       {{"rope.dimension_count", 96}, {"attention.sliding_window", 2047}},
       {"output.weight"},
       3821079552},
      {"phi-4-mini",
       "phi3",
       {131072, 3072, 32, 8192, 24, 8, 200064},
       {{"rope.dimension_count", 96}, {"attention.sliding_window", 262144}},
       {},
       3836021760},
      {"phi-1_5",
       "phi2",
       {2048, 2048, 24, 8192, 32, 32, 51200},
       {{"rope.dimension_count", 32}},
       {"output.weight"},
       1418270720},
      {"falcon-7b", "falcon", {2048, 4544, 32, 18176, 71, 1, 65024}, {}, {}, 6921720704},
      {"falcon-180b",
       "falcon",
       {2048, 14848, 80, 59392, 232, 8, 65024},
       {},
       {"output.weight", "blk.0.attn_norm_2.weight"},
       179522565120},
      {"bloom-560m",
       "bloom",
       {2048, 1024, 24, 4096, 16, 16, 250880},
       {},
       {"output.weight"},
       559214592},
      {"mpt-7b", "mpt", {2048, 4096, 32, 16384, 32, 32, 50432}, {}, {"output.weight"}, 6649286656},
      {"stablelm-3b-4e1t",
       "stablelm",
       {4096, 2560, 32, 6912, 32, 32, 50304},
       {{"rope.dimension_count", 20}},
       {"output.weight"},
       2795443200},
      {"olmo2-7b",
       "olmo2",
       {4096, 4096, 32, 11008, 32, 32, 100352},
       {},
       {"output.weight"},
       7298617344},
      {"aya-23-8b", "command-r", {8192, 4096, 32, 14336, 32, 8, 256000}, {}, {}, 8028033024},
      {"starcoder2-3b", "starcoder2", {16384, 3072, 30, 12288, 24, 2, 49152}, {}, {}, 3030371328},
      {"pythia-410m",
       "gptneox",
       {2048, 1024, 24, 4096, 16, 16, 50304},
       {{"rope.dimension_count", 16}},
       {"output.weight"},
       405334016},
      {"gpt-oss-20b",
       "gpt-oss",
       {131072, 2880, 24, 2880, 64, 8, 201088},
       {{"attention.key_length", 64},
        {"expert_count", 32},
        {"expert_used_count", 4},
        {"rope.scaling.original_context_length", 4096},
        {"expert_feed_forward_length", 2880},
        {"attention.sliding_window", 128}},
       {"output.weight"},
       20914757184},
      {"deepseek-v2-lite",
       "deepseek2",
       {163840, 2048, 27, 10944, 16, 16, 102400},
       {{"attention.kv_lora_rank", 512},
        {"attention.key_length", 192},
        {"attention.value_length", 128},
        {"rope.dimension_count", 64},
        {"expert_count", 64},
        {"expert_shared_count", 2},
        {"expert_used_count", 6},
        {"expert_feed_forward_length", 1408},
        {"leading_dense_block_count", 1},
        {"expert_gating_func", 1}},
       {"output.weight"},
       15706484224},
      // A newer file, whose head sizes are those of the single latent head.
      {"deepseek-v3",
       "deepseek2",
       {163840, 7168, 61, 18432, 128, 1, 129280},
       {{"attention.q_lora_rank", 1536},
        {"attention.kv_lora_rank", 512},
        {"attention.key_length", 576},
        {"attention.value_length", 512},
        {"attention.key_length_mla", 192},
        {"attention.value_length_mla", 128},
        {"rope.dimension_count", 64},
        {"expert_count", 256},
        {"expert_shared_count", 1},
        {"expert_used_count", 8},
        {"expert_feed_forward_length", 2048},
        {"leading_dense_block_count", 3},
        {"expert_gating_func", 2},
        {"expert_group_count", 8},
        {"expert_group_used_count", 4}},
       {"output.weight"},
       671026404352},
      {"seed-oss-36b",
       "seed_oss",
       {524288, 5120, 64, 27648, 80, 8, 155136},
       {{"attention.key_length", 128}},
       {"output.weight", "blk.0.attn_q.bias"},
       36151104512},
      {"olmoe-1b-7b",
       "olmoe",
       {4096, 2048, 16, 1024, 16, 16, 50304},
       {{"expert_count", 64}, {"expert_used_count", 8}},
       {"output.weight"},
       6919161856},
      {"exaone-4.0-1.2b",
       "exaone4",
       {65536, 2048, 30, 4096, 32, 8, 102400},
       {{"attention.key_length", 64}},
       {},
       1279391488},
      {"exaone-3.0-7.8b",
       "exaone",
       {4096, 4096, 32, 14336, 32, 8, 102400},
       {},
       {"output.weight"},
       7818448896},
      {"ling-lite-1.5",
       "bailingmoe",
       {32768, 2048, 28, 1408, 16, 4, 126464},
       {{"expert_count", 64},
        {"expert_used_count", 6},
        {"expert_shared_count", 2},
        {"expert_feed_forward_length", 1408},
        {"leading_dense_block_count", 0}},
       {"output.weight"},
       16801974272},
      {"ernie-4.5-0.3b",
       "ernie4_5",
       {131072, 1024, 18, 3072, 16, 2, 103424},
       {{"attention.key_length", 128}},
       {},
       360748032},
      {"glm-4-9b-0414",
       "glm4",
       {32768, 4096, 40, 13696, 32, 2, 151552},
       {{"attention.key_length", 128}, {"rope.dimension_count", 64}},
       {"output.weight", "blk.0.attn_q.bias"},
       9400279040},
      {"minimax-m2.5",
       "minimax-m2",
       {196608, 3072, 62, 1536, 48, 8, 200064},
       {{"attention.key_length", 128},
        {"expert_count", 256},
        {"expert_used_count", 8},
        {"expert_feed_forward_length", 1536},
        {"rope.dimension_count", 64}},
       {"output.weight"},
       228689748992},
      {"deepseek-moe-16b",
       "deepseek",
       {4096, 2048, 28, 10944, 16, 16, 102400},
       {{"leading_dense_block_count", 1},
        {"expert_count", 64},
        {"expert_shared_count", 2},
        {"expert_used_count", 6},
        {"expert_feed_forward_length", 1408}},
       {"output.weight"},
       16375728128},
      {"internlm2-7b",
       "internlm2",
       {32768, 4096, 32, 14336, 32, 8, 92544},
       {},
       {"output.weight"},
       7737708544},
      {"qwen-1.8b",
       "qwen",
       {8192, 2048, 24, 11008, 16, 16, 151936},
       {},
       {"output.weight"},
       1836828672},
      {"chatglm3-6b",
       "chatglm",
       {8192, 4096, 28, 13696, 32, 2, 65024},
       {{"rope.dimension_count", 64}},
       {"output.weight", "blk.0.attn_qkv.bias"},
       6243584000},
      {"glm-4.5-air",
       "glm4moe",
       {131072, 4096, 47, 10944, 96, 8, 151552},  // one block predicts further tokens
       {{"attention.key_length", 128},
        {"rope.dimension_count", 64},
        {"nextn_predict_layers", 1},
        {"leading_dense_block_count", 1},
        {"expert_count", 128},
        {"expert_shared_count", 1},
        {"expert_used_count", 8},
        {"expert_feed_forward_length", 1408}},
       {"output.weight", "blk.0.attn_q.bias"},
       106852245504},
      {"glm-4-9b",
       "chatglm",
       {131072, 4096, 40, 13696, 32, 2, 151552},
       {{"rope.dimension_count", 64}, {"attention.key_length", 128}},
       {"output.weight", "blk.0.attn_q.bias"},
       9399951360},
      // 132B: 2·100352·6144 words and head; 40 layers of 6144·(6144 + 2·1024) + 6144² attention,
      // 16·6144 router, 16·3·6144·10752 experts, 2·6144 norms; norm 6144.
      {"dbrx-base",
       "dbrx",
       {32768, 6144, 40, 10752, 48, 8, 100352},
       {{"expert_count", 16}, {"expert_used_count", 4}},
       {"output.weight"},
       131596523520},
      {"starcoderbase-1b", "starcoder", {8192, 2048, 24, 8192, 16, 1, 49152}, {}, {}, 1137207296},
      {"phi-3.5-moe",
       "phimoe",
       {131072, 4096, 32, 6400, 32, 8, 32064},
       {{"expert_count", 16}, {"expert_used_count", 2}},
       {"output.weight", "output.bias", "blk.0.attn_q.bias"},
       41873153344},
      {"llama-4-scout, text",
       "llama4",
       {10485760, 5120, 48, 16384, 40, 8, 202048},
       {{"attention.key_length", 128},
        {"expert_count", 16},
        {"expert_used_count", 1},
        {"expert_feed_forward_length", 8192},
        {"interleave_moe_layer_step", 1}},
       {"output.weight"},
       107769861120},
      {"qwen3-next-80b-a3b",
       "qwen3next",
       {262144, 2048, 48, 5120, 16, 2, 151936},
       {{"attention.key_length", 256},
        {"rope.dimension_count", 64},
        {"full_attention_interval", 4},
        {"ssm.conv_kernel", 4},
        {"ssm.state_size", 128},
        {"ssm.group_count", 16},
        {"ssm.time_step_rank", 32},
        {"ssm.inner_size", 4096},
        {"expert_count", 512},
        {"expert_used_count", 10},
        {"expert_feed_forward_length", 512},
        {"expert_shared_feed_forward_length", 512}},
       {"output.weight"},
       79674391296},
      {"qwen2.5-vl-7b, text",
       "qwen2vl",
       {128000, 3584, 28, 18944, 28, 4, 152064},
       {},
       {"output.weight"},
       7615616512},
      {"qwen3-vl-2b, text",
       "qwen3vl",
       {262144, 2048, 28, 6144, 16, 8, 151936},
       {{"attention.key_length", 128}},
       {},
       1720574976},
      {"qwen3-vl-235b-a22b, text",
       "qwen3vlmoe",
       {262144, 4096, 94, 12288, 64, 4, 151936},
       {{"attention.key_length", 128},
        {"expert_count", 128},
        {"expert_used_count", 8},
        {"expert_feed_forward_length", 1536}},
       {"output.weight"},
       235093634560},
      {"minicpm-2b",
       "minicpm",
       {65536, 2304, 40, 5760, 36, 36, 122760},
       {},
       {"output.weight"},
       3007736064},
  };
}

bool has_layer_norms(const std::string& architecture) {
  for (const char* const name : {"phi2", "falcon", "bloom", "mpt", "stablelm", "command-r",
                                 "starcoder", "starcoder2", "gptneox", "dbrx"}) {
    if (architecture == name) return true;
  }
  return false;
}

std::string file_of(const PublishedGguf& model) {
  const std::string architecture = model.architecture;
  GgufWriter writer;
  writer.add("general.architecture", model.architecture);
  const auto add = [&](const std::string& key, std::uint32_t value) {
    writer.add(architecture + "." + key, value);
  };
  add("context_length", model.counts.context);
  add("embedding_length", model.counts.width);
  add("block_count", model.counts.layers);
  add("attention.head_count", model.counts.heads);
  const auto add_unless_listed = [&](const std::string& key, std::uint32_t value) {
    const auto listed = std::ranges::find(
        model.lists, key, &std::pair<std::string, std::vector<std::uint32_t>>::first);
    if (listed == model.lists.end()) {
      add(key, value);
    } else {
      writer.add(architecture + "." + key, listed->second);
    }
  };
  add_unless_listed("feed_forward_length", model.counts.inner);
  add_unless_listed("attention.head_count_kv", model.counts.kv_heads);
  for (const auto& [key, values] : model.lists) {
    const bool written = key == "feed_forward_length" || key == "attention.head_count_kv";
    if (!written) writer.add(architecture + "." + key, values);
  }
  add("vocab_size", model.counts.words);
  writer.add(architecture + (has_layer_norms(architecture) ? ".attention.layer_norm_epsilon"
                                                           : ".attention.layer_norm_rms_epsilon"),
             1e-5F);
  for (const auto& [key, value] : model.more) {
    add(key, value);
    if (key != "rope.scaling.original_context_length") continue;
    writer.add(architecture + ".rope.scaling.type", "yarn");
    writer.add(architecture + ".rope.scaling.factor", 32.0F);
  }
  for (const std::string& tensor : model.tensors) writer.tensor(tensor, {1});
  return writer.str();
}

}  // namespace

TEST_CASE("the metadata of published models give their published parameter counts") {
  std::vector<PublishedGguf> models = published_models();
  const std::vector<PublishedGguf> hybrids = published_hybrids();
  models.insert(models.end(), hybrids.begin(), hybrids.end());
  for (const PublishedGguf& published : models) {
    CAPTURE(published.model);
    const TempFolder folder;
    write_file(folder / "model.gguf", file_of(published));
    try {
      const ModelSpec spec = load_model((folder / "model.gguf").string()).spec;
      const Graph graph = build_graph(spec, {});
      CHECK(count_parameters(graph).total.evaluate(graph.sizes) == Integer{published.parameters});
    } catch (const Error& error) {
      FAIL_CHECK(std::string(error.what()));
    }
  }
}
