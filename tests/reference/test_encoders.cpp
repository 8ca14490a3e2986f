// Encoders and their heads: published totals, and the parameters of every head by derivation.
// Sources: tests/data/README.md, and as named.
#include <doctest/doctest.h>

#include <cmath>

#include "support/data.h"

using namespace headroom;
using namespace headroom::test;

namespace {

Integer total_of(const nlohmann::json& config) {
  const Graph graph = build_graph(spec_of(config), {});
  return count_parameters(graph).total.evaluate(graph.sizes);
}

nlohmann::json with_class(nlohmann::json config, const std::string& name) {
  config["architectures"] = {name};
  return config;
}

nlohmann::json bert_like(const std::string& model_type) {
  return {{"model_type", model_type},      {"hidden_size", 48},       {"num_attention_heads", 4},
          {"num_hidden_layers", 2},        {"intermediate_size", 80}, {"vocab_size", 101},
          {"max_position_embeddings", 40}, {"num_labels", 5}};
}

constexpr Integer kWidth = 48;
constexpr Integer kLabels = 5;
constexpr Integer kDense = kWidth * kWidth + kWidth;
constexpr Integer kNorm = 2 * kWidth;

constexpr Integer projection(Integer labels) { return labels * kWidth + labels; }

}  // namespace

TEST_CASE("encoders have the reference's parameters, and run") {
  for (const CsvRow& row : read_csv(data_folder() / "encoders/tiny.csv")) {
    CAPTURE(row.at("model"));
    const auto config = read_json(data_folder() / "encoders/tiny" / (row.at("model") + ".json"));
    CHECK(total_of(config) == number(row, "params"));
    CHECK(spec_of(config).not_run.empty());
  }
}

TEST_CASE("DINOv3 without register tokens has the reference's FLOPs") {
  for (const CsvRow& row : read_csv(data_folder() / "encoders/tiny.csv")) {
    if (row.at("model") != "dinov3_vit_gated") continue;
    const auto spec = spec_of(read_json(data_folder() / "encoders/tiny/dinov3_vit_gated.json"));
    WorkloadRequest request;
    request.batch_size = number(row, "batch");
    const Counted counted = count(spec, resolve(request, spec), Convention::torch);
    CHECK(counted.figures.forward.matrix_flops == number(row, "total_matmul_flops"));
  }
}

// nomic-embed-text-v1.5: 136,731,648 = 30528·768 words + 2·768 types + 2·768 norm + 12 layers of
// 4·768² + 3·768·3072 + 4·768. The config has the publisher's keys.
TEST_CASE("nomic-embed-text-v1.5 has its published parameters") {
  CHECK(total_of({{"model_type", "nomic_bert"},
                  {"architectures", {"NomicBertModel"}},
                  {"activation_function", "swiglu"},
                  {"n_embd", 768},
                  {"n_head", 12},
                  {"n_inner", 3072},
                  {"n_layer", 12},
                  {"n_positions", 8192},
                  {"pad_vocab_size_multiple", 64},
                  {"qkv_proj_bias", false},
                  {"mlp_fc1_bias", false},
                  {"mlp_fc2_bias", false},
                  {"rotary_emb_base", 1000},
                  {"rotary_emb_fraction", 1.0},
                  {"layer_norm_epsilon", 1e-12},
                  {"type_vocab_size", 2},
                  {"vocab_size", 30528}}) == 136731648);
}

// nomic-embed-text-v2-moe: 475,292,928 = 250048·768 words + 768 types + 2·768 norm + 12 layers of
// 4·(768² + 768) + 4·768; 6 dense networks of 2·768·3072 + 3072 + 768; 6 of 8·768 router,
// 8·2·768·3072 experts and 768 bias. 6 of 8 experts of 6 layers rest: 305 M active (arXiv
// 2502.07972, table 1). The config is the published one.
TEST_CASE("nomic-embed-text-v2-moe has its published parameters, and 305 M active") {
  const auto config = read_json(data_folder() / "published/nomic-embed-text-v2-moe.config.json");
  CHECK(total_of(config) == 475292928);
  const Graph graph = build_graph(spec_of(config), {});
  CHECK(count_parameters(graph).active.evaluate(graph.sizes) == 475292928 - 6 * 6 * 2 * 768 * 3072);
}

