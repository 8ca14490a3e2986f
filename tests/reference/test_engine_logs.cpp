// KV-cache of every record that an engine printed at start-up, from public threads. The records are
// kept raw in tests/data/logs; kv_records.json says which model each one runs, and lists those that
// differ with their causes.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <optional>

#include "headroom/storage.h"
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

/// The spec of an entry's preset, or of its config in tests/data/wild.
ModelSpec named_spec(const Json& entry) {
  if (entry.contains("config")) {
    return spec_of(
        read_json(data_folder() / "wild" / (entry["config"].get<std::string>() + ".config.json")));
  }
  const auto found = find_preset(entry["preset"].get<std::string>());
  REQUIRE(found);
  return read_preset(*found).spec;
}

/// The spec of a model entry, with the sizes that the entry states.
ModelSpec spec_of_entry(const Json& entry) {
  ModelSpec spec = named_spec(entry);
  AttentionSpec& attention = spec.decoder->self_attention;
  if (entry.contains("num_key_value_heads")) {
    attention.num_key_value_heads = entry["num_key_value_heads"];
  }
  if (entry.contains("kv_lora_rank")) {
    attention.latent->kv_lora_rank = entry["kv_lora_rank"];
    for (LayerVariant& variant : spec.decoder->variants) {
      variant.self_attention.latent->kv_lora_rank = entry["kv_lora_rank"];
    }
  }
  if (entry.contains("num_global_key_value_heads")) {
    REQUIRE(spec.decoder->variants.size() == 1);  // full attention; variant 0 has a window
    spec.decoder->variants.front().self_attention.num_key_value_heads =
        entry["num_global_key_value_heads"];
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

KvCacheUse cache_use(const ModelSpec& spec, const Workload& workload,
                     const KvCacheRequest& request) {
  const Graph graph = build_graph(spec, graph_options(workload));
  return kv_cache_use(spec, graph, workload, request).value();
}

/// Bytes of the layers of one growth, scaled to the number of layers that the entry states.
double bytes_of_growth(const KvCacheUse& use, const Json& entry, KvGrowth growth) {
  double bytes = 0;
  double layers = 0;
  for (const KvCacheRow& row : use.rows) {
    if (row.growth != growth) continue;
    bytes += static_cast<double>(row.reserved_bytes);
    layers += static_cast<double>(row.layers);
  }
  if (!entry.contains("layers_by_growth")) return bytes;
  return bytes / layers * entry["layers_by_growth"][name_of(growth)].get<double>();
}

/// A log's entry in `own_settings`, or its own value.
std::int64_t setting(const Json& own, const char* key, std::int64_t otherwise) {
  return own.is_null() ? otherwise : own.value(key, otherwise);
}

/// The KV-cache of a llama.cpp record by headroom. `own` has sizes that the log gives in other
/// words.
KvCacheUse llama_cpp_use(const Json& log, const ModelSpec& spec, const Json& own) {
  KvCacheRequest request;
  // ik_llama.cpp has no cache of a window.
  const bool fork = log["fork"] == "ik_llama.cpp";
  request.policy = fork ? KvPolicy::llama_cpp_swa_full : KvPolicy::llama_cpp;
  // Logs of some threads leave out types: llama.cpp's default is f16.
  const std::string keys = log["k_type"].is_null() ? "f16" : log["k_type"].get<std::string>();
  request.key_type = type_of(keys);
  request.value_type =
      log["v_type"].is_null() ? request.key_type : type_of(log["v_type"].get<std::string>());
  if (const std::int64_t slots = setting(own, "slots", 0); slots > 0) request.slots = slots;
  // A thread that shows recurrent states only leaves out the context.
  const std::int64_t context = log["n_ctx"].is_null() ? 1 : log["n_ctx"].get<std::int64_t>();
  Workload workload = decode_workload(setting(own, "tokens", context), setting(own, "batch", 1));
  // A cache of latent vectors is printed as c^KV; others hold expanded heads.
  workload.latent = keys.starts_with("c^KV") ? LatentAttention::absorbed : LatentAttention::naive;
  return cache_use(spec, workload, request);
}

/// Bytes of keys and values, which llama.cpp prints apart from recurrent states.
double llama_cpp_bytes(const Json& log, const Json& entry, const Json& own) {
  const KvCacheUse use = llama_cpp_use(log, spec_of_entry(entry), own);
  return bytes_of_growth(use, entry, KvGrowth::full) +
         bytes_of_growth(use, entry, KvGrowth::windowed);
}

/// Bytes of one token on one rank by headroom.
double token_bytes(const Json& log, const Json& entry) {
  const ModelSpec spec = spec_of_entry(entry);
  const double whole =
      static_cast<double>(cache_use(spec, decode_workload(1, 1), {}).reserved_bytes);
  if (entry.contains("layers")) {
    return whole * entry["layers"].get<double>() / static_cast<double>(spec.decoder->num_layers);
  }
  const double ranks = log["tp"].is_null() ? 1 : log["tp"].get<double>();
  return whole / (entry.contains("kv_ranks") ? entry["kv_ranks"].get<double>() : ranks);
}

/// vLLM's reservation for a sequence of `tokens` in the pool that a hybrid's layers share.
KvCacheUse pool_use(const Json& entry, std::int64_t tokens) {
  const Json& pool = entry["pool"];
  KvCacheRequest request;
  request.policy = KvPolicy::vllm;
  set_type(request, pool["kv_dtype"] == "float8" ? KvType::float8 : KvType::bfloat16);
  request.prefix_caching = pool["prefix_caching"];
  const auto count = [&](const char* key) -> std::optional<std::int64_t> {
    if (!pool.contains(key)) return std::nullopt;
    return pool[key].get<std::int64_t>();
  };
  request.speculative_tokens = count("speculative_tokens");
  request.drafter_layers = count("drafter_layers");
  return cache_use(spec_of_entry(entry), decode_workload(tokens, 1), request);
}

/// GiB of `tokens` on one rank by headroom. The tokens of a pool are vLLM's concurrency times its
/// longest length.
double gib_of_tokens(const Json& log, const Json& entry, double tokens) {
  if (!entry.contains("pool")) return token_bytes(log, entry) * tokens / kGiB;
  const std::int64_t longest = log["max_model_len"];
  const double sequence =
      static_cast<double>(pool_use(entry, longest).reserved_bytes) / log["tp"].get<double>();
  return sequence * tokens / static_cast<double>(longest) / kGiB;
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

/// A record that stands in `unreadable` because no family reads its model: fails once one does.
bool is_unreadable(const Json& list, int record) {
  const Json entry = entry_of(list, record);
  if (entry.is_null()) return false;
  const std::string type = entry["model_type"];
  const auto is_its = [&](const ModelTypeInfo& known) { return known.model_type == type; };
  CHECK_MESSAGE(std::ranges::none_of(list_model_types(), is_its),
                "there is a family now: check the record");
  return true;
}

/// vLLM prints a concurrency of two decimals.
void check_tokens_of_concurrency(const Json& log) {
  CHECK(std::abs(log["kv_cache_tokens"].get<double>() / log["max_model_len"].get<double>() -
                 log["max_concurrency"].get<double>()) <= 0.0051);
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
    const std::string name = log["model"];
    CAPTURE(name);
    REQUIRE(held["models"].contains(name));
    const double bytes =
        llama_cpp_bytes(log, held["models"][name], entry_of(held["own_settings"], record));
    const bool listed = !entry_of(held["differs"], record).is_null();
    CAPTURE(bytes / kMiB);
    CHECK(agrees(bytes, log["kv_mib"].get<double>() * kMiB) == !listed);
    checked += listed ? 0 : 1;
  }
  CHECK(checked == held["checked"].get<int>());
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
    const Json& model = held["models"][log["model"].get<std::string>()];
    const double plain = llama_cpp_bytes(doubled, model, nullptr);
    doubled["k_type"] = "q8_0";
    // 2 bytes per value in f16, 34 per 32 values in q8_0.
    const double keys = (plain - llama_cpp_bytes(doubled, model, nullptr)) / (2 - 34.0 / 32) * 2;
    const double factor = type_of(log["k_type"]) == KvType::q8_0 ? 34.0 / 64 : 1;
    CHECK(agrees(keys * factor, flags["k_mib"].get<double>() * kMiB));
    ++checked;
  }
  CHECK(checked >= 90);
}

TEST_CASE("llama.cpp's logs print the recurrent states of all slots in float32") {
  const Json held = about("llama_cpp");
  int checked = 0;
  for (const auto& entry : records_of("llamacpp_logs.jsonl")) {
    const Json& log = entry.second;
    if (!log["flags"].contains("recurrent")) continue;
    const int record = entry.first;
    CAPTURE(record);
    const Json& model = held["models"][log["model"].get<std::string>()];
    const KvCacheUse use =
        llama_cpp_use(log, spec_of_entry(model), entry_of(held["own_settings"], record));
    CHECK(bytes_of_growth(use, model, KvGrowth::constant) ==
          log["flags"]["recurrent"]["mib"].get<double>() * kMiB);
    ++checked;
  }
  CHECK(checked == 3);
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
    if (is_unreadable(held["unreadable"], record)) {
      check_tokens_of_concurrency(log);
      continue;
    }
    const Json model = entry_of(held["models"], record);
    REQUIRE(!model.is_null());
    const double gib = gib_of_tokens(log, model, printed.tokens);
    const Json differs = entry_of(held["differs"], record);
    CAPTURE(gib);
    CHECK(agrees(gib, printed.gib) == differs.is_null());
    if (!differs.is_null()) CHECK(agrees(gib, printed.gib * differs["ratio"].get<double>()));
    checked += differs.is_null() ? 1 : 0;
  }
  CHECK(checked == held["checked"].get<int>());
}

