// GGUF files with metadata or tensors that few files have: their parameters, counted by hand, and
// what else the keys say. Keys: gguf-py/gguf/constants.py, github.com/ggml-org/llama.cpp.
#include <doctest/doctest.h>

#include "inspect/model_folder.h"
#include "stored/stored_form.h"
#include "support/data.h"
#include "support/gguf_writer.h"

using namespace headroom;
using namespace headroom::test;

namespace {

using Counts = std::vector<std::pair<const char*, std::uint32_t>>;

constexpr std::uint32_t kList = 9;

/// Metadata of an architecture with these counts.
GgufWriter metadata_of(const std::string& architecture, const Counts& counts) {
  GgufWriter writer;
  writer.add("general.architecture", architecture.c_str());
  for (const auto& count : counts) writer.add(architecture + "." + count.first, count.second);
  return writer;
}

/// A list of a flag for each layer, as the bytes of its value.
std::string flags(const std::vector<bool>& values) {
  constexpr std::uint32_t kFlag = 7;
  std::string bytes = bytes_of(kFlag) + bytes_of(std::uint64_t{values.size()});
  for (const bool value : values) bytes += static_cast<char>(value ? 1 : 0);
  return bytes;
}

ModelSpec spec_in(const GgufWriter& writer) {
  const TempFolder folder;
  write_file(folder / "model.gguf", writer.str());
  return load_model((folder / "model.gguf").string()).spec;
}

std::int64_t parameters_in(const GgufWriter& writer) {
  return static_cast<std::int64_t>(parameters_on(build_graph(spec_in(writer), {})));
}

std::string refusal_in(const GgufWriter& writer) {
  return refusal_of([&] { (void)spec_in(writer); });
}

/// The sizes of the windows of all layers; 0 without one.
std::vector<std::int64_t> windows_in(const GgufWriter& writer) {
  const StackSpec stack = *spec_in(writer).decoder;
  std::vector<std::int64_t> sizes;
  for (std::int64_t layer = 0; layer < stack.num_layers; ++layer) {
    sizes.push_back(stack.attention_of(stack.variant(layer)).window.size);
  }
  return sizes;
}

/// Sizes of a model of `layers` layers of 64 columns, with 4 query and 2 KV heads of 16.
Counts sizes_of(std::uint32_t layers) {
  return {{"context_length", 64},        {"embedding_length", 64}, {"block_count", layers},
          {"feed_forward_length", 96},   {"vocab_size", 50},       {"attention.head_count", 4},
          {"attention.head_count_kv", 2}};
}

Counts with_counts(Counts counts, const Counts& more) {
  for (const auto& pair : more) {
    std::erase_if(counts,
                  [&](const auto& count) { return std::string_view(count.first) == pair.first; });
  }
  counts.insert(counts.end(), more.begin(), more.end());
  return counts;
}

constexpr std::int64_t kWordsAndNorm = 50 * 64 + 64;
constexpr std::int64_t kAttention = 2 * 64 * 64 + 2 * 64 * 32;
constexpr std::int64_t kNetwork = 3 * 64 * 96;

/// The least metadata of a Llama.
GgufWriter least_llama(const Counts& more) {
  return metadata_of("llama", with_counts(sizes_of(2), more));
}

Counts laguna_sizes() {
  return with_counts(sizes_of(5), {{"attention.key_length", 16},
                                   {"expert_count", 4},
                                   {"expert_used_count", 2},
                                   {"expert_feed_forward_length", 12},
                                   {"expert_shared_feed_forward_length", 20},
                                   {"attention.sliding_window", 8}});
}

}  // namespace

TEST_CASE("a head as wide as its share of a Llama's width is the usual one, another is stated") {
  constexpr std::int64_t kUsual = kWordsAndNorm + 2 * (kAttention + kNetwork + 2 * 64);
  CHECK(parameters_in(least_llama({})) == kUsual);
  CHECK(parameters_in(least_llama({{"attention.key_length", 16}})) == kUsual);
  CHECK(parameters_in(least_llama({{"attention.key_length", 8}})) == kUsual - 2 * kAttention / 2);
}

