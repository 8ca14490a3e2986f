// Compressed keys, indexers, hyper-connections and attention residuals: lengths and pairs against
// loops over positions, FLOPs and caches of DeepSeek-V4, GLM-5.2 and GLM-5.3 against sums over the
// modules of the reference code (transformers, models/deepseek_v4, models/glm_moe_dsa,
// models/glm5_next), caches against its recorded bytes.
#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "headroom/complexity.h"
#include "headroom/error.h"
#include "headroom/storage.h"
#include "support/data.h"

using namespace headroom;
using namespace headroom::test;

namespace {

ModelSpec wild(const std::string& name) {
  return spec_of(read_json(data_folder() / "wild" / (name + ".config.json")));
}

Workload workload_of(Phase phase, std::int64_t seq_len, std::int64_t past_len) {
  Workload workload;
  workload.phase = phase;
  workload.seq_len = seq_len;
  workload.past_len = past_len;
  workload.dtype = DType::bfloat16;
  workload.kv_dtype = DType::bfloat16;
  return workload;
}

KvCacheUse cache_of(const ModelSpec& spec, const Workload& workload) {
  const Graph graph = build_graph(spec, graph_options(workload));
  return kv_cache_use(spec, graph, workload, {}).value();
}

CsvRow recorded(const std::string& name) {
  for (const CsvRow& row : read_csv(data_folder() / "towers/params.csv")) {
    if (row.at("name") == name) return row;
  }
  return {};
}

/// Forward matrix FLOPs of a row of the component table.
Integer matrix_flops_of(const Counted& counted, const Bindings& values, Part part) {
  Integer sum = 0;
  std::size_t next = 0;
  for (const Block& block : counted.graph.blocks) {
    for (const Node& node : block.nodes) {
      const NodeAnalysis& cost = counted.analysis.nodes.at(next++);
      if (node.component.part == part) sum += cost.cost.forward.matrix_flops.evaluate(values);
    }
  }
  return sum;
}

}  // namespace

TEST_CASE("lengths and pairs of compressed keys equal loops over positions") {
  LayerTraits traits;
  traits.indexer_top_k = 5;
  traits.indexed_rate = 4;
  traits.heavy_compression_rate = 16;
  for (const std::int64_t past : {0, 3, 4, 17, 100}) {
    for (const std::int64_t seq : {1, 2, 4, 31, 64}) {
      CAPTURE(past);
      CAPTURE(seq);
      Integer chosen = 0;
      Integer heavy = 0;
      Integer completed = 0;
      for (std::int64_t position = past + 1; position <= past + seq; ++position) {
        chosen += std::min<std::int64_t>(5, position / 4);
        heavy += position / 16;
        completed += position % 4 == 0 ? 1 : 0;
      }
      const Bindings values = bindings_of(workload_of(Phase::decode, seq, past), traits);
      CHECK(values.get(Symbol::chosen_pairs) == chosen);
      CHECK(values.get(Symbol::chosen_keys) == std::min<Integer>(chosen, (past + seq) / 4));
      CHECK(values.get(Symbol::compressed_keys) == (past + seq) / 4);
      CHECK(values.get(Symbol::new_compressed_keys) == completed);
      CHECK(values.get(Symbol::heavily_compressed_keys) == (past + seq) / 16);
      CHECK(values.get(Symbol::heavily_compressed_pairs) == heavy);
    }
  }
}

TEST_CASE("pairs of keys chosen in blocks equal a loop over positions") {
  LayerTraits traits;
  traits.indexer_top_k = 12;
  traits.indexed_block = 4;
  for (const std::int64_t past : {0, 3, 11, 12, 13, 100}) {
    for (const std::int64_t seq : {1, 2, 4, 31, 64}) {
      CAPTURE(past);
      CAPTURE(seq);
      Integer chosen = 0;
      for (std::int64_t position = past; position < past + seq; ++position) {
        const std::int64_t blocks = std::min<std::int64_t>(3, position / 4 + 1);
        chosen += (blocks - 1) * 4 + position % 4 + 1;
      }
      const Bindings values = bindings_of(workload_of(Phase::decode, seq, past), traits);
      CHECK(values.get(Symbol::chosen_pairs) == chosen);
      CHECK(values.get(Symbol::chosen_keys) == std::min<Integer>(chosen, past + seq));
    }
  }
}

