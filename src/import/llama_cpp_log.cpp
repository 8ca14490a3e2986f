// llama.cpp prints MiB of every buffer: the model's by device, the cache's by kind of layer.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "log_formats.h"

namespace headroom::detail {
namespace {

constexpr double kMiB = 1024.0 * 1024.0;

/// The cache's type by ggml's name.
std::optional<KvType> ggml_cache_type(std::string_view name) {
  constexpr std::array<std::pair<std::string_view, KvType>, 3> kOwnNames{
      {{"f32", KvType::float32}, {"f16", KvType::float16}, {"bf16", KvType::bfloat16}}};
  for (const auto& [own, type] : kOwnNames) {
    if (own == name) return type;
  }
  for (const KvTypeInfo& one : kv_types()) {
    if (is_block_type(one.type) && one.name == name) return one.type;
  }
  return std::nullopt;
}

void add(std::optional<double>& sum, double bytes) { sum = sum.value_or(0) + bytes; }

void raise(std::optional<std::int64_t>& most, const std::optional<std::int64_t>& value) {
  if (value) most = std::max(most.value_or(*value), *value);
}

/// "load_tensors: CUDA0 model buffer size = 4403.49 MiB"; before 2024-12 "llm_load_tensors: CUDA0
/// buffer size".
bool read_weights(const LogLine& line, EngineLog& log) {
  if (!line.has("load_tensors:")) return false;
  const auto mib = line.number_after("buffer size ");
  if (mib) add(log.weight_bytes, *mib * kMiB);
  return mib.has_value();
}

/// "print_info: file size   = 4.58 GiB (4.89 BPW)"; before 2024-12 "llm_load_print_meta: model size
/// = 4.58 GiB".
void read_file_size(const LogLine& line, EngineLog& log) {
  if (!line.has(" BPW)")) return;
  for (const char* const words : {"file size ", "model size "}) {
    const auto size = line.number_after(words);
    if (size) add(log.file_bytes, *size * (line.has(" GiB") ? kMiB * 1024 : kMiB));
  }
}

/// Types of keys and values: "K (f16):  512.00 MiB, V (f16):  512.00 MiB". A cache of latent
/// vectors has no values, or is called c^KV.
void read_types(const LogLine& line, EngineLog& log) {
  const bool is_latent = line.has("c^KV (");
  log.kv_types.key = ggml_cache_type(line.word_after(is_latent ? "c^KV (" : "K ("));
  const LogLine values = line.from("V (");
  log.kv_types.value = is_latent ? log.kv_types.key : ggml_cache_type(values.word_after("V ("));
  const bool has_values = values.number_after("):").value_or(1) > 0;
  log.latent = is_latent || !has_values ? LatentAttention::absorbed : LatentAttention::naive;
}

/// "32 layers,  4/1 seqs)": four sequences in one stream of cells, which they share. Streams that
/// are as many as the sequences have cells of their own, as those of versions that print no
/// streams.
void read_sequences(const LogLine& line, EngineLog& log) {
  const LogLine behind_layers = line.from(" layers,");
  const auto sequences = behind_layers.count_after(" layers,");
  const auto streams = behind_layers.count_after("/");
  log.sequences = streams.value_or(1);
  if (log.sequences == 1 && sequences.value_or(1) > 1) log.slots = sequences;
}

/// "llama_kv_cache: size = 1024.00 MiB (  8192 cells,  32 layers,  4/1 seqs), K (f16): …": windowed
/// layers have a line of their own, with fewer cells. Before 2025-05 "KV self size  = 1024.00 MiB,
/// K (f16): …".
bool read_cache(const LogLine& line, EngineLog& log) {
  const bool has_cells = line.has("llama_kv_cache") && line.has(" cells,");
  const auto mib = line.number_after(has_cells ? ": size " : "KV self size ");
  if (!mib) return false;
  add(log.cache_bytes, *mib * kMiB);
  read_types(line, log);
  if (!has_cells) return true;
  raise(log.context, line.count_after("MiB ("));
  read_sequences(line, log);
  return true;
}

void read_settings(const LogLine& line, EngineLog& log) {
  for (const char* const words : {"build: ", "main: build ", ": build "}) {
    const auto build = line.count_after(words);
    if (build) log.version = fmt::format("b{}", *build);
  }
  raise(log.batched_tokens, line.count_after("n_ubatch "));
  if (line.has("llama_new_context_with_model:") || line.has("llama_init_from_model:")) {
    raise(log.context, line.count_after("n_ctx "));
  }
  if (line.has("using full-size SWA cache")) log.llama_cpp_windows = KvPolicy::llama_cpp_swa_full;
}

}  // namespace

bool read_llama_cpp_line(const LogLine& line, EngineLog& log) {
  read_settings(line, log);
  read_file_size(line, log);
  const bool has_weights = read_weights(line, log);
  return read_cache(line, log) || has_weights;
}

}  // namespace headroom::detail
