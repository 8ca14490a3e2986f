// Metadata of GGUF files that no model can have: one value is changed, and the error names its key.
#include <doctest/doctest.h>

#include <algorithm>
#include <limits>

#include "inspect/model_folder.h"
#include "inspect/published_gguf.h"
#include "support/data.h"
#include "support/gguf_writer.h"

using namespace headroom;
using namespace headroom::test;

namespace {

using Values = std::vector<std::uint32_t>;

/// A change of one key, and the words of the error; one value, or one a layer.
struct Refusal {
  std::string architecture;
  std::string key;
  Values values;
  std::string because;
};

/// Latent attention, of which no published model is listed.
PublishedGguf minicpm3() {
  return {"minicpm3-4b",
          "minicpm3",
          {32768, 2560, 62, 6400, 40, 40, 73448},
          {{"attention.q_lora_rank", 768},
           {"attention.kv_lora_rank", 256},
           {"attention.key_length", 96},
           {"rope.dimension_count", 32}},
          {"blk.0.attn_kv_b.weight"},
          0};
}

PublishedGguf changed(const Refusal& refusal) {
  std::vector<PublishedGguf> models = published_hybrids();
  std::ranges::move(published_decoders(), std::back_inserter(models));
  models.push_back(minicpm3());
  const auto found = std::ranges::find_if(models, [&](const PublishedGguf& model) {
    return model.architecture == refusal.architecture;
  });
  REQUIRE(found != models.end());
  PublishedGguf model = *found;
  std::erase_if(model.more, [&](const auto& pair) { return pair.first == refusal.key; });
  std::erase_if(model.lists, [&](const auto& pair) { return pair.first == refusal.key; });
  if (refusal.values.size() == 1) model.more.emplace_back(refusal.key, refusal.values.front());
  if (refusal.values.size() > 1) model.lists.emplace_back(refusal.key, refusal.values);
  return model;
}

std::string refusal_of_file(const PublishedGguf& model) {
  const TempFolder folder;
  write_file(folder / "model.gguf", file_of(model));
  return refusal_of([&] { (void)load_model((folder / "model.gguf").string()); });
}

/// A key, as its type and its bytes in the file.
struct RawValue {
  std::string architecture;
  std::string key;
  std::uint32_t type;
  std::string bytes;
};

/// Metadata of a small model, with `value` in place of its own of that key.
std::string file_with(const RawValue& value) {
  const bool names = value.key == "general.architecture";
  GgufWriter writer;
  if (!names) writer.add("general.architecture", value.architecture.c_str());
  for (const auto& [name, count] :
       std::vector<std::pair<std::string, std::uint32_t>>{{"context_length", 32},
                                                          {"embedding_length", 256},
                                                          {"block_count", 2},
                                                          {"feed_forward_length", 512},
                                                          {"attention.head_count", 4},
                                                          {"attention.head_count_kv", 2},
                                                          {"vocab_size", 64}}) {
    if (name != value.key) writer.add(value.architecture + "." + name, count);
  }
  const std::string key = names ? value.key : value.architecture + "." + value.key;
  return writer.add_raw(key, value.type, value.bytes).str();
}

std::string refusal_of_bytes(const std::string& bytes) {
  const TempFolder folder;
  write_file(folder / "model.gguf", bytes);
  return refusal_of([&] { (void)load_model((folder / "model.gguf").string()); });
}

/// A list of `count` numbers of `type`.
std::string list_of(std::uint32_t type, std::uint64_t count, const std::string& numbers) {
  return bytes_of(type) + bytes_of(count) + numbers;
}

}  // namespace