TEST_CASE("routed experts of Nomic Embed beside a gated activation are refused") {
  auto config = read_json(data_folder() / "published/nomic-embed-text-v2-moe.config.json");
  config["activation_function"] = "swiglu";
  CHECK_THROWS_WITH_AS((void)spec_of(config), doctest::Contains("moe_every_n_layers"), Error);
}

// jinaai/jina-embeddings-v3: 572,310,396, of which 12,946,300 are adapters. Words 250002·1024,
// types 1024, norm 2·1024, 24 layers of 4·(1024² + 1024) + 2·1024·4096 + 5·1024 + 4·1024, pooler
// 1024² + 1024; adapters of rank 4 for 5 tasks: 20·(in + out) of the tables of words and types, of
// 24 layers' qkv (1024 + 3072), output (2048) and two of (1024 + 4096), and of the pooler (2048).
TEST_CASE("jina-embeddings-v3 has its published parameters, its adapters among them") {
  auto config = read_json(data_folder() / "families/jina_v3_published/config.json");
  config.merge_patch({{"hidden_size", 1024},
                      {"intermediate_size", 4096},
                      {"num_attention_heads", 16},
                      {"num_hidden_layers", 24},
                      {"max_position_embeddings", 8194},
                      {"vocab_size", 250002}});
  CHECK(total_of(config) == 572310396);
  const std::vector<std::string> notes = spec_of(config).assumptions;
  CHECK(notes.size() == 1);
  CHECK(notes.front().find("adapters of 5 tasks") != std::string::npos);
  config["lora_adaptations"] = nullptr;
  CHECK(total_of(config) == 572310396 - 12946300);
}

// jinaai/jina-embeddings-v2-base-en with its pooler: 137,368,320 = 30528·768 words, 2·768 types,
// norm 2·768, 12 layers of 4·(768² + 768) + 2·768 + 2·768·3072 + 3072·768 + 768 + 2·768, pooler
// 768² + 768. The config has the publisher's keys.
TEST_CASE("jina-embeddings-v2-base-en has its parameters under either type") {
  nlohmann::json config = read_json(data_folder() / "encoders/tiny/jina_bert.json");
  CHECK(total_of(config) == 137368320);
  config["model_type"] = "bert";  // as published
  CHECK(total_of(config) == 137368320);
}

// google/siglip2-base-patch16-naflex: 375,234,050. Text: 256000·768 words, 64·768 positions; image:
// 768·768 + 768 patches, 256·768 positions; each 12 layers of 4·(768² + 768) + 2·768·3072 + 3840 +
// 4·768, norm 2·768; head 768² + 768; pooling head 768 + 4·(768² + 768) + 2·768·3072 + 3840 +
// 2·768; scale and bias 2.
TEST_CASE("siglip2-base-patch16-naflex has its published parameters without a stated size") {
  CHECK(total_of({{"model_type", "siglip2"},
                  {"architectures", {"Siglip2Model"}},
                  {"text_config", {{"vocab_size", 256000}}},
                  {"vision_config", nlohmann::json::object()}}) == 375234050);
}

// google/long-t5-local-base and -tglobal-base: 32128·768·2 words and head; 12 encoder layers of
// 4·768² + 3·768·2048 + 2·768; 12 decoder layers of 8·768² + 3·768·2048 + 3·768; norms 2·768;
// biases 2·32·12. Transient global attention adds 32·12 biases and 12 norms of 768.
TEST_CASE("LongT5's base models have their published parameters") {
  nlohmann::json config = {{"model_type", "longt5"},
                           {"architectures", {"LongT5ForConditionalGeneration"}},
                           {"d_model", 768},
                           {"d_kv", 64},
                           {"d_ff", 2048},
                           {"num_heads", 12},
                           {"num_layers", 12},
                           {"vocab_size", 32128},
                           {"feed_forward_proj", "gated-gelu"},
                           {"tie_word_embeddings", false},
                           {"encoder_attention_type", "local"}};
  CHECK(total_of(config) == 247577856);
  config["encoder_attention_type"] = "transient-global";
  CHECK(total_of(config) == 247587456);
}

// T5 XXL as files of image generators state it, by the class: 32128·4096 words, 24 encoder layers
// of 4·4096² + 3·4096·10240 + 2·4096, 24 decoder layers of 8·4096² + 3·4096·10240 + 3·4096, norms
// 2·4096, biases 2·32·64.
TEST_CASE("a T5 that states is_gated_act alone has gated FFNs") {
  CHECK(total_of({{"model_type", "t5"},
                  {"architectures", {"T5Model"}},
                  {"d_model", 4096},
                  {"d_kv", 64},
                  {"d_ff", 10240},
                  {"num_heads", 64},
                  {"num_layers", 24},
                  {"vocab_size", 32128},
                  {"dense_act_fn", "gelu_pytorch_tanh"},
                  {"is_gated_act", true}}) == 11003736064);
}

