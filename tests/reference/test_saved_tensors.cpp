// Tensors saved for the backward pass against the reference code, recorded by torch's
// saved_tensors_hooks. Source: tests/data/README.md. Every difference is named here.
#include <doctest/doctest.h>

#include <algorithm>
#include <functional>

#include "support/data.h"

using namespace headroom;
using namespace headroom::test;

namespace {

using nlohmann::json;

/// The model that a record's layer belongs to.
json config_of(const json& record) {
  const json& shape = record.at("config");
  const bool whole_model = record.at("scope") == "model_with_lm_loss";
  const double dropout = shape.value("dropout", record.at("dropout_impl") == "none" ? 0.0 : 0.1);
  const int vocab = shape.value("vocab", 101);
  const std::string family = shape.at("family");
  if (family == "gpt2") {
    return {{"model_type", "gpt2"},
            {"architectures", {whole_model ? "GPT2LMHeadModel" : "GPT2Model"}},
            {"n_embd", shape.at("hidden")},
            {"n_layer", record.at("layers")},
            {"n_head", shape.at("heads")},
            {"n_inner", shape.at("intermediate")},
            {"vocab_size", vocab},
            {"activation_function", shape.value("act", "gelu_new")},
            {"resid_pdrop", dropout},
            {"embd_pdrop", dropout},
            {"attn_pdrop", dropout}};
  }
  json config = {{"hidden_size", shape.at("hidden")},
                 {"num_hidden_layers", record.at("layers")},
                 {"num_attention_heads", shape.at("heads")},
                 {"intermediate_size", shape.at("intermediate")},
                 {"vocab_size", vocab},
                 {"model_type", family}};
  if (family == "llama") {
    config["num_key_value_heads"] = shape.at("kv_heads");
    config["architectures"] = {whole_model ? "LlamaForCausalLM" : "LlamaModel"};
  } else {
    config["architectures"] = {whole_model ? "BertForMaskedLM" : "BertModel"};
    config["hidden_dropout_prob"] = dropout;
    config["attention_probs_dropout_prob"] = dropout;
  }
  return config;
}

Workload workload_of(const json& record) {
  Workload workload;
  workload.phase = Phase::train;
  workload.batch_size = record.at("batch");
  workload.seq_len = record.at("seq");
  const std::string dtype = record.at("dtype");
  if (dtype == "float16") workload.dtype = DType::float16;
  if (dtype == "bfloat16") workload.dtype = DType::bfloat16;
  if (record.at("attention") == "sdpa") workload.attention = AttentionImplementation::fused;
  // PyTorch's CPU dropout stores its mask in the activation's type, CUDA's in one byte.
  if (record.at("dropout_impl") == "cpu") workload.mask_bytes = bytes_of(workload.dtype);
  return workload;
}

/// Name and bytes of a saved tensor.
struct Saved {
  std::string name;
  Integer bytes;
};

std::vector<Saved> predicted(const json& record) {
  const Workload workload = workload_of(record);
  const Counted counted = count(spec_of(config_of(record)), workload);
  Bindings values = bindings_of(workload, LayerTraits{});
  for (const SymbolInfo& symbol : symbols()) {
    if (const auto size = counted.graph.sizes.get(symbol.symbol)) values.set(symbol.symbol, *size);
  }
  const bool block_only = record.at("scope") == "block";
  std::vector<Saved> result;
  for (const SavedTensor& saved : counted.analysis.saved) {
    if (block_only && saved.path.find(".layers.") == std::string::npos) continue;
    const Integer bytes = saved.bytes.evaluate(values);
    const auto copies = static_cast<std::int64_t>(saved.repeat.evaluate(values));
    for (std::int64_t i = 0; i < copies && bytes > 0; ++i) result.push_back({saved.what, bytes});
  }
  return result;
}

/// The reference's storages. Query, key and value share one storage as views of GPT-2's fused
/// projection; elsewhere they are three.
std::vector<Integer> measured(const json& record) {
  std::vector<Integer> result;
  for (const json& row : record.at("saved")) {
    const std::int64_t storage = row.at(4);
    std::int64_t elements = 1;
    for (const json& size : row.at(2)) elements *= size.get<std::int64_t>();
    const std::string dtype = row.at(3);
    const std::int64_t width = dtype == "float32" ? 4
                               : dtype == "int64" ? 8
                               : dtype == "bool"  ? 1
                                                  : 2;
    const bool fused = storage == 3 * elements * width;
    for (int i = 0; i < (fused ? 3 : 1); ++i) result.push_back(fused ? storage / 3 : storage);
  }
  return result;
}

/// Tensors on one side only, by a named reason.
struct Differences {
  std::vector<Integer> only_measured;
  std::vector<std::string> only_predicted;  ///< by name
};

Differences known_differences(const json& record) {
  Differences differences;
  const std::string family = record.at("config").at("family");
  const bool whole_model = record.at("scope") == "model_with_lm_loss";
  const auto layers = record.at("layers").get<std::size_t>();
  const bool fused = record.at("attention") == "sdpa";
  if (family == "gpt2" && !fused) {
    // GPT-2 divides its scores by a tensor of one element instead of a number.
    differences.only_measured.assign(layers, bytes_of(workload_of(record).dtype));
  }
  if (whole_model && family == "bert") {
    // BERT's position and token-type ids are registered buffers, which the reference omits; its
    // targets are the word ids themselves.
    differences.only_predicted = {"position ids", "token-type ids", "targets"};
  }
  if (whole_model && family != "bert" && record.at("batch") == 1) {
    // The shifted targets of one sequence are a view of its word ids.
    differences.only_predicted = {"targets"};
  }
  return differences;
}

/// The only layout in which repeating grouped keys is a view: one sequence, one key-value head.
bool repeats_for_free(const json& record) {
  const json& config = record.at("config");
  return config.at("family") == "llama" && config.value("kv_heads", 0) == 1 &&
         record.at("batch") == 1 && record.at("attention") == "eager";
}

std::vector<Integer> expected(const json& record) {
  const Differences differences = known_differences(record);
  std::vector<Saved> tensors = predicted(record);
  for (const std::string& name : differences.only_predicted) {
    const auto found = std::ranges::find(tensors, name, &Saved::name);
    REQUIRE(found != tensors.end());
    tensors.erase(found);
  }
  std::vector<Integer> bytes = differences.only_measured;
  for (const Saved& saved : tensors) bytes.push_back(saved.bytes);
  return bytes;
}

std::vector<Integer> sorted(std::vector<Integer> values) {
  std::ranges::sort(values);
  return values;
}

Integer sum(const std::vector<Integer>& values) {
  Integer total = 0;
  for (const Integer value : values) total += value;
  return total;
}

void capture(const json& record) {
  MESSAGE(record.at("name").get<std::string>()
          << " batch " << record.at("batch").dump() << " " << record.at("dtype").dump() << " "
          << record.at("dropout_impl").dump() << " layers " << record.at("layers").dump());
}

}  // namespace

