// State spaces, short convolutions and gated delta layers against recordings of the reference code:
// parameters, FLOPs by kind of operator, and every cached tensor with its type. Source:
// tests/data/README.md.
#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <sstream>

#include "headroom/analysis.h"
#include "support/data.h"

using namespace headroom;
using namespace headroom::test;

namespace {

std::filesystem::path state_data() { return data_folder() / "state_spaces"; }

ModelSpec tiny(const std::string& name) {
  return load_model((state_data() / "configs" / (name + ".json")).string()).spec;
}

Workload workload_of(const CsvRow& row) {
  Workload workload;
  workload.batch_size = number(row, "batch");
  workload.seq_len = number(row, "seq");
  workload.past_len = number(row, "past");
  workload.phase = row.at("phase") == "decode_one_token" ? Phase::decode : Phase::prefill;
  return workload;
}

/// Sum over the operators of these types.
template <class... Ops>
Integer flops_in(const Counted& counted, const Workload& workload) {
  const Bindings values = bindings_of(workload, counted.graph);
  std::set<std::string> paths;
  for (const Block& block : counted.graph.blocks) {
    for (const Node& node : block.nodes) {
      if ((std::holds_alternative<Ops>(node.op) || ...)) paths.insert(block.path + "." + node.path);
    }
  }
  Integer sum = 0;
  for (const NodeAnalysis& node : counted.analysis.nodes) {
    if (paths.contains(node.path)) sum += node.cost.forward.matrix_flops.evaluate(values);
  }
  return sum;
}

/// A number that the note of a row gives after `word`.
std::int64_t noted(const CsvRow& row, const std::string& word) {
  const std::string& note = row.at("note");
  if (note.empty()) return 0;  // no mixer module
  return std::stoll(note.substr(note.find(word) + word.size()));
}

bool has_delta_rule(const std::string& model) {
  return model == "qwen3_next" || model == "olmo_hybrid";
}

/// All but steps of RWKV with several sequences, where the code mixes each with every other.
std::vector<CsvRow> flops_rows() {
  std::vector<CsvRow> rows = read_csv(state_data() / "flops.csv");
  std::erase_if(rows, [](const CsvRow& row) {
    return row.at("model") == "rwkv" && number(row, "batch") > 1 &&
           row.at("phase") == "decode_one_token";
  });
  return rows;
}

/// True for the cached tensors that the code keeps in float32: recurrent states, and of RWKV all
/// but the rows of the last position.
bool is_float32_state(const CsvRow& tensor) {
  const std::string& name = tensor.at("tensor");
  if (tensor.at("model") == "rwkv") return name >= "2";
  return name.find("recurrent_states") != std::string::npos;
}

}  // namespace

TEST_CASE("tiny state-space models have the reference code's parameters") {
  const auto rows = read_csv(state_data() / "params.csv");
  REQUIRE(rows.size() == 16);
  for (const CsvRow& row : rows) {
    CAPTURE(row.at("model"));
    const ModelSpec spec = tiny(row.at("model"));
    CHECK(spec.architecture == row.at("model_class"));
    CHECK(parameters_on(build_graph(spec, {})) == number(row, "total_params"));
  }
}

TEST_CASE("published hybrids have the reference code's parameters, caches and states") {
  const auto rows = read_csv(state_data() / "published.csv");
  REQUIRE(rows.size() == 5);
  for (const CsvRow& row : rows) {
    const std::string name = row.at("name");
    CAPTURE(name);
    const ModelSpec spec =
        load_model((state_data() / "published" / (name + ".json")).string()).spec;
    Workload workload;
    workload.seq_len = 8192;
    workload.dtype = DType::bfloat16;
    workload.kv_dtype = DType::bfloat16;
    const Counted counted = count(spec, workload);
    CHECK(parameters_on(counted.graph) == std::stoll(row.at("params_total")));
    const std::int64_t bytes = number(row, "cache_total_bytes_8192_reference_dtype");
    if (bytes > 0) CHECK(counted.figures.kv_cache_bytes == bytes);
  }
}

TEST_CASE("GEMMs and attention of tiny state-space models have the recorded FLOPs") {
  for (const CsvRow& row : flops_rows()) {
    CAPTURE(row.at("model"));
    CAPTURE(row.at("phase"));
    const Workload workload = workload_of(row);
    const Counted counted = count(tiny(row.at("model")), workload);
    CHECK(flops_in<Linear, ExpertLinear>(counted, workload) == number(row, "linear_flops"));
    CHECK(flops_in<AttentionScores, AttentionContext>(counted, workload) ==
          number(row, "attention_matmul_flops") - number(row, "baddbmm") -
              noted(row, "bmm flops "));
  }
}

TEST_CASE("gates of RG-LRU have the recorded FLOPs of the code's batched GEMMs") {
  std::size_t compared = 0;
  for (const CsvRow& row : flops_rows()) {
    CAPTURE(row.at("model"));
    const Workload workload = workload_of(row);
    const Counted counted = count(tiny(row.at("model")), workload);
    const Integer flops = flops_in<GatedLinearRecurrence>(counted, workload);
    CHECK(flops == number(row, "baddbmm"));
    compared += flops > 0 ? 1 : 0;
  }
  CHECK(compared == 2);
}