// torch's FlopCounterMode over DeepseekV4ForCausalLM (transformers 5.24, eager), which sums the
// indexer's heads element by element.
TEST_CASE("a tiny DeepSeek-V4 has the reference's matrix FLOPs and the indexer's weighted sums") {
  const ModelSpec spec = spec_of(read_json(data_folder() / "families/deepseek_v4/config.json"));
  const auto flops = [&](std::int64_t batch, std::int64_t seq) {
    Workload workload = workload_of(Phase::prefill, seq, 0);
    workload.batch_size = batch;
    return count(spec, workload).figures.forward.matrix_flops;
  };
  constexpr Integer kHeads = 12;
  CHECK(flops(1, 13) == 1332032 + 2 * 2 * 13 * 6 * kHeads);
  CHECK(flops(2, 30) == 7737600 + 2 * 2 * 2 * 30 * 15 * kHeads);
}

TEST_CASE("layers of DeepSeek-V4 that no class has are refused") {
  const auto config = read_json(data_folder() / "families/deepseek_v4/config.json");
  const auto refuses = [&](const char* key, const nlohmann::json& value) {
    nlohmann::json changed = config;
    changed[key] = value;
    CHECK_THROWS_AS((void)spec_of(changed), Error);
  };
  const std::size_t layers = config.at("num_hidden_layers");
  CHECK_NOTHROW((void)spec_of(config));
  refuses("layer_types", std::vector<std::string>(layers, "full_attention"));
  refuses("mlp_layer_types", std::vector<std::string>(layers, "dense"));
  refuses("compress_rates", {{"heavily_compressed_attention", 1}});
  refuses("compress_rates", {{"compressed_sparse_attention", 1}});
  refuses("hc_sinkhorn_iters", std::int64_t{1} << 40);
  refuses("hc_eps", 1e300);
  refuses("hc_eps", -1);
}

// torch's FlopCounterMode over MiniMaxM3VLForCausalLM (transformers 5.24, eager), and its cache.
TEST_CASE("MiniMax M3's matrix FLOPs and cache are the reference's") {
  const ModelSpec spec = spec_of(read_json(data_folder() / "families/minimax_m3/config.json"));
  const auto flops = [&](std::int64_t batch, std::int64_t seq) {
    Workload workload = workload_of(Phase::prefill, seq, 0);
    workload.batch_size = batch;
    return count(spec, workload).figures.forward.matrix_flops;
  };
  CHECK(flops(1, 13) == 1030016);
  CHECK(flops(2, 29) == 5248768);
  Workload workload = workload_of(Phase::prefill, 13, 0);
  CHECK(cache_of(spec, workload).used_bytes == 2 * (3 * 2 * 2 * 12 * 13 + 2 * 16 * 13));
  // A fused kernel reads two blocks of three keys: 55 of 91 pairs in the two sparse layers.
  workload.attention = AttentionImplementation::fused;
  const Counted fused = count(spec, workload);
  CHECK(matrix_flops_of(fused, bindings_of(workload, fused.graph), Part::attention_core) ==
        Integer{4} * 4 * 12 * (91 + 2 * 55));
}

TEST_CASE("an indexer over single keys chooses at most all keys before a query") {
  LayerTraits traits;
  traits.indexer_top_k = 2048;
  const Bindings all = bindings_of(workload_of(Phase::prefill, 100, 0), traits);
  CHECK(all.get(Symbol::chosen_pairs) == all.get(Symbol::visible_pairs));
  const Bindings step = bindings_of(workload_of(Phase::decode, 1, 8191), traits);
  CHECK(step.get(Symbol::chosen_pairs) == 2048);
  CHECK(step.get(Symbol::chosen_keys) == 2048);
}