TEST_CASE("saved tensors equal those of torch 2.6, byte by byte") {
  const json records = read_json(data_folder() / "golden/activations.json");
  std::size_t exact = 0;
  for (const json& record : records.at("torch2.6_transformers4.45.2")) {
    if (repeats_for_free(record)) continue;
    const bool equal = sorted(expected(record)) == sorted(measured(record));
    if (!equal) capture(record);
    CHECK(equal);
    CHECK(sum(expected(record)) == record.at("total_bytes").get<std::int64_t>());
    ++exact;
  }
  CHECK(exact == 147);
}

TEST_CASE("grouped keys and values repeated as a view save one head each") {
  const json records = read_json(data_folder() / "golden/activations.json");
  std::size_t found = 0;
  for (const json& record : records.at("torch2.6_transformers4.45.2")) {
    if (!repeats_for_free(record)) continue;
    const json& config = record.at("config");
    const Integer head =
        record.at("seq").get<std::int64_t>() *
        (config.at("hidden").get<std::int64_t>() / config.at("heads").get<std::int64_t>()) *
        bytes_of(workload_of(record).dtype);
    const Integer copies = config.at("heads").get<std::int64_t>() - 1;
    CHECK(sum(expected(record)) - 2 * copies * head ==
          record.at("total_bytes").get<std::int64_t>());
    ++found;
  }
  CHECK(found == 3);
}