TEST_CASE("metadata of another kind than its key's is refused there") {
  constexpr std::uint32_t kInt32 = 5;
  constexpr std::uint32_t kFloat32 = 6;
  constexpr std::uint32_t kText = 8;
  constexpr std::uint32_t kList = 9;
  constexpr std::uint32_t kUint64 = 10;
  const std::string infinite = bytes_of(std::numeric_limits<float>::infinity());
  const std::string two = bytes_of(std::int32_t{2});
  const std::string minus = bytes_of(std::int32_t{-2});
  const std::string large = bytes_of(std::uint64_t{1} << 63U);
  const std::string huge = bytes_of(std::uint64_t{1} << 40U);
  std::string rising;
  for (const std::int32_t number : {1, 2, 3, 4, 5, 6, 7, 8, 9}) rising += bytes_of(number);
  const std::vector<std::pair<RawValue, std::string>> rows{
      {{"llama", "block_count", kText, gguf_text("two")}, "expected a whole number, not \"two\""},
      {{"llama", "block_count", kFloat32, bytes_of(2.5F)}, "expected a whole number, not 2.5"},
      {{"llama", "block_count", kInt32, minus}, "must be at least 1, not -2"},
      {{"llama", "block_count", kUint64, large}, "9223372036854775808 does not fit 64 bits"},
      {{"llama", "vocab_size", kInt32, minus}, "llama.vocab_size: is not a whole number"},
      {{"llama", "vocab_size", kUint64, large}, "llama.vocab_size: is not a whole number"},
      {{"llama", "vocab_size", kFloat32, bytes_of(2.5F)}, "vocab_size: is not a whole number"},
      {{"llama", "rope.freq_base", kFloat32, infinite}, "llama.rope.freq_base: is not finite"},
      {{"llama", "rope.scaling.type", kText, gguf_text("\x01")}, "type: is not valid text"},
      {{"llama", "feed_forward_length", kList, list_of(kInt32, 0, "")}, "is an empty list"},
      {{"llama", "feed_forward_length", kList, list_of(kInt32, 2, two + minus)}, "layers (2, -2),"},
      {{"llama", "feed_forward_length", kList, list_of(kInt32, 9, rising)}, "6, 7, 8, …), which"},
      {{"llama", "general.architecture", kText, gguf_text("\x01")}, "has no text general.arch"},
      {{"llama", "general.architecture", kInt32, two}, "has no text general.architecture"},
      {{"lfm2", "attention.head_count_kv", kList, list_of(kInt32, 2, two + minus)},
       "lfm2.attention.head_count_kv: lists a negative count"},
      {{"lfm2", "block_count", kInt32, bytes_of(std::int32_t{100001})},
       "is not a number of layers"},
      {{"hy_v3", "block_count", kUint64, huge}, "hy_v3.block_count: is not a number of layers"},
      {{"minimax-m3", "block_count", kUint64, huge}, "block_count: is not a number of layers"},
  };
  for (const auto& row : rows) {
    CAPTURE(row.first.key);
    const std::string error = refusal_of_bytes(file_with(row.first));
    CAPTURE(error);
    CHECK(error.find(row.second) != std::string::npos);
  }
}

TEST_CASE("metadata that no model of the architecture can have is refused at its key") {
  const std::vector<Refusal> refusals{
      {"mamba2", "ssm.time_step_rank", {7}, "ssm.time_step_rank: is no head count"},
      {"nemotron_h_moe", "ssm.time_step_rank", {7}, "ssm.time_step_rank: is no head count"},
      {"qwen3next", "ssm.time_step_rank", {7}, "ssm.time_step_rank: is no head count"},
      {"falcon-h1", "ssm.time_step_rank", {7}, "7 heads of 219 are not the 1536 channels"},
      {"granitehybrid", "ssm.inner_size", {8193}, "ssm.inner_size: is no multiple of width"},
      {"jamba", "ssm.inner_size", {8193}, "ssm.inner_size: is no multiple of width"},
      {"jamba",
       "attention.head_count_kv",
       {8, 8, 0, 8, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0,
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0},
       "does not choose layers by a period"},
      {"granitehybrid", "attention.head_count_kv", {8, 4}, "does not list block_count layers"},
      {"lfm2",
       "attention.head_count_kv",
       {8, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0},
       "attention.head_count_kv: differs between attention layers"},
      {"kimi-linear", "attention.key_length_mla", {64}, "does not exceed the rotated part"},
      {"minicpm3", "attention.key_length", {32}, "does not exceed the rotated part"},
      {"deepseek2", "attention.key_length", {32}, "does not give the size of a key head"},
      {"deepseek2", "attention.value_length", {}, "attention.value_length: is missing"},
      {"qwen3next", "rope.dimension_count", {512}, "rope.dimension_count: exceeds the head size"},
      {"glm4moe", "nextn_predict_layers", {48}, "nextn_predict_layers: exceeds block_count"},
  };
  for (const Refusal& refusal : refusals) {
    CAPTURE(refusal.architecture);
    CAPTURE(refusal.key);
    const std::string error = refusal_of_file(changed(refusal));
    CAPTURE(error);
    CHECK(error.find(refusal.because) != std::string::npos);
  }
}