// xlnet-base-cased without its head: 116,718,336 = 32000·768 words, 768 mask, 12 layers of 5·768² +
// 5·768 + 2·768 + 2·768·3072 + 3840 + 2·768.
TEST_CASE("xlnet-base-cased has its published parameters") {
  CHECK(total_of({{"model_type", "xlnet"},
                  {"architectures", {"XLNetModel"}},
                  {"d_model", 768},
                  {"d_inner", 3072},
                  {"n_layer", 12},
                  {"n_head", 12},
                  {"vocab_size", 32000}}) == 116718336);
}

// facebook/dinov2-base, 518² images: 86,580,480 = class and mask tokens 2·768, positions 1370·768,
// patches 588·768 + 768, 12 layers of 4·(768² + 768) + 2·768·3072 + 3840 + 4·768 + 2·768, norm
// 2·768.
TEST_CASE("dinov2-base has its published parameters") {
  CHECK(total_of({{"model_type", "dinov2"},
                  {"architectures", {"Dinov2Model"}},
                  {"hidden_size", 768},
                  {"image_size", 518},
                  {"patch_size", 14},
                  {"num_attention_heads", 12},
                  {"num_hidden_layers", 12},
                  {"mlp_ratio", 4}}) == 86580480);
}

// A gated network of 4·768·2/3 = 2048 has two input matrices.
TEST_CASE("DINOv2's SwiGLU network has two thirds of the width, rounded up to 8") {
  const nlohmann::json config = {{"model_type", "dinov2"}, {"hidden_size", 40},
                                 {"image_size", 24},       {"patch_size", 6},
                                 {"num_hidden_layers", 3}, {"num_attention_heads", 5},
                                 {"use_swiglu_ffn", true}, {"mlp_ratio", 2}};
  // int(80·2/3) = 53, rounded up to 56.
  CHECK(spec_of(config).encoder->ffn.intermediate_size == 56);
}

TEST_CASE("heads of BERT-like encoders have their layers' parameters") {
  for (const auto& classes : {std::pair{"roberta", "Roberta"}, std::pair{"mpnet", "MPNet"},
                              std::pair{"longformer", "Longformer"}}) {
    const char* const type = classes.first;
    CAPTURE(type);
    const std::string name = classes.second;
    const auto config = bert_like(type);
    const Integer pooled = total_of(with_class(config, name + "Model"));
    const auto head = [&](const std::string& suffix) {
      return total_of(with_class(config, name + suffix)) - (pooled - kDense);
    };
    CHECK(head("ForSequenceClassification") == kDense + projection(kLabels));
    CHECK(head("ForTokenClassification") == projection(kLabels));
    CHECK(head("ForQuestionAnswering") == projection(kLabels));
    CHECK(head("ForMultipleChoice") == kDense + projection(1));
  }
}

TEST_CASE("heads of DeBERTa, ESM, ELECTRA and NomicBERT have their layers' parameters") {
  const auto head = [&](const char* type, const std::string& bare, const std::string& name) {
    const auto config = bert_like(type);
    return total_of(with_class(config, name)) - total_of(with_class(config, bare));
  };
  const std::string deberta = "DebertaV2";
  CHECK(head("deberta-v2", deberta + "Model", deberta + "ForSequenceClassification") ==
        kDense + projection(kLabels));
  CHECK(head("deberta-v2", deberta + "Model", deberta + "ForTokenClassification") ==
        projection(kLabels));
  CHECK(head("deberta-v2", deberta + "Model", deberta + "ForQuestionAnswering") ==
        projection(kLabels));
  CHECK(head("deberta-v2", deberta + "Model", deberta + "ForMultipleChoice") ==
        kDense + projection(1));
  CHECK(head("esm", "EsmModel", "EsmForSequenceClassification") == projection(kLabels));
  CHECK(head("esm", "EsmModel", "EsmForTokenClassification") == projection(kLabels) - kDense);
  CHECK(head("nomic_bert", "NomicBertModel", "NomicBertForSequenceClassification") ==
        kDense + projection(kLabels));
  CHECK(head("electra", "ElectraModel", "ElectraForMultipleChoice") == kDense + projection(1));
}