// The reference keeps 127 tokens of a window of 128, and lists the one vector that is key and value
// twice.
TEST_CASE("DeepSeek-V4's cache has the reference's bytes at 8192 tokens") {
  for (const char* const name : {"deepseek-v4-flash", "deepseek-v4-flash-fp8", "deepseek-v4-pro"}) {
    CAPTURE(name);
    const KvCacheUse use = cache_of(wild(name), workload_of(Phase::prefill, 8192, 0));
    Integer windows = 0;
    Integer layers = 0;
    for (const KvCacheRow& row : use.rows) {
      if (row.growth != KvGrowth::windowed) continue;
      windows += row.used_bytes;
      layers += row.layers;
    }
    const CsvRow row = recorded(name);
    CHECK(layers == number(row, "layers"));
    CHECK(windows / 128 * 127 * 2 == number(row, "cache_kv_bytes_8192_bf16"));
    CHECK(use.used_bytes - windows == number(row, "cache_other_bytes_8192_bf16"));
  }
}

// DeepseekV4CSACache: the last window's series, and tokens whose window is not complete.
TEST_CASE("a compressor holds the tokens of its open window between steps") {
  const ModelSpec spec = wild("deepseek-v4-flash");
  const auto states = [&](std::int64_t tokens) {
    Integer bytes = 0;
    for (const KvCacheRow& row : cache_of(spec, workload_of(Phase::decode, 1, tokens - 1)).rows) {
      if (row.growth == KvGrowth::constant) bytes += row.used_bytes;
    }
    return bytes;
  };
  const Integer overlap = Integer{21} * 4 * 2 * (512 + 128) * 2;
  CHECK(states(8192) == overlap);
  const Integer indexed = Integer{21} * 3 * 2 * 2 * (512 + 128) * 2;
  const Integer compressed = Integer{20} * 127 * 2 * 512 * 2;
  CHECK(states(8192 + 127) == overlap + indexed + compressed);
}

TEST_CASE("index keys are cached by the layers with an indexer, latent vectors by all") {
  for (const char* const name : {"deepseek-v3.2", "glm-5", "glm-5.2-fp8", "glm-5.2-nvfp4"}) {
    CAPTURE(name);
    const ModelSpec spec = wild(name);
    const LatentAttentionSpec& latent = *spec.decoder->self_attention.latent;
    const KvCacheUse use = cache_of(spec, workload_of(Phase::prefill, 8192, 0));
    const Integer latents = Integer{spec.decoder->num_layers} * 8192 *
                            (latent.kv_lora_rank + latent.qk_rope_head_dim) * 2;
    const CsvRow row = recorded(name);
    CHECK(use.used_bytes - latents == number(row, "cache_other_bytes_8192_bf16"));
  }
}

// Layers 3 to 5 read the choice of layer 2, layers 7 to 9 that of layer 6, and so on.
TEST_CASE("no repetition of layers reads an indexer's choice from the repetition before") {
  const Graph graph = build_graph(wild("glm-5.2-fp8"), {});
  Integer indexers = 0;
  for (const Block& block : graph.blocks) {
    std::set<TensorId> made;
    bool makes_choice = false;
    bool reads_earlier = false;
    for (const Node& node : block.nodes) {
      if (const auto* scores = std::get_if<AttentionScores>(&node.op)) {
        reads_earlier = reads_earlier || (scores->shaping.mask == KeyMask::indexer &&
                                          !made.contains(node.inputs.back()));
      }
      if (std::holds_alternative<KeySelect>(node.op)) {
        makes_choice = true;
        indexers += block.repeat.evaluate(graph.sizes);
      }
      made.insert(node.output);
    }
    CHECK_FALSE((makes_choice && reads_earlier));
  }
  CHECK(indexers == 21);
}