TEST_CASE("words are counted by the embedding, by a stated size, or by the tokens") {
  const auto without_size = [] {
    Counts counts = sizes_of(2);
    std::erase_if(counts,
                  [](const auto& count) { return std::string_view(count.first) == "vocab_size"; });
    return metadata_of("llama", counts);
  };
  const auto words = [](const GgufWriter& writer) { return spec_in(writer).embedding.vocab_size; };
  CHECK(words(without_size().tensor("token_embd.weight", {7, 64})) == 7);
  CHECK(words(least_llama({}).tensor("token_embd.weight", {64})) == 50);
  const std::vector<std::string> tokens{"a", "b", "c"};
  CHECK(words(without_size().add("tokenizer.ggml.tokens", tokens)) == 3);
  const std::string missing = "llama.vocab_size: is missing, and there is no token list";
  CHECK(refusal_in(without_size()).find(missing) != std::string::npos);
  CHECK(refusal_in(without_size().add("tokenizer.ggml.tokens", "abc")).find(missing) !=
        std::string::npos);
}

TEST_CASE("a number of 64 bits keeps its digits, and one of 32 is the shortest that gives it") {
  constexpr std::uint32_t kFloat64 = 12;
  const auto theta = [](const GgufWriter& writer) { return spec_in(writer).position.rope.theta; };
  CHECK(theta(least_llama({}).add_raw("llama.rope.freq_base", kFloat64,
                                      bytes_of(1234567.8912345))) == 1234567.8912345);
  CHECK(theta(least_llama({}).add("llama.rope.freq_base", 0.1F)) == 0.1);
}

TEST_CASE("a scaling of RoPE by the word none is none") {
  GgufWriter none = least_llama({}).add("llama.rope.scaling.type", "none");
  none.add("llama.rope.scaling.factor", 4.0F);
  CHECK(spec_in(none).position.rope.scaling == RopeScalingKind::none);
  GgufWriter linear = least_llama({}).add("llama.rope.scaling.type", "linear");
  linear.add("llama.rope.scaling.factor", 4.0F);
  CHECK(spec_in(linear).position.rope.scaling == RopeScalingKind::linear);
  CHECK(spec_in(linear).position.rope.factor == 4);
}

TEST_CASE("EXAONE 4's files have windows in three of four layers, or as they list them") {
  const Counts sizes =
      with_counts(sizes_of(4), {{"attention.key_length", 16}, {"attention.sliding_window", 8}});
  const std::int64_t layer = kAttention + kNetwork + 2 * 64 + 2 * 16;
  CHECK(parameters_in(metadata_of("exaone4", sizes)) == kWordsAndNorm + 4 * layer);
  CHECK(windows_in(metadata_of("exaone4", sizes)) == std::vector<std::int64_t>{8, 8, 8, 0});
  CHECK(windows_in(metadata_of("exaone4", sizes)
                       .add_raw("exaone4.attention.sliding_window_pattern", kList,
                                flags({true, false, true, false}))) ==
        std::vector<std::int64_t>{8, 0, 8, 0});
  CHECK(windows_in(
            metadata_of("exaone4", with_counts(sizes_of(4), {{"attention.key_length", 16}}))) ==
        std::vector<std::int64_t>(4, 0));
}

TEST_CASE("Laguna's files have windows in three of four layers, or as they list them") {
  CHECK(windows_in(metadata_of("laguna", laguna_sizes())) ==
        std::vector<std::int64_t>{0, 8, 8, 8, 0});
  const auto listed = [](const std::vector<bool>& layers) {
    return windows_in(
        metadata_of("laguna", laguna_sizes())
            .add_raw("laguna.attention.sliding_window_pattern", kList, flags(layers)));
  };
  CHECK(listed({true, false, true, false, true}) == std::vector<std::int64_t>{8, 0, 8, 0, 8});
  const GgufWriter unscaled =
      metadata_of("laguna", laguna_sizes()).add("laguna.rope.scaling.type", "none");
  CHECK(spec_in(unscaled).position.rope.scaling == RopeScalingKind::none);
  CHECK(refusal_in(metadata_of("laguna", with_counts(laguna_sizes(), {{"block_count", 0}})))
            .find("laguna.block_count") != std::string::npos);
}

TEST_CASE("a list of windows that is too short, or of other values than flags, is refused") {
  constexpr std::uint32_t kInt32 = 5;
  std::string numbers = bytes_of(kInt32) + bytes_of(std::uint64_t{5});
  for (int layer = 0; layer < 5; ++layer) numbers += bytes_of(std::int32_t{1});
  for (const auto& [value, message] :
       {std::pair(flags({true, false}), "does not list block_count layers"),
        std::pair(numbers, "lists no flags")}) {
    GgufWriter writer = metadata_of("laguna", laguna_sizes());
    writer.add_raw("laguna.attention.sliding_window_pattern", kList, value);
    CHECK(refusal_in(writer).find(std::string("laguna.attention.sliding_window_pattern: ") +
                                  message) != std::string::npos);
  }
}

