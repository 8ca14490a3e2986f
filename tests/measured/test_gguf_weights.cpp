// Runs from GGUF files against runs of the same weights in safetensors. The files are written here
// by the published rules of the converter: convert_hf_to_gguf.py, github.com/ggml-org/llama.cpp.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include "checkpoint/weight_files.h"
#include "headroom/error.h"
#include "inspect/model_folder.h"
#include "session.h"
#include "support/data.h"
#include "support/gguf_writer.h"

using namespace headroom;
using namespace headroom::checkpoint;
using namespace headroom::measured;
using namespace headroom::test;

namespace {

struct Values {
  std::vector<std::int64_t> shape;
  std::vector<float> values;
};

/// The family's tensors with random numbers, named as in its safetensors.
std::map<std::string, Values> random_tensors(const nlohmann::json& config) {
  std::map<std::string, Values> tensors;
  std::mt19937 numbers(7);
  std::uniform_real_distribution<float> weights(-0.2F, 0.2F);
  for (const TensorToWrite& tensor : tensors_of(config)) {
    Values& own = tensors[tensor.name];
    own.shape = tensor.shape;
    own.values.resize(tensor.data.size() / sizeof(float));
    for (float& value : own.values) value = weights(numbers);
  }
  return tensors;
}

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  const auto at = text.find(from);
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

/// GGUF name of a tensor of a Llama-like family.
std::string gguf_name(std::string name) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 15> kNames{
      {{"embed_tokens", "token_embd"},
       {"lm_head", "output"},
       {"layers.", "blk."},
       {"input_layernorm", "attn_norm"},
       {"pre_feedforward_layernorm", "ffn_norm"},
       {"post_feedforward_layernorm", "post_ffw_norm"},
       {"self_attn.q_proj", "attn_q"},
       {"self_attn.k_proj", "attn_k"},
       {"self_attn.v_proj", "attn_v"},
       {"self_attn.o_proj", "attn_output"},
       {"mlp.gate_proj", "ffn_gate"},
       {"mlp.up_proj", "ffn_up"},
       {"mlp.down_proj", "ffn_down"},
       {"model.", ""},
       {"post_attention_layernorm", "ffn_norm"}}};
  for (const auto& [from, to] : kNames) name = replaced(std::move(name), from, to);
  return name == "norm.weight" ? "output_norm.weight" : name;
}

/// reshape(heads, 2, rows / 2, columns), swap the middle two axes, and reshape back.
std::vector<float> permuted(const Values& tensor, std::int64_t heads) {
  const std::int64_t columns = tensor.shape.size() > 1 ? tensor.shape[1] : 1;
  const std::int64_t half = tensor.shape[0] / heads / 2;
  std::vector<float> out;
  for (std::int64_t head = 0; head < heads; ++head) {
    for (std::int64_t row = 0; row < half; ++row) {
      for (std::int64_t side = 0; side < 2; ++side) {
        const std::int64_t from = ((head * 2 + side) * half + row) * columns;
        out.insert(out.end(), tensor.values.begin() + from, tensor.values.begin() + from + columns);
      }
    }
  }
  return out;
}

std::string float_bytes(const std::vector<float>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

/// Largest half-precision number not above a positive normal one: truncates its fraction.
std::uint16_t half_below(float value) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof(bits));
  const std::uint32_t exponent = (bits >> 23U) - 127 + 15;
  return static_cast<std::uint16_t>(exponent << 10U | (bits >> 13U & 0x3FFU));
}

/// Q8_0: d = max |x| / 127, q = x / d, rounded.
std::string q8_0_bytes(const std::vector<float>& values) {
  std::string bytes;
  for (std::size_t first = 0; first < values.size(); first += 32) {
    float largest = 0;
    for (std::size_t i = 0; i < 32; ++i) largest = std::max(largest, std::abs(values[first + i]));
    const std::uint16_t scale = half_below(largest / 127 * 1.001F);
    bytes += bytes_of(scale);
    const float exact = half_to_float(scale);
    for (std::size_t i = 0; i < 32; ++i) {
      const float rounded = std::round(values[first + i] / exact);
      bytes += static_cast<char>(static_cast<std::int8_t>(std::clamp(rounded, -127.0F, 127.0F)));
    }
  }
  return bytes;
}