// Sums over the modules of DeepSeek-V4-Flash: 43 layers, of which 21 have an indexer and 20 other
// compressed keys; 300 tokens leave 75 entries of 4 and 2 of 128.
TEST_CASE("DeepSeek-V4's matrix FLOPs are the sum over the reference's modules") {
  constexpr Integer s = 300;
  constexpr Integer d = 4096;
  constexpr Integer k = 512;
  constexpr Integer h = 64;
  const auto gemm = [](Integer rows, Integer in, Integer out) { return 2 * rows * in * out; };
  const Integer attention = gemm(s, d, 1024) + gemm(s, 1024, h * k) + gemm(s, d, k);
  const Integer output = 8 * gemm(s, h / 8 * k, 1024) + gemm(s, 8 * 1024, d);
  const Integer compressors = 21 * 2 * gemm(s, d, 2 * k) + 20 * 2 * gemm(s, d, k);
  const Integer index = 2 * gemm(s, d, 2 * 128) + gemm(s, 1024, 64 * 128) + gemm(s, d, 64) +
                        64 * gemm(s, 128, 75) + gemm(s, 64, 75);
  const Integer keys = 43 * s + 21 * 75 + 20 * 2;
  const Integer hyper = 43 * 2 * (gemm(s, 4 * d, 24) + s * gemm(4, 4, d)) + gemm(s, 4 * d, 4);
  const Integer experts = gemm(s, d, 256) + 7 * 3 * gemm(s, d, 2048);
  const Counted counted = count(wild("deepseek-v4-flash"), workload_of(Phase::prefill, s, 0));
  const Bindings values = bindings_of(workload_of(Phase::prefill, s, 0), counted.graph);
  const auto part = [&](Part of) { return matrix_flops_of(counted, values, of); };
  CHECK(part(Part::attention_qkv) == 43 * attention);
  CHECK(part(Part::attention_out) == 43 * output);
  CHECK(part(Part::attention_compressor) == compressors);
  CHECK(part(Part::attention_indexer) == 21 * index);
  CHECK(part(Part::attention_scores) == h * gemm(s, k, keys));
  CHECK(part(Part::attention_context) == h * gemm(s, k, keys));
  CHECK(part(Part::hyper_connection) == hyper);
  CHECK(counted.figures.forward.matrix_flops == 43 * (attention + output + experts) + compressors +
                                                    21 * index + 2 * h * gemm(s, k, keys) + hyper +
                                                    gemm(s, d, 129280));
}

// GLM-5.3: every query counts the tokens of its whole pools, at most the chosen ones, and the rest.
TEST_CASE("the pairs of chosen pools are the sum over the queries") {
  LayerTraits traits;
  traits.indexed_rate = 3;
  traits.indexer_top_k = 6;
  traits.chooses_pools = true;
  for (std::int64_t past = 0; past < 14; ++past) {
    for (std::int64_t tokens = 1; tokens < 14; ++tokens) {
      CAPTURE(past);
      CAPTURE(tokens);
      Integer pairs = 0;
      for (std::int64_t seen = past + 1; seen <= past + tokens; ++seen) {
        pairs += std::min<std::int64_t>(seen / 3, 2) * 3 + seen % 3;
      }
      const Bindings values = bindings_of(workload_of(Phase::decode, tokens, past), traits);
      CHECK(values.get(Symbol::chosen_pairs) == pairs);
      CHECK(values.get(Symbol::compressed_keys) == (past + tokens) / 3);
    }
  }
}

// GLM-5.3-Flash's text by its class's sizes: 11 of 45 layers have latent attention and an indexer;
// 320 tokens are 20 pools, of which an indexer could choose 128.
TEST_CASE("GLM-5.3's indexers, attention and hyper-connections are the sum over its modules") {
  constexpr Integer s = 320;
  constexpr Integer d = 4096;
  constexpr Integer h = 64;
  const auto gemm = [](Integer rows, Integer in, Integer out) { return 2 * rows * in * out; };
  const ModelSpec spec = spec_of({{"model_type", "glm5_next_text"},
                                  {"architectures", {"Glm5NextTextModel"}},
                                  {"dtype", "bfloat16"}});
  const Workload workload = workload_of(Phase::prefill, s, 0);
  const Counted counted = count(spec, workload);
  const Bindings values = bindings_of(workload, counted.graph);
  const auto part = [&](Part of) { return matrix_flops_of(counted, values, of); };
  CHECK(part(Part::attention_indexer) ==
        11 * (gemm(s, d, 2 * 128) + gemm(s, 1536, 32 * 128) + gemm(s, d, 32) +
              32 * gemm(s, 128, 20) + gemm(s, 32, 20)));
  CHECK(part(Part::attention_scores) == 11 * h * gemm(s, 256, s));
  CHECK(part(Part::attention_context) == 11 * h * gemm(s, 256, s));
  CHECK(part(Part::hyper_connection) == 45 * 2 * (gemm(s, 4 * d, 24) + s * gemm(4, 4, d)));
}