TEST_CASE("heads of ModernBERT have a dense layer and a norm before the labels") {
  const auto config = bert_like("modernbert");
  const Integer bare = total_of(with_class(config, "ModernBertModel"));
  for (const char* const name :
       {"ModernBertForSequenceClassification", "ModernBertForTokenClassification",
        "ModernBertForQuestionAnswering"}) {
    CAPTURE(name);
    // Neither the dense layer nor the norm has a bias by default.
    CHECK(total_of(with_class(config, name)) - bare ==
          kWidth * kWidth + kWidth + projection(kLabels));
  }
}

TEST_CASE("DeiT with a teacher has two classifiers") {
  nlohmann::json config = bert_like("deit");
  config["image_size"] = 24;
  config["patch_size"] = 6;
  config.erase("vocab_size");
  config.erase("max_position_embeddings");
  const Integer pooled = total_of(with_class(config, "DeiTModel"));
  CHECK(total_of(with_class(config, "DeiTForImageClassificationWithTeacher")) ==
        pooled - kDense + 2 * projection(kLabels));
}

// arXiv 2006.03654, section 3.1: three terms, the scale is 1/√(3·d).
TEST_CASE("DeBERTa's relative positions are 2·span rows, and scores are scaled by their terms") {
  nlohmann::json config = bert_like("deberta-v2");
  config.update({{"relative_attention", true},
                 {"position_buckets", 8},
                 {"pos_att_type", "p2c|c2p"},
                 {"norm_rel_ebd", "layer_norm"},
                 {"share_att_key", true}});
  const AttentionSpec attention = spec_of(config).encoder->self_attention;
  REQUIRE(attention.disentangled.has_value());
  CHECK(attention.disentangled->num_positions == 16);
  CHECK(attention.fixed_scale == doctest::Approx(1 / std::sqrt(3.0 * 12)));
  // The shared projections add none; own ones add two of d² + d per layer.
  nlohmann::json own = config;
  own["share_att_key"] = false;
  CHECK(total_of(own) - total_of(config) == 2 * 2 * kDense);
  nlohmann::json plain = config;
  plain["norm_rel_ebd"] = "none";
  CHECK(total_of(config) - total_of(plain) == kNorm);
}

// Of 5 tokens with a window of 2 on either side, the queries see 3, 4, 5, 4 and 3.
TEST_CASE("a note says that a sequence is longer than the positions of its stack") {
  const auto notes_at = [](const char* model, std::int64_t past, std::int64_t enc_seq_len) {
    const ModelSpec spec = load_model(model).spec;
    WorkloadRequest request;
    request.phase = Phase::decode;
    request.past_len = past;
    if (enc_seq_len > 0) request.enc_seq_len = enc_seq_len;
    std::string text;
    for (const std::string& note : notes_on(resolve(request, spec), spec)) text += note + "\n";
    return text;
  };
  // 1,500 frames and 448 tokens (arXiv 2212.04356, section 2.2 and its code); GPT-2 has 1,024.
  CHECK(notes_at("whisper-small", 10, 1500).empty());
  CHECK(notes_at("whisper-small", 10, 2000)
            .find("2000 tokens exceed the 1500 positions of "
                  "whisper-small's encoder") != std::string::npos);
  CHECK(notes_at("gpt2", 1023, 0).empty());
  CHECK(notes_at("gpt2", 1122, 0).find("1123 tokens exceed the 1024 positions of gpt2") !=
        std::string::npos);
}

TEST_CASE("fused attention counts the pairs within the window of an encoder-decoder's encoder") {
  nlohmann::json config = read_json(data_folder() / "golden/tiny/t5gemma.json").at("config");
  Workload workload;
  workload.attention = AttentionImplementation::fused;
  workload.seq_len = 4;
  workload.enc_seq_len = 5;
  config["encoder"]["sliding_window"] = 64;
  const Integer whole = count(spec_of(config), workload).figures.forward.matrix_flops;
  config["encoder"]["sliding_window"] = 2;
  const Counted windowed = count(spec_of(config), workload);
  CHECK(bindings_of(workload, windowed.graph).get(Symbol::encoder_windowed_pairs) == Integer{19});
  // Two of three layers have the window: 4 heads, scores and context of 14 dimensions each.
  CHECK(whole - windowed.figures.forward.matrix_flops == 2 * (25 - 19) * 4 * 2 * 2 * 14);
}