GgufWriter llama_metadata() {
  GgufWriter writer;
  writer.add("general.architecture", "llama").add("llama.context_length", 32U);
  writer.add("llama.embedding_length", 64U).add("llama.block_count", 2U);
  writer.add("llama.feed_forward_length", 96U).add("llama.attention.head_count", 4U);
  writer.add("llama.attention.head_count_kv", 2U).add("llama.rope.freq_base", 10000.0F);
  writer.add("llama.attention.layer_norm_rms_epsilon", 1e-6F).add("llama.vocab_size", 128U);
  return writer;
}

GgufWriter llama_file(const std::map<std::string, Values>& tensors, GgmlType matrices) {
  GgufWriter writer = llama_metadata();
  for (const auto& [name, tensor] : tensors) {
    std::vector<float> values = tensor.values;
    if (name.find("q_proj") != std::string::npos) values = permuted(tensor, 4);
    if (name.find("k_proj") != std::string::npos) values = permuted(tensor, 2);
    const bool quantised = matrices == GgmlType::q8_0 && tensor.shape.size() == 2;
    writer.tensor(gguf_name(name), tensor.shape, quantised ? GgmlType::q8_0 : GgmlType::f32,
                  quantised ? q8_0_bytes(values) : float_bytes(values));
  }
  return writer;
}

std::vector<float> logits_of(const ModelSpec& spec, WeightSource& source,
                             const SessionOptions& options = {}) {
  Session session(spec, source, options);
  Workload workload;
  workload.seq_len = 11;
  for (NamedTensor& tensor : session.forward(random_inputs(spec, workload, 3))) {
    if (tensor.name == "logits") return std::move(tensor.values);
  }
  return {};
}

std::vector<float> safetensors_logits(const ModelSpec& spec,
                                      const std::map<std::string, Values>& tensors) {
  const TempFolder folder;
  std::vector<TensorToWrite> files;
  files.reserve(tensors.size());
  for (const auto& [name, tensor] : tensors) {
    files.push_back(float32_tensor(name, tensor.shape, tensor.values));
  }
  write_safetensors(folder.path() / "model.safetensors", files);
  const auto source = checkpoint_weights(spec, Checkpoint(folder.path()));
  return logits_of(spec, *source);
}

std::vector<float> gguf_logits(const ModelSpec& spec, const GgufWriter& writer,
                               const SessionOptions& options = {}) {
  const TempFolder folder;
  write_file(folder / "model.gguf", writer.str());
  const auto source = stored_weights(spec, detail::read_gguf(folder / "model.gguf", spec));
  return logits_of(spec, *source, options);
}

ModelSpec spec_of_gguf(const GgufWriter& writer) {
  const TempFolder folder;
  write_file(folder / "model.gguf", writer.str());
  return load_model((folder / "model.gguf").string()).spec;
}

double largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  REQUIRE(a.size() == b.size());
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double difference = std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i]));
    if (!std::isfinite(difference)) return HUGE_VAL;
    largest = std::max(largest, difference);
  }
  return largest;
}

nlohmann::json llama_config() {
  nlohmann::json config = small_llama();
  config["rms_norm_eps"] = 1e-6;
  return config;
}

}  // namespace

TEST_CASE("a Llama in F32 gives identical logits from GGUF and safetensors") {
  const auto tensors = random_tensors(llama_config());
  const GgufWriter file = llama_file(tensors, GgmlType::f32);
  const auto expected = safetensors_logits(spec_of(llama_config()), tensors);
  REQUIRE(expected.size() == 11 * 128);
  CHECK(gguf_logits(spec_of_gguf(file), file) == expected);
}