// docs/conventions.md: the class caches a key and a gate per token in place of an index key per
// pool.
TEST_CASE("GLM-5.3 caches a latent vector per token and an index key per pool of 16") {
  const ModelSpec spec = spec_of({{"model_type", "glm5_next_text"},
                                  {"architectures", {"Glm5NextTextModel"}},
                                  {"dtype", "bfloat16"}});
  const Workload workload = workload_of(Phase::prefill, 320, 0);
  const Integer latents = Integer{11} * 320 * 512 * 2;
  const Integer pools = Integer{11} * 20 * 128 * 2;
  Integer growing = 0;
  for (const KvCacheRow& row : cache_of(spec, workload).rows) {
    if (row.growth != KvGrowth::constant) growing += row.used_bytes;
  }
  CHECK(growing == latents + pools);
}

// _keep_in_fp32_modules_strict of the class: convolutions, decays, routers with their biases, and
// the constants of hyper-connections.
TEST_CASE("GLM-5.3's weights are of 16 bits but for those that its class keeps in float32") {
  const ModelSpec spec = spec_of({{"model_type", "glm5_next_text"},
                                  {"architectures", {"Glm5NextTextModel"}},
                                  {"dtype", "bfloat16"}});
  const Integer convolutions = Integer{34} * 3 * 8192 * 4;
  const Integer decays = Integer{34} * (8192 + 64);
  const Integer routers = Integer{42} * (288 * 4096);
  const Integer hyper = Integer{45} * 2 * (24 + 3);
  const Integer parameters = 312'692'428'286;
  const Integer biases = Integer{42} * 288;  // buffers
  CHECK(stored_weights(spec, build_graph(spec, {})).bytes ==
        2 * parameters + 2 * (convolutions + decays + routers + hyper) + 4 * biases);
}