TEST_CASE("MiniCPM's factors of residuals and logits are those of the file") {
  GgufWriter writer = metadata_of("minicpm", sizes_of(4));
  writer.add("minicpm.residual_scale", 0.25F).add("minicpm.logit_scale", 8.0F);
  const ModelSpec spec = spec_in(writer);
  CHECK(spec.decoder->residual_multiplier == doctest::Approx(0.25));
  CHECK(spec.head.language_model->logit_scale == doctest::Approx(1.0 / 8));
  CHECK(parameters_in(writer) == kWordsAndNorm + 4 * (kAttention + kNetwork + 2 * 64));
}

TEST_CASE("Mellum's files scale the RoPE of full layers alone") {
  GgufWriter writer = metadata_of(
      "mellum", with_counts(sizes_of(2), {{"attention.key_length", 16},
                                          {"attention.sliding_window", 8},
                                          {"expert_count", 4},
                                          {"expert_used_count", 2},
                                          {"expert_feed_forward_length", 12},
                                          {"rope.scaling.original_context_length", 16}}));
  writer.add_raw("mellum.attention.sliding_window_pattern", kList, flags({true, false}));
  writer.add("mellum.rope.freq_base", 5e5F).add("mellum.rope.freq_base_swa", 1e4F);
  writer.add("mellum.rope.scaling.type", "yarn").add("mellum.rope.scaling.factor", 4.0F);
  writer.add("mellum.rope.scaling.yarn_beta_fast", 24.0F);
  const ModelSpec spec = spec_in(writer);
  const StackSpec& stack = *spec.decoder;
  CHECK(spec.position.rope.scaling == RopeScalingKind::yarn);
  CHECK(spec.position.rope.beta_fast == 24);
  CHECK(spec.position.rope.theta == 5e5);
  const AttentionSpec& windowed = stack.attention_of(stack.variant(0));
  REQUIRE(windowed.rope.has_value());
  CHECK(windowed.rope->scaling == RopeScalingKind::none);
  CHECK(windowed.rope->theta == 1e4);
  const std::int64_t experts = 4 * 3 * 64 * 12 + 4 * 64;
  CHECK(parameters_in(writer) == kWordsAndNorm + 2 * (kAttention + 2 * 16 + experts + 2 * 64));
}

TEST_CASE("MiniMax M3's files tell layers with an indexer and with experts apart") {
  const Counts sizes = with_counts(sizes_of(3), {{"attention.key_length", 16},
                                                 {"expert_count", 4},
                                                 {"expert_used_count", 2},
                                                 {"expert_shared_count", 1},
                                                 {"expert_feed_forward_length", 12},
                                                 {"leading_dense_block_count", 1},
                                                 {"attention.indexer.head_count", 2},
                                                 {"attention.indexer.key_length", 24}});
  constexpr std::int64_t kHeadNorms = 2 * 16 + 2 * 64;
  // The bias of a router's choice is a buffer.
  constexpr std::int64_t kExperts = (4 + 1) * 3 * 64 * 12 + 4 * 64;
  // Queries of 2 heads and one key, each with a norm.
  constexpr std::int64_t kIndexer = 64 * 24 * (2 + 1) + 2 * 24;
  constexpr std::int64_t kPlain =
      kWordsAndNorm + 3 * (kAttention + kHeadNorms) + kNetwork + 2 * kExperts;
  CHECK(parameters_in(metadata_of("minimax-m3", sizes)) == kPlain);
  CHECK(parameters_in(metadata_of("minimax-m3", sizes)
                          .tensor("blk.1.indexer.q_proj.weight", {1})
                          .tensor("blk.2.indexer.q_proj.weight", {1})) == kPlain + 2 * kIndexer);
}