TEST_CASE("a Llama in Q8_0 stays within the rounding of eight bits") {
  const auto tensors = random_tensors(llama_config());
  const auto expected = safetensors_logits(spec_of(llama_config()), tensors);
  const GgufWriter file = llama_file(tensors, GgmlType::q8_0);
  const auto got = gguf_logits(spec_of_gguf(file), file);
  double largest = 0;
  for (const float value : expected)
    largest = std::max(largest, std::abs(static_cast<double>(value)));
  // Each weight is off by at most 1/254 of its block's largest; sums of 64 and more such errors
  // grow as their square root.
  CHECK(largest_difference(got, expected) < 0.03 * largest);
  CHECK(largest_difference(got, expected) > 0);
}

TEST_CASE("a Llama in Q8_0 that stays in its blocks gives the logits of its float32 values") {
  const auto tensors = random_tensors(llama_config());
  const GgufWriter file = llama_file(tensors, GgmlType::q8_0);
  const auto expected = gguf_logits(spec_of_gguf(file), file);
  SessionOptions options;
  options.storage = HeldType::stored;
  const auto got = gguf_logits(spec_of_gguf(file), file, options);
  double largest = 0;
  for (const float value : expected)
    largest = std::max(largest, std::abs(static_cast<double>(value)));
  CHECK(largest_difference(got, expected) < 1e-5 * largest);
}

TEST_CASE("a block whose scale is not finite is refused with the name of its tensor") {
  const auto tensors = random_tensors(llama_config());
  GgufWriter file = llama_metadata();
  std::string blocks = q8_0_bytes(std::vector<float>(128 * 64, 1.0F));
  blocks[35] = '\x7c';  // the exponent of an infinity, in the second block's scale
  file.tensor("token_embd.weight", {128, 64}, GgmlType::q8_0, blocks);
  const TempFolder folder;
  write_file(folder / "model.gguf", file.str());
  const auto reader = detail::read_gguf(folder / "model.gguf", spec_of(llama_config()));
  const Error error =
      input_error_of([&] { (void)reader->read_blocks("token_embd.weight", std::nullopt); });
  CHECK(error.where().find("token_embd.weight") != std::string::npos);
}

TEST_CASE("Gemma's norms are stored as 1 + weight") {
  const nlohmann::json config{
      {"model_type", "gemma2"},      {"architectures", {"Gemma2ForCausalLM"}},
      {"hidden_size", 64},           {"num_attention_heads", 4},
      {"num_key_value_heads", 2},    {"head_dim", 16},
      {"query_pre_attn_scalar", 16}, {"num_hidden_layers", 1},
      {"intermediate_size", 96},     {"vocab_size", 128},
      {"sliding_window", 7},         {"max_position_embeddings", 32}};
  const auto tensors = random_tensors(config);
  GgufWriter writer;
  writer.add("general.architecture", "gemma2");
  for (const auto& [name, tensor] : tensors) {
    std::vector<float> values = tensor.values;
    if (name.ends_with("norm.weight")) {
      for (float& value : values) value += 1;
    }
    // With sandwich norms, the norm after attention has a name of its own.
    const std::string stored = name.find("post_attention_layernorm") == std::string::npos
                                   ? gguf_name(name)
                                   : replaced(gguf_name(name), "ffn_norm", "post_attention_norm");
    writer.tensor(stored, tensor.shape, GgmlType::f32, float_bytes(values));
  }
  const ModelSpec spec = spec_of(config);
  const auto expected = safetensors_logits(spec, tensors);
  REQUIRE(expected.size() == 11 * 128);
  CHECK(largest_difference(gguf_logits(spec, writer), expected) < 1e-4);
}