TEST_CASE("a fused kernel computes the pairs of the window and the chosen keys only") {
  Workload workload = workload_of(Phase::decode, 1, 999'999);
  workload.attention = AttentionImplementation::fused;
  const Counted counted = count(wild("deepseek-v4-pro"), workload);
  const Bindings values = bindings_of(workload, counted.graph);
  // 61 windows of 128, 30 layers with 1024 of 250,000 keys, 31 with all 7812 keys.
  const Integer pairs = Integer{61} * 128 + Integer{30} * 1024 + Integer{31} * 7812;
  CHECK(matrix_flops_of(counted, values, Part::attention_core) == Integer{4} * 128 * 512 * pairs);
}

TEST_CASE("attention residuals multiply every value of their streams by a probability") {
  // Of 7 layers in blocks of 3, attentions read 0, 2, 2, 2, 3, 3 and 3 streams, networks 2, 2, 2,
  // 3, 3, 3 and 4, and the head 4. By torch's FlopCounterMode, the published class has 27,360 FLOPs
  // more with them than without.
  auto config = read_json(data_folder() / "families/kimi_k3_text/config.json");
  Workload workload;
  workload.batch_size = 2;
  workload.seq_len = 9;
  const Figures with = count(spec_of(config), workload).figures;
  config["attn_res_block_size"] = nullptr;
  const Figures without = count(spec_of(config), workload).figures;
  const Integer streams = 0 + 2 + 2 + 2 + 3 + 3 + 3 + 2 + 2 + 2 + 3 + 3 + 3 + 4 + 4;
  CHECK(with.forward.matrix_flops - without.forward.matrix_flops == 2 * streams * 20 * 18);
  CHECK(with.forward.matrix_flops - without.forward.matrix_flops == 27360);
  // A norm and a vector in front of each attention, each network and the head.
  CHECK(with.parameters - without.parameters == 2 * 20 * (7 + 7 + 1));
}

TEST_CASE("independent hyper-connections multiply each stream by its weights only") {
  // By torch's FlopCounterMode, the class has 2,231,568 FLOPs with 3 streams, 144,000 more than
  // with 2.
  auto config = read_json(data_folder() / "families/hy_v4/config.json");
  Workload workload;
  workload.batch_size = 2;
  workload.seq_len = 9;
  const Figures three = count(spec_of(config), workload).figures;
  CHECK(three.forward.matrix_flops == 2231568);
  config["hc_mult"] = 2;
  const Figures two = count(spec_of(config), workload).figures;
  CHECK(three.forward.matrix_flops - two.forward.matrix_flops == 144000);
  CHECK(three.parameters - two.parameters == 4025);
}

TEST_CASE("gates of norms and of latent attention have the FLOPs that torch counts") {
  // By torch's FlopCounterMode, the class has 1,707,264 FLOPs with gates of rank 5, 16,128 fewer
  // than with rank 6.
  auto config = read_json(data_folder() / "families/axk2/config.json");
  Workload workload;
  workload.batch_size = 2;
  workload.seq_len = 9;
  const Figures five = count(spec_of(config), workload).figures;
  CHECK(five.forward.matrix_flops == 1707264);
  config["gated_norm_rank"] = 6;
  const Figures six = count(spec_of(config), workload).figures;
  CHECK(six.forward.matrix_flops - five.forward.matrix_flops == 16128);
  CHECK(six.parameters - five.parameters == 448);
}

TEST_CASE("hyper-connections save the streams before every sublayer and before the last sum") {
  const Counted counted = count(wild("deepseek-v4-flash"), workload_of(Phase::train, 64, 0));
  Integer streams = 0;
  for (const SavedTensor& saved : counted.analysis.saved) {
    if (saved.what == "streams") {
      Workload workload = workload_of(Phase::train, 64, 0);
      streams += (saved.repeat * saved.bytes).evaluate(bindings_of(workload, counted.graph));
    }
  }
  // The input of each of 86 sublayers and of the last sum, four streams of 4096 in 16 bits.
  CHECK(streams == Integer{87} * 64 * 4 * 4096 * 2);
}

TEST_CASE("the cost of chosen keys grows as that of a window, and compressed keys are refused") {
  const ModelSpec spec = wild("deepseek-v3.2");
  const Graph graph =
      build_graph(spec, {Phase::prefill, AttentionImplementation::fused, LatentAttention::naive});
  const LengthFunction pairs = in_length(Symbol::chosen_pairs * Expr(Integer{2}), graph);
  for (const std::int64_t length : {1, 2048, 2049, 10'000}) {
    const Bindings values = bindings_of(workload_of(Phase::prefill, length, 0), graph);
    CHECK(pairs.at(length) == 2 * *values.get(Symbol::chosen_pairs));
  }
  const Graph compressed = build_graph(wild("deepseek-v4-flash"), {});
  CHECK_THROWS_AS((void)in_length(Symbol::seq_len, compressed), Error);
  const Graph blocks = build_graph(wild("minimax-m3"), {});
  CHECK_THROWS_AS((void)in_length(Symbol::chosen_pairs * Expr(Integer{2}), blocks), Error);
}

TEST_CASE("compress_ratios needs an entry of 0, 4 or 128 for every layer") {
  nlohmann::json config = read_json(data_folder() / "wild/deepseek-v4-flash.config.json");
  config["compress_ratios"] = {0, 4, 128};
  CHECK(refusal_of([&] { (void)spec_of(config); }).find("3 entries for 43 layers") !=
        std::string::npos);
  config["compress_ratios"] = std::vector<int>(43, 8);
  CHECK(refusal_of([&] { (void)spec_of(config); }).find("a rate of 8") != std::string::npos);
}

TEST_CASE("the first layer of sparse attention has an indexer of its own") {
  nlohmann::json config = read_json(data_folder() / "wild/glm-5.2-fp8.config.json");
  config["indexer_types"][0] = "shared";
  CHECK(refusal_of([&] { (void)spec_of(config); }).find("indexer_types") != std::string::npos);
}