TEST_CASE("DeepSeek's sparse attention has an indexer in every layer of a file without tensors") {
  const Counts sizes = with_counts(sizes_of(2), {{"attention.q_lora_rank", 24},
                                                 {"attention.kv_lora_rank", 20},
                                                 {"attention.key_length", 16},
                                                 {"attention.value_length", 14},
                                                 {"rope.dimension_count", 6},
                                                 {"attention.indexer.head_count", 3},
                                                 {"attention.indexer.key_length", 8},
                                                 {"attention.indexer.top_k", 9},
                                                 {"expert_group_count", 1},
                                                 {"expert_group_used_count", 1},
                                                 {"expert_count", 4},
                                                 {"expert_used_count", 2},
                                                 {"expert_shared_count", 1},
                                                 {"expert_feed_forward_length", 12},
                                                 {"leading_dense_block_count", 1}});
  constexpr std::int64_t kLatent =
      64 * 24 + 24 + 24 * 4 * 16 + 64 * (20 + 6) + 20 + 20 * 4 * (10 + 14) + 4 * 14 * 64;
  constexpr std::int64_t kIndexer = 24 * 3 * 8 + 64 * 8 + 2 * 8 + 64 * 3;
  constexpr std::int64_t kExperts = (4 + 1) * 3 * 64 * 12 + 4 * 64;
  CHECK(parameters_in(metadata_of("deepseek32", sizes)) ==
        kWordsAndNorm + 2 * (kLatent + kIndexer + 2 * 64) + kNetwork + kExperts);
  const ModelSpec spec = spec_in(metadata_of("deepseek32", sizes));
  CHECK(refusal_of([&] { (void)detail::gguf_conversion(spec, "model.gguf"); }) ==
        "model.gguf: GGUF weights of deepseek_v32 cannot be read: the converter's change to their "
        "values is not reversed");
}

TEST_CASE("T5's files have gated networks if they have gates") {
  const Counts sizes = {{"context_length", 64},       {"embedding_length", 64},
                        {"block_count", 2},           {"feed_forward_length", 96},
                        {"vocab_size", 50},           {"attention.head_count", 4},
                        {"attention.key_length", 16}, {"attention.relative_buckets_count", 8}};
  constexpr std::int64_t kAttentions = 4 * 64 * 64;
  constexpr std::int64_t kPlain = 50 * 64 + 2 * (64 + 8 * 4) +
                                  2 * (kAttentions + 2 * 64 * 96 + 2 * 64) +
                                  2 * (2 * kAttentions + 2 * 64 * 96 + 3 * 64);
  CHECK(parameters_in(metadata_of("t5", sizes)) == kPlain);
  GgufWriter gated = metadata_of("t5", sizes).tensor("enc.blk.0.ffn_gate.weight", {1});
  CHECK(parameters_in(gated) == kPlain + 4 * 64 * 96);
}

TEST_CASE("RWKV-7's values are as wide as the model, unless a tensor of them says otherwise") {
  const Counts sizes = {{"context_length", 64},
                        {"embedding_length", 64},
                        {"block_count", 2},
                        {"feed_forward_length", 96},
                        {"vocab_size", 50},
                        {"attention.head_count", 0},
                        {"wkv.head_size", 16},
                        {"attention.decay_lora_rank", 4},
                        {"attention.iclr_lora_rank", 5},
                        {"attention.value_residual_mix_lora_rank", 6},
                        {"attention.gate_lora_rank", 7}};
  const auto value_dim = [](const GgufWriter& writer) {
    return spec_in(writer).decoder->self_attention.time_mix->value_head_dim;
  };
  CHECK(value_dim(metadata_of("rwkv7", sizes)) == 16);
  CHECK(value_dim(metadata_of("rwkv7", sizes).tensor("blk.0.time_mix_value.weight", {128, 64})) ==
        32);
}

TEST_CASE("heads that no model of an architecture can have are refused at their key") {
  CHECK(refusal_in(metadata_of("deci", with_counts(sizes_of(2), {{"attention.head_count_kv", 3}})))
            .find("deci.attention.head_count_kv: does not divide attention.head_count") !=
        std::string::npos);
  GgufWriter step =
      metadata_of("step35", with_counts(sizes_of(2), {{"attention.key_length", 16},
                                                      {"rope.dimension_count", 20},
                                                      {"attention.sliding_window", 8}}));
  step.add_raw("step35.attention.sliding_window_pattern", kList, flags({true, false}));
  CHECK(refusal_in(step).find("step35.rope.dimension_count: exceeds the head size") !=
        std::string::npos);
  constexpr std::uint32_t kInt32 = 5;
  const std::string minus = bytes_of(kInt32) + bytes_of(std::uint64_t{2}) +
                            bytes_of(std::int32_t{2}) + bytes_of(std::int32_t{-2});
  GgufWriter glm = metadata_of("glm4", sizes_of(2));
  glm.add_raw("glm4.rope.dimension_sections", kList, minus);
  CHECK(refusal_in(glm).find("glm4.rope.dimension_sections: lists a negative count") !=
        std::string::npos);
}