TEST_CASE("the GPT-2 of this repository gives identical logits from GGUF and safetensors") {
  const auto folder = data_folder() / "golden/models/gpt2";
  const ModelSpec spec = load_model(folder.string()).spec;
  const Checkpoint checkpoint(folder);
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 11> kNames{
      {{"transformer.", ""},
       {"wte.", "token_embd."},
       {"wpe.", "position_embd."},
       {"ln_f.", "output_norm."},
       {"h.", "blk."},
       {"ln_1.", "attn_norm."},
       {"ln_2.", "ffn_norm."},
       {"attn.c_attn.", "attn_qkv."},
       {"attn.c_proj.", "attn_output."},
       {"mlp.c_fc.", "ffn_up."},
       {"mlp.c_proj.", "ffn_down."}}};
  GgufWriter writer;
  writer.add("general.architecture", "gpt2");
  for (const std::string& name : checkpoint.names()) {
    if (name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias")) continue;
    if (name.starts_with("lm_head")) continue;
    const StoredTensor& tensor = *checkpoint.find(name);
    std::vector<std::int64_t> shape = tensor.shape;
    std::vector<float> values(tensor.data.size() / sizeof(float));
    copy_as_float32(tensor, values, name);
    std::string stored = name;
    for (const auto& [from, to] : kNames) stored = replaced(std::move(stored), from, to);
    const bool is_transposed = shape.size() == 2 && stored.starts_with("blk.");  // Conv1D
    if (is_transposed) {
      std::vector<float> rows;
      for (std::int64_t c = 0; c < shape[1]; ++c) {
        for (std::int64_t r = 0; r < shape[0]; ++r) {
          rows.push_back(values[static_cast<std::size_t>(r * shape[1] + c)]);
        }
      }
      values = std::move(rows);
      std::swap(shape[0], shape[1]);
    }
    writer.tensor(stored, shape, GgmlType::f32, float_bytes(values));
  }
  const auto source = checkpoint_weights(spec, Checkpoint(folder));
  CHECK(gguf_logits(spec, writer) == logits_of(spec, *source));
}

TEST_CASE("Llama 3.1's RoPE factors are read from their tensor") {
  const auto tensors = random_tensors(llama_config());
  GgufWriter file = llama_file(tensors, GgmlType::f32);
  file.tensor("rope_freqs.weight", {8}, GgmlType::f32, float_bytes({1, 1, 1, 2, 4, 8, 8, 8}));
  const TempFolder folder;
  write_file(folder / "model.gguf", file.str());
  const RopeSpec rope = detail::with_stored_factors({}, folder / "model.gguf");
  CHECK(rope.scaling == RopeScalingKind::longrope);
  CHECK(rope.short_factors == std::vector<double>{1, 1, 1, 2, 4, 8, 8, 8});
  ModelSpec spec = spec_of(llama_config());
  const auto plain = gguf_logits(spec, file);
  spec.position.rope = detail::with_stored_factors(spec.position.rope, folder / "model.gguf");
  CHECK(gguf_logits(spec, file) != plain);
}

TEST_CASE("a type that cannot be run is named with its tensor, and an unknown family is an error") {
  GgufWriter file = llama_metadata();
  file.tensor("token_embd.weight", {128, 256}, GgmlType::iq2_xxs);
  const ModelSpec spec = spec_of(llama_config());
  const TempFolder folder;
  write_file(folder / "model.gguf", file.str());
  const auto reader = detail::read_gguf(folder / "model.gguf", spec);
  std::vector<float> values(std::size_t{128} * 256);
  const Error error =
      input_error_of([&] { reader->read("token_embd.weight", std::nullopt, values); });
  CHECK(error.where().find("token_embd.weight") != std::string::npos);
  CHECK(error.message().find("IQ2_XXS") != std::string::npos);
  ModelSpec unknown = spec;
  unknown.model_type = "deberta-v2";
  CHECK_THROWS_AS((void)detail::read_gguf(folder / "model.gguf", unknown), Error);
}