TEST_CASE("short convolutions have the recorded FLOPs, without the padding that the code adds") {
  for (const CsvRow& row : flops_rows()) {
    CAPTURE(row.at("model"));
    const Workload workload = workload_of(row);
    const Counted counted = count(tiny(row.at("model")), workload);
    const Integer flops = flops_in<ShortConvolution>(counted, workload);
    // A prefill of s positions computes s + k - 1 columns and cuts the last k - 1; a step convolves
    // the k cached inputs and its own, two columns, and keeps the second.
    const std::int64_t kernel = row.at("model").starts_with("lfm2") ? 3 : 4;
    const bool pads = workload.phase == Phase::prefill;
    const std::int64_t columns = workload.seq_len + (pads ? kernel - 1 : 1);
    CHECK(flops * columns == Integer{number(row, "conv")} * workload.seq_len);
  }
}

TEST_CASE("a scan's read of its state, half of its FLOPs, is the reference code's only bmm") {
  std::size_t compared = 0;
  for (const CsvRow& row : flops_rows()) {
    const std::string& model = row.at("model");
    const bool selective = model.ends_with("mamba") || model == "jamba";
    const bool other = model.starts_with("lfm2") || has_delta_rule(model) || model == "rwkv" ||
                       model == "recurrent_gemma";
    const bool dual = !selective && !other;
    // A dual prefill is element-wise there.
    if (!selective && !(dual && row.at("phase") == "decode_one_token")) continue;
    CAPTURE(model);
    const Workload workload = workload_of(row);
    const Counted counted = count(tiny(model), workload);
    CHECK(flops_in<StateSpaceScan>(counted, workload) == 2 * noted(row, "bmm flops "));
    ++compared;
  }
  CHECK(compared >= 15);
}

TEST_CASE("the chunked gated delta rule has the recorded FLOPs of its bmm calls") {
  std::size_t compared = 0;
  for (const CsvRow& row : flops_rows()) {
    const std::string& model = row.at("model");
    if (!has_delta_rule(model) || row.at("phase") == "decode_one_token") continue;
    const auto flops = scan_flops(tiny(model), workload_of(row));
    REQUIRE(flops.has_value());
    CHECK(flops->chunked == noted(row, "bmm flops "));
    CHECK(flops->chunk_size == 64);
    ++compared;
  }
  CHECK(compared == 4);
}

TEST_CASE("lightning attention in blocks has the recorded FLOPs of its bmm calls") {
  std::size_t compared = 0;
  for (const CsvRow& row : flops_rows()) {
    if (row.at("model") != "minimax" || row.at("phase") == "decode_one_token") continue;
    const auto flops = scan_flops(tiny("minimax"), workload_of(row));
    REQUIRE(flops.has_value());
    CHECK(flops->chunked == noted(row, "bmm flops "));
    CHECK(flops->chunk_size == 8);
    ++compared;
  }
  CHECK(compared == 2);
}

TEST_CASE("the chunked scan of Mamba-2 has as many products as the recorded multiplications") {
  // mamba2, batch 1, 8 positions, one chunk of 8: 108,864 multiplications in 3 layers. Of a layer's
  // 36,288, 5,824 are no products of the scan: x·Δ, D·x and the decayed output 768 each, A·Δ 64,
  // the decays of C·Bᵀ 512 and of B 640, and 3 · 768 of the gated norm.
  for (const CsvRow& recorded : flops_rows()) {
    const bool wanted = recorded.at("model") == "mamba2" && number(recorded, "batch") == 1 &&
                        recorded.at("phase") == "forward_full";
    if (!wanted) continue;
    const auto flops = scan_flops(tiny("mamba2"), workload_of(recorded));
    REQUIRE(flops.has_value());
    CHECK(flops->chunked / 2 == noted(recorded, "elementwise multiplies ") - 3 * 5824);
    return;
  }
  FAIL("the row of mamba2 is missing");
}

TEST_CASE("every state has the reference code's shape: elements, and float32 where it is") {
  std::size_t compared = 0;
  for (const CsvRow& row : read_csv(state_data() / "kv_cache.csv")) {
    CAPTURE(row.at("model"));
    CAPTURE(row.at("tokens"));
    Workload workload;
    workload.batch_size = number(row, "batch");
    workload.seq_len = number(row, "tokens");
    const ModelSpec spec = tiny(row.at("model"));
    CHECK(count(spec, workload).figures.kv_cache_bytes == number(row, "total_elements") * 4);
    // In 16 bits all but the recurrent states shrink.
    Integer recurrent = 0;
    for (const CsvRow& tensor : read_csv(state_data() / "cache_tensors.csv")) {
      if (tensor.at("model") != row.at("model") || tensor.at("tokens") != row.at("tokens"))
        continue;
      if (!is_float32_state(tensor)) continue;
      Integer elements = 1;
      std::string shape = tensor.at("shape");
      std::ranges::replace(shape, 'x', ' ');
      std::istringstream sizes(shape);
      for (std::int64_t size = 0; sizes >> size;) elements *= size;
      recurrent += elements;
    }
    workload.dtype = DType::bfloat16;
    workload.kv_dtype = DType::bfloat16;
    CHECK(count(spec, workload).figures.kv_cache_bytes ==
          number(row, "total_elements") * 2 + recurrent * 2);
    ++compared;
  }
  CHECK(compared == 30);
}
