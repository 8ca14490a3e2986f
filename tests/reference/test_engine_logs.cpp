// KV-cache of every record that an engine printed at start-up, from public threads. The records are
// kept raw in tests/data/logs; kv_records.json says which model each one runs, and lists those that
// differ with their causes.
#include <doctest/doctest.h>

#include <cmath>
#include <fstream>
#include <set>

#include "headroom/kv_cache.h"
#include "support/data.h"

using namespace headroom;
using namespace headroom::test;

namespace {

using Json = nlohmann::json;

constexpr double kMiB = 1024.0 * 1024.0;
constexpr double kGiB = 1024.0 * kMiB;
constexpr double kAllowed = 0.01;

/// The lines of a log, by number from 1.
std::map<int, Json> records_of(const char* file) {
  std::ifstream lines(data_folder() / "logs" / file);
  std::map<int, Json> records;
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    if (!line.empty()) records[number] = Json::parse(line);
  }
  return records;
}

Json about(const char* engine) { return read_json(data_folder() / "logs/kv_records.json")[engine]; }

/// The entry of `list` for this record, or null.
Json entry_of(const Json& list, int record) {
  for (const Json& entry : list) {
    if (entry["record"] == record) return entry;
  }
  return nullptr;
}

/// The spec of a model entry: a preset, with the sizes that the entry states.
ModelSpec spec_of_entry(const Json& entry) {
  const auto found = find_preset(entry["preset"].get<std::string>());
  REQUIRE(found);
  ModelSpec spec = read_preset(*found).spec;
  if (entry.contains("num_key_value_heads")) {
    spec.decoder->self_attention.num_key_value_heads = entry["num_key_value_heads"];
  }
  return spec;
}

KvType type_of(const std::string& printed) {
  const std::string word = printed.substr(printed.find(' ') + 1);  // "c^KV q8_0"
  if (word == "f16") return KvType::float16;
  REQUIRE(word == "q8_0");
  return KvType::q8_0;
}

Workload decode_workload(std::int64_t tokens, std::int64_t batch) {
  Workload workload;
  workload.phase = Phase::decode;
  workload.batch_size = batch;
  workload.seq_len = 1;
  workload.past_len = tokens - 1;
  workload.dtype = workload.kv_dtype = DType::float16;
  workload.attention = AttentionImplementation::fused;
  return workload;
}

double reserved_bytes(const ModelSpec& spec, const Workload& workload,
                      const KvCacheRequest& request) {
  const Graph graph = build_graph(spec, graph_options(workload));
  return static_cast<double>(kv_cache_use(spec, graph, workload, request).value().reserved_bytes);
}

/// Bytes of a llama.cpp record by headroom. `own` has sizes that the log gives in other words.
double llama_cpp_bytes(const Json& log, const ModelSpec& spec, const Json& own) {
  KvCacheRequest request;
  // ik_llama.cpp has no cache of a window.
  const bool fork = log["fork"] == "ik_llama.cpp";
  request.policy = fork ? KvPolicy::llama_cpp_swa_full : KvPolicy::llama_cpp;
  // Logs of some threads leave out types: llama.cpp's default is f16.
  const std::string keys = log["k_type"].is_null() ? "f16" : log["k_type"].get<std::string>();
  request.key_type = type_of(keys);
  request.value_type =
      log["v_type"].is_null() ? request.key_type : type_of(log["v_type"].get<std::string>());
  const std::int64_t tokens = own.is_null() ? log["n_ctx"] : own["tokens"];
  Workload workload = decode_workload(tokens, own.is_null() ? 1 : own["batch"].get<int>());
  // A cache of latent vectors is printed as c^KV; others hold expanded heads.
  workload.latent = keys.starts_with("c^KV") ? LatentAttention::absorbed : LatentAttention::naive;
  return reserved_bytes(spec, workload, request);
}

/// Bytes of one token on one rank by headroom.
double token_bytes(const Json& log, const Json& entry) {
  const ModelSpec spec = spec_of_entry(entry);
  const double whole = reserved_bytes(spec, decode_workload(1, 1), {});
  if (entry.contains("layers")) {
    return whole * entry["layers"].get<double>() / static_cast<double>(spec.decoder->num_layers);
  }
  const double ranks = log["tp"].is_null() ? 1 : log["tp"].get<double>();
  return whole / (entry.contains("kv_ranks") ? entry["kv_ranks"].get<double>() : ranks);
}