// Blocks of radius + 1 = 4 tokens: 21 tokens are padded to 24. A fused kernel computes the pairs at
// most 3 apart, 21·7 - 2·(1 + 2 + 3).
TEST_CASE("LongT5's encoder attends in whole blocks, or within its radius in a fused kernel") {
  const auto config = read_json(data_folder() / "golden/tiny/longt5.json").at("config");
  Workload workload;
  workload.enc_seq_len = 21;
  const Counted counted = count(spec_of(config), workload);
  const Bindings values = bindings_of(workload, counted.graph);
  CHECK(values.get(Symbol::encoder_block_tokens) == Integer{24});
  CHECK(values.get(Symbol::encoder_windowed_pairs) == Integer{135});
}

// 3 layers of 4·48·40 weights of attention and 3·48·80 of a gated network read 21 tokens; scores
// and context of 4 heads of 10 have 24 queries with 12 keys each, or 135 pairs in a fused kernel.
TEST_CASE("LongT5's encoder alone attends in blocks of the model's own tokens") {
  auto config = read_json(data_folder() / "golden/tiny/longt5.json").at("config");
  config["architectures"] = {"LongT5EncoderModel"};
  const ModelSpec spec = spec_of(config);
  CHECK(spec.not_run.empty());
  // Embeddings, 8 biases of 4 heads, two norms a layer and the final one.
  constexpr std::int64_t kOfLayer = 4 * 48 * 40 + 3 * 48 * 80;
  CHECK(total_of(config) == 101 * 48 + 8 * 4 + 3 * (kOfLayer + 2 * 48) + 48);
  Workload workload;
  workload.seq_len = 21;
  for (const auto& pairs : {std::pair{AttentionImplementation::eager, 24 * 12},
                            std::pair{AttentionImplementation::fused, 135}}) {
    workload.attention = pairs.first;
    const std::int64_t of_pairs = std::int64_t{2} * 2 * 4 * 10 * pairs.second;
    CHECK(count(spec, workload).figures.forward.matrix_flops == 3 * (21 * 2 * kOfLayer + of_pairs));
  }
}

// transformers sums the tokens of a block by a product with a matrix of 0 and 1, whose FLOPs are
// recorded apart: they are additions here. 23 tokens fill 6 blocks of 4 and 4 global tokens of 5.
TEST_CASE("LongT5's transient global attention has the parameters and FLOPs of the reference") {
  const auto folder = data_folder() / "golden/models/longt5_transient_global";
  const auto reference = read_json(folder / "reference.json");
  const ModelSpec spec = load_model(folder.string()).spec;
  Workload workload;
  workload.batch_size = 2;
  workload.seq_len = 15;
  workload.enc_seq_len = 23;
  for (const auto attention : {AttentionImplementation::eager, AttentionImplementation::fused}) {
    workload.attention = attention;
    const Counted counted = count(spec, workload);
    const Bindings values = bindings_of(workload, counted.graph);
    CHECK(values.get(Symbol::transient_global_tokens) == Integer{4});
    CHECK(counted.figures.parameters == reference.at("parameters").get<std::int64_t>());
    // A fused kernel skips the decoder's masked pairs: 15·15 - 15·16/2 of 2 layers, 4 heads, scores
    // and context of 10 dimensions each, for 2 sequences.
    const std::int64_t skipped =
        attention == AttentionImplementation::fused ? 105LL * 2 * 4 * 2 * 2 * 10 * 2 : 0;
    CHECK(counted.figures.forward.matrix_flops + skipped ==
          reference.at("matrix_flops").get<std::int64_t>());
  }
  CHECK(reference.at("one_hot_flops") == 2 * 2 * 23 * 4 * 48 * 3);
}

TEST_CASE("T5Gemma's encoder of another width changes its own weights and cross-attention's keys") {
  const auto parameters = [](const nlohmann::json& config) {
    const Graph graph = build_graph(spec_of(config), {});
    return count_parameters(graph).total.evaluate(graph.sizes);
  };
  // Transformers' total of these weights (tests/data/families/t5gemma_widths/model.safetensors).
  CHECK(parameters(read_json(data_folder() / "families/t5gemma_widths/config.json")) == 140088);
  nlohmann::json config = read_json(data_folder() / "golden/tiny/t5gemma.json").at("config");
  config["decoder"]["vocab_size"] = 24;
  const std::string refusal = refusal_of([&] { (void)spec_of(config); });
  CHECK(refusal.find("vocab_size of 101, and the decoder one of 24") != std::string::npos);
}