TEST_CASE("vLLM's pool of a hybrid has a whole number of our blocks, to the token") {
  const Json held = about("engines");
  const auto records = records_of("engine_logs.jsonl");
  int checked = 0;
  for (const Json& model : held["models"]) {
    const int record = model["record"];
    const Json& log = records.at(record);
    if (!model.contains("pool") || !entry_of(held["differs"], record).is_null()) continue;
    CAPTURE(record);
    check_tokens_of_concurrency(log);
    const Integer longest = log["max_model_len"].get<std::int64_t>();
    const Integer tokens = log["kv_cache_tokens"].get<std::int64_t>();
    const KvCacheUse use = pool_use(model, log["max_model_len"]);
    const Integer more =
        pool_use(model, log["max_model_len"].get<std::int64_t>() + use.block.value())
            .reserved_bytes;
    const Integer block = more - use.reserved_bytes;
    CHECK(use.reserved_bytes % block == 0);
    // get_max_concurrency_for_kv_cache_config: the pool's blocks by those of the longest sequence.
    const Integer per_sequence = use.reserved_bytes / block;
    const Integer pool = ceil_div(tokens * per_sequence, longest);
    CHECK(pool * longest / per_sequence == tokens);
    ++checked;
  }
  CHECK(checked == 4);
}

TEST_CASE("every complete record is within 1 % or its difference has a named cause") {
  std::map<std::string, int> tally;
  for (const char* engine : {"llama_cpp", "engines"}) {
    const Json held = about(engine);
    tally["within 1 %"] += held["checked"].get<int>();
    for (const char* list : {"differs", "unreadable"}) {
      for (const Json& entry : held[list]) {
        CHECK(entry["why"].get<std::string>().size() > 20);
        ++tally["with a named cause"];
      }
    }
  }
  CHECK(tally["within 1 %"] == 146);
  CHECK(tally["with a named cause"] == 2);
}