/// Tokens that the printed GiB are for; 0 if the record has no such pair.
struct PrintedCache {
  double gib = 0;
  double tokens = 0;
};
PrintedCache printed_cache(const Json& log) {
  const auto number_of = [&](const char* key) {
    return log[key].is_null() ? 0.0 : log[key].get<double>();
  };
  if (number_of("kv_needed_gib_for_max_len") > 0) {
    return {number_of("kv_needed_gib_for_max_len"), number_of("max_model_len")};
  }
  double tokens = number_of("kv_cache_tokens");
  const double block = number_of("block_size") > 0 ? number_of("block_size") : 16;
  if (tokens == 0) tokens = number_of("gpu_blocks") * block;
  return {number_of("kv_cache_gib_per_gpu"), tokens};
}

bool agrees(double computed, double printed) {
  return std::abs(computed - printed) <= kAllowed * printed;
}

/// A record that stands in `unreadable` because no preset has its model: fails once one has.
bool is_unreadable(const Json& list, int record) {
  const Json entry = entry_of(list, record);
  if (entry.is_null()) return false;
  CHECK_MESSAGE(!find_preset(entry["preset"].get<std::string>()),
                "there is a preset now: check the record");
  return true;
}

}  // namespace

TEST_CASE("llama.cpp's logs print the KV-cache that its policy reserves") {
  const Json held = about("llama_cpp");
  int checked = 0;
  for (const auto& entry : records_of("llamacpp_logs.jsonl")) {
    const int record = entry.first;
    const Json& log = entry.second;
    if (log["kv_mib"].is_null()) continue;
    CAPTURE(record);
    if (is_unreadable(held["unreadable"], record)) continue;
    const std::string name = log["model"];
    CAPTURE(name);
    REQUIRE(held["models"].contains(name));
    const double bytes = llama_cpp_bytes(log, spec_of_entry(held["models"][name]),
                                         entry_of(held["own_settings"], record));
    const bool listed = !entry_of(held["differs"], record).is_null();
    CAPTURE(bytes / kMiB);
    CHECK(agrees(bytes, log["kv_mib"].get<double>() * kMiB) == !listed);
    checked += listed ? 0 : 1;
  }
  CHECK(checked >= held["checked"].get<int>());
}

TEST_CASE("llama.cpp's logs print the parts of keys and values with types of their own") {
  int checked = 0;
  const Json held = about("llama_cpp");
  for (const auto& entry : records_of("llamacpp_logs.jsonl")) {
    const int record = entry.first;
    const Json& log = entry.second;
    const Json& flags = log["flags"];
    const bool parts = flags.contains("k_mib") && flags["k_mib"].is_number();
    if (log["kv_mib"].is_null() || !parts) continue;
    CAPTURE(record);
    // Each part as the whole cache less the other part at no bytes: keys of 2 types differ by them.
    Json doubled = log;
    doubled["k_type"] = "f16";
    doubled["v_type"] = "f16";
    const ModelSpec spec = spec_of_entry(held["models"][log["model"].get<std::string>()]);
    const double plain = llama_cpp_bytes(doubled, spec, nullptr);
    doubled["k_type"] = "q8_0";
    // 2 bytes per value in f16, 34 per 32 values in q8_0.
    const double keys = (plain - llama_cpp_bytes(doubled, spec, nullptr)) / (2 - 34.0 / 32) * 2;
    const double factor = type_of(log["k_type"]) == KvType::q8_0 ? 34.0 / 64 : 1;
    CHECK(agrees(keys * factor, flags["k_mib"].get<double>() * kMiB));
    ++checked;
  }
  CHECK(checked >= 90);
}

TEST_CASE("engines' logs print the GiB of their tokens' KV-cache on one rank") {
  const Json held = about("engines");
  int checked = 0;
  for (const auto& entry : records_of("engine_logs.jsonl")) {
    const int record = entry.first;
    const Json& log = entry.second;
    const PrintedCache printed = printed_cache(log);
    if (printed.gib <= 0 || printed.tokens <= 0) continue;
    CAPTURE(record);
    if (is_unreadable(held["unreadable"], record)) continue;
    const Json model = entry_of(held["models"], record);
    REQUIRE(!model.is_null());
    const double gib = token_bytes(log, model) * printed.tokens / kGiB;
    const bool listed = !entry_of(held["differs"], record).is_null();
    CAPTURE(gib);
    CHECK(agrees(gib, printed.gib) == !listed);
    checked += listed ? 0 : 1;
  }
  CHECK(checked >= held["checked"].get<int>());
}