TEST_CASE("torch 1.13 saves the same tensors, plus 8-byte scalars and the operands of RoPE") {
  const json records = read_json(data_folder() / "golden/activations.json");
  for (const json& record : records.at("torch1.13_transformers4.45.2")) {
    if (record.at("scope") != "block") continue;
    const Integer n = record.at("batch").get<std::int64_t>() * record.at("seq").get<std::int64_t>();
    const Integer hidden = record.at("config").at("hidden").get<std::int64_t>();
    Integer more = record.at("total_bytes").get<std::int64_t>() - sum(expected(record));
    if (repeats_for_free(record)) continue;
    // Query and key before the rotation, [b, s, h, k] each, rotated in float32.
    if (record.at("config").at("family") == "llama") more -= 2 * n * hidden * 4;
    if (more < 0 || more > 3 * 8 || more % 8 != 0) capture(record);
    CHECK(more >= 0);
    CHECK(more <= 3 * 8);
    CHECK(more % 8 == 0);
  }
}

TEST_CASE(
    "limits of activations add clamps, and their inputs beside those of the product, as in torch") {
  // Step 3.5's gate and up, act(gate).clamp(max=l) and up.clamp(-l, l): torch 2.15 saves two more
  // tensors of the network's width, seven instead of five.
  auto config = read_json(data_folder() / "families/step3p5/config.json");
  Workload workload;
  workload.phase = Phase::train;
  workload.batch_size = 2;
  workload.seq_len = 5;
  workload.dtype = DType::float32;
  const Figures limited = count(spec_of(config), workload).figures;
  for (const char* const key : {"swiglu_limits", "swiglu_limits_shared"}) config[key] = nullptr;
  const Figures plain = count(spec_of(config), workload).figures;
  // Two layers limit the 2 routed experts of 12 features, one of them the shared one of 16.
  const Integer elements = Integer{10} * (2 * 2 * 12 + 16);
  CHECK(limited.saved_activation_bytes - plain.saved_activation_bytes == 2 * elements * 4);
  CHECK(limited.forward.elementwise_flops - plain.forward.elementwise_flops == 3 * elements);
}

TEST_CASE("attention residuals save each state that they read once, however many read it") {
  auto config = read_json(data_folder() / "families/kimi_k3_text/config.json");
  const std::int64_t layers = config.at("num_hidden_layers");
  Workload workload;
  workload.phase = Phase::train;
  workload.batch_size = 2;
  workload.seq_len = 5;
  workload.dtype = DType::float32;
  const Integer state = Integer{10} * config.at("hidden_size").get<std::int64_t>() * 4;
  const auto saved = [&](std::int64_t block, Recompute recompute) {
    config["attn_res_block_size"] = block;
    if (block == 0) config.erase("attn_res_block_size");
    workload.recompute = recompute;
    return count(spec_of(config), workload).figures.saved_activation_bytes;
  };
  for (const std::int64_t block : {1, 3, 7}) {
    // Scores of the states in front of the blocks so far, and of the block's own sum.
    const auto blocks_before = [&](std::int64_t layer) { return (layer + block - 1) / block; };
    std::int64_t scores = blocks_before(layers) + 1;
    for (std::int64_t layer = 0; layer < layers; ++layer) {
      if (layer > 0) scores += blocks_before(layer) + 1;
      scores += blocks_before(layer + 1) + 1;
    }
    // The embeddings, the sums before the other 2 · layers − 1 sublayers, and the last one: norms
    // of elementary operations save none of them.
    CHECK(saved(block, Recompute::none) - saved(0, Recompute::none) ==
          (2 * layers + 1) * state + Integer{scores} * 10 * 4);
    // Of recomputed layers only their inputs stay, which the states in front of blocks are.
    CHECK(saved(block, Recompute::full) - saved(0, Recompute::full) ==
          state + Integer{blocks_before(layers) + 1} * 10 * 4);
  }
}
