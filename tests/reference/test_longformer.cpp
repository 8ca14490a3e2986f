// Longformer's attention in chunks with global tokens: FLOPs recorded by torch's dispatch mode, and
// tensors saved for the backward pass recorded by its hooks. Sources: tests/data/README.md.
#include <doctest/doctest.h>

#include <algorithm>

#include "headroom/error.h"
#include "support/data.h"

using namespace headroom;
using namespace headroom::test;

namespace {

nlohmann::json tiny_config() {
  return read_json(data_folder() / "golden/models/longformer/config.json");
}

ModelSpec tiny_longformer(const std::string& name) {
  nlohmann::json config = tiny_config();
  config["architectures"] = {name};
  return spec_of(config);
}

WorkloadRequest request_of(std::int64_t batch, std::int64_t tokens) {
  WorkloadRequest request;
  request.batch_size = batch;
  request.seq_len = tokens;
  return request;
}

Integer flops_of(const ModelSpec& spec, const WorkloadRequest& request) {
  return count(spec, resolve(request, spec)).figures.forward.matrix_flops;
}

/// Bytes of the tensors that one layer saves, sorted.
std::vector<Integer> saved_by_layer(const ModelSpec& spec, const Workload& workload) {
  const Counted counted = count(spec, workload);
  const Bindings values = bindings_of(workload, counted.graph);
  std::vector<Integer> sizes;
  for (const SavedTensor& saved : counted.analysis.saved) {
    if (saved.path.find(".layers.") == std::string::npos) continue;
    const Integer bytes = saved.bytes.evaluate(values);
    // The reference saves a mask for either end, and both parts of an index.
    const bool halves = saved.what == "masks of the ends" || saved.what == "places";
    if (bytes > 0) sizes.insert(sizes.end(), halves ? 2 : 1, halves ? bytes / 2 : bytes);
  }
  std::ranges::sort(sizes);
  return sizes;
}

}  // namespace

// Recorded: 2 sequences of 24 tokens, two of the first and one of the second with global attention,
// which the code pads to two.
TEST_CASE("chunks, global tokens and their projections multiply as much as the reference code") {
  const ModelSpec spec = tiny_longformer("LongformerModel");
  WorkloadRequest request = request_of(2, 24);
  request.global_tokens = 2;
  CHECK(flops_of(spec, request) == 6636288);
  const Counted counted = count(spec, resolve(request, spec));
  Integer attention = 0;
  for (std::size_t i = 0; i < counted.analysis.components.size(); ++i) {
    const std::string_view name = name_of(counted.analysis.components[i].component.part);
    const bool core = name.ends_with("scores") || name.ends_with("context");
    if (core) attention += counted.figures.components[i].forward.matrix_flops;
  }
  CHECK(attention == 378624);
}

TEST_CASE("a layer saves the tensors that the reference code's layer saves") {
  const nlohmann::json recorded = read_json(data_folder() / "encoders/longformer_saved.json");
  nlohmann::json config = tiny_config();
  config["attention_window"] = recorded.at("attention_window");
  const ModelSpec spec = spec_of(config);
  for (const nlohmann::json& record : recorded.at("records")) {
    CAPTURE(record.at("global_tokens").get<int>());
    WorkloadRequest request = request_of(1, recorded.at("seq_len"));
    request.phase = Phase::train;
    request.global_tokens = record.at("global_tokens");
    Workload workload = resolve(request, spec);
    workload.mask_bytes = 4;  // PyTorch's CPU dropout
    std::vector<Integer> expected;
    for (const nlohmann::json& row : record.at("saved")) {
      expected.emplace_back(row.at(2).get<std::int64_t>());
    }
    std::ranges::sort(expected);
    CHECK(saved_by_layer(spec, workload) == expected);
  }
}

TEST_CASE("every class has global attention for the tokens that its forward pass chooses") {
  const auto tokens_of = [](const char* name) {
    const ModelSpec spec = tiny_longformer(name);
    return resolve(request_of(1, 24), spec).global_tokens;
  };
  CHECK(tokens_of("LongformerModel") == 0);
  CHECK(tokens_of("LongformerForMaskedLM") == 0);
  CHECK(tokens_of("LongformerForTokenClassification") == 0);
  CHECK(tokens_of("LongformerForSequenceClassification") == 1);
  // The tokens of a question depend on the text: none, with a note.
  const ModelSpec answers = tiny_longformer("LongformerForQuestionAnswering");
  const Workload workload = resolve(request_of(1, 24), answers);
  CHECK(workload.global_tokens == 0);
  const std::vector<std::string> notes = notes_on_chunks(workload, answers);
  REQUIRE(notes.size() == 1);
  CHECK(notes.front().find("of the question") != std::string::npos);
}

TEST_CASE("without global tokens their projections count as parameters only") {
  const ModelSpec spec = tiny_longformer("LongformerModel");
  WorkloadRequest request = request_of(1, 24);
  const Integer none = flops_of(spec, request);
  request.global_tokens = 1;
  // Three layers: keys and values of 24 tokens and a query, 48 × 48 each; scores and context of 24
  // pairs, both ways, 48 wide.
  CHECK(flops_of(spec, request) - none == 3 * 2 * (49 * 48 * 48 + 4 * 24 * 48));
  CHECK(parameters_on(count(spec, resolve(request, spec)).graph) == 82656);
  CHECK(parameters_on(build_graph(spec, {})) == 82656);
}

TEST_CASE("a sequence that is no multiple of the window is padded in attention, with a note") {
  const ModelSpec spec = tiny_longformer("LongformerModel");
  const Workload workload = resolve(request_of(1, 19), spec);
  const Counted counted = count(spec, workload);
  CHECK(bindings_of(workload, counted.graph).get(Symbol::chunked_tokens) == Integer{24});
  const std::vector<std::string> notes = notes_on_chunks(workload, spec);
  REQUIRE(notes.size() == 1);
  CHECK(notes.front().find("pads the whole pass to 24 tokens") != std::string::npos);
}

// 38 positions, and windows of 4, 6 and 8.
TEST_CASE("the default length is one that every window divides") {
  CHECK(resolve({}, tiny_longformer("LongformerModel")).seq_len == 24);
  nlohmann::json config = tiny_config();
  config["attention_window"] = 8;
  CHECK(resolve({}, spec_of(config)).seq_len == 38);
}

TEST_CASE("workloads that attention in chunks cannot run are refused") {
  const ModelSpec spec = tiny_longformer("LongformerModel");
  const auto refusal = [](const ModelSpec& model, WorkloadRequest request) {
    return refusal_of([&] { (void)resolve(request, model); });
  };
  // 9 tokens are padded to 16, which windows of 6 do not divide.
  CHECK(refusal(spec, request_of(1, 9)).find("windows of 6") != std::string::npos);
  WorkloadRequest request = request_of(1, 24);
  request.attention = AttentionImplementation::fused;
  CHECK(refusal(spec, request).find("no fused kernel") != std::string::npos);
  request.attention.reset();
  request.global_tokens = 25;
  CHECK(refusal(spec, request).find("exceeds") != std::string::npos);
  CHECK(refusal(load_model("bert-base").spec, request).find("has no effect") != std::string::npos);
}
