// Sources of a model: a preset, a config.json, a folder with one, a GGUF file, or a model that
// another program keeps on this machine. One reader serves them all.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headroom/expr.h"
#include "headroom/model_spec.h"
#include "headroom/workload.h"

namespace headroom {

/// A published or independently computed parameter count.
struct ReferenceCount {
  std::int64_t parameters = 0;
  bool rounded = false;  ///< published as "65 M": only its leading digits can agree
  std::string source;
};

/// A model and its published figures.
struct Model {
  ModelSpec spec;
  std::string source;  ///< the preset's source, or the file that was read
  std::optional<ReferenceCount> reference;
  std::string weight_files;  ///< file or folder of its weights; empty for a config without weights
  std::string name_note{};   ///< how the typed name was understood; empty if it is exact
};

/// A built-in preset or one from the user's folder.
struct Preset {
  std::string name;
  std::vector<std::string> aliases;
  std::string repository;  ///< on Hugging Face: "Qwen/Qwen3-8B"; empty if its source names none
  std::string json;        ///< the whole file
  std::string origin;      ///< "built in", or the file's path
};

/// All presets, sorted by name. A user's preset (`$XDG_DATA_HOME/headroom/presets/models/*.json`)
/// replaces the built-in one of that name.
[[nodiscard]] std::vector<Preset> list_presets();

/// The preset with this name or alias; empty if there is none.
[[nodiscard]] std::optional<Preset> find_preset(std::string_view name_or_alias);

/// How a typed name fits a preset.
enum class NameMatch {
  name,        ///< its name or an alias
  repository,  ///< its repository
  guess,       ///< a name, alias or repository but for case, organisation or words of a variant
};

struct MatchedPreset {
  Preset preset;
  NameMatch match = NameMatch::name;
};

/// The preset that `typed` means: by name, alias or repository, else by a guess, in which case and
/// the words -instruct, -chat, -hf, -it, -pt and -base do not matter. An organisation that is typed
/// must be that of the preset's repository. Empty if none fits. Throws Error{invalid_input} with
/// the candidates if several do.
[[nodiscard]] std::optional<MatchedPreset> match_preset(std::string_view typed);

/// "gemma-2-9b-it was taken as the preset gemma-2-9b (google/gemma-2-9b)"; empty unless guessed.
[[nodiscard]] std::string note_on(const MatchedPreset& matched, std::string_view typed);

/// The model of a preset. Throws Error{invalid_input}.
[[nodiscard]] Model read_preset(const Preset& preset);

// Models in the stores of other programs: the Hugging Face cache, Ollama's manifests and blobs, and
// LM Studio's folders.

enum class ModelStore { hugging_face, ollama, lm_studio };

/// The word in JSON: "hugging_face", "ollama", "lm_studio".
[[nodiscard]] std::string_view name_of(ModelStore store) noexcept;
/// In a sentence: "the Hugging Face cache".
[[nodiscard]] std::string_view description_of(ModelStore store) noexcept;

/// Kind of files that hold a model.
enum class LocalFormat {
  safetensors,
  gguf,
  pytorch,  ///< weights that headroom does not read, next to a config.json that it does
  config,   ///< config.json without weights
};

[[nodiscard]] std::string_view name_of(LocalFormat format) noexcept;

/// One model of a store.
struct LocalModel {
  std::string name;  ///< as `load_model` takes it: "Qwen/Qwen3-8B", "llama3.2:1b"
  ModelStore store = ModelStore::hugging_face;
  LocalFormat format = LocalFormat::safetensors;
  std::string path;        ///< the folder of its config.json, or its GGUF file
  std::int64_t bytes = 0;  ///< of its weight files
};

/// Something in a store that cannot be read: a dangling link, a broken manifest.
struct StoreProblem {
  std::string name;  ///< of the model
  std::string message;
};

struct LocalModels {
  std::vector<LocalModel> models;  ///< by store, then by name
  std::vector<StoreProblem> problems;
};

/// Lists the models of all stores, by names and sizes of files; it opens no weights. Looks in
/// $HF_HUB_CACHE, $HF_HOME/hub or ~/.cache/huggingface/hub; in $OLLAMA_MODELS, ~/.ollama/models or
/// the folder of Ollama's Linux service; in ~/.lmstudio/models and ~/.cache/lm-studio/models.
[[nodiscard]] LocalModels list_local_models();

/// The model of this name; "ollama:NAME" looks in Ollama's store only, and a name there without a
/// tag means "latest". Empty if there is none. Throws Error{invalid_input} if the name is that of a
/// folder with several GGUF models.
[[nodiscard]] std::optional<LocalModel> find_local_model(const LocalModels& local,
                                                         const std::string& name);

// Reading.

/// The model that `name` refers to, by the first that fits: a preset's name or alias; a
/// config.json, a folder with one, a safetensors file next to one, a GGUF file, a LoRA adapter, a
/// sentence-transformers folder, or a folder with Meta's or Mistral's params.json; a model of a
/// local store; a preset's repository, or a guess at a preset. Its `name_note`
/// says which was taken unless the name is exact. Throws Error{invalid_input} with similar names as
/// a hint if none fits, and with the candidates if several presets do.
[[nodiscard]] Model load_model(const std::string& name);

/// Reads the text of a config.json. `file` appears in errors, `name` becomes the model's name.
/// Throws Error{invalid_input} for any key or value that is not supported.
[[nodiscard]] ModelSpec read_model_spec(std::string_view json, const std::string& file,
                                        std::string name);

/// A value of `model_type` that headroom reads.
struct ModelTypeInfo {
  std::string model_type;
  std::string architecture;  ///< its default class
  bool reads_gguf = false;   ///< also from GGUF files
};

/// All of them, sorted by model_type.
[[nodiscard]] std::vector<ModelTypeInfo> list_model_types();

/// Up to three known types with the names nearest to `model_type`; empty if none is near.
[[nodiscard]] std::vector<std::string> nearest_model_types(std::string_view model_type);

enum class FileFormat { safetensors, gguf };

[[nodiscard]] std::string_view name_of(FileFormat format) noexcept;

/// Sums over tensors. `values` are logical: a packed tensor counts its unpacked values.
struct TensorTotals {
  std::int64_t tensors = 0;
  Integer values = 0;
  Integer bytes = 0;

  TensorTotals& operator+=(const TensorTotals& other);
  /// Stored bits per value; empty without values.
  [[nodiscard]] std::optional<double> bits_per_value() const;
};

/// Tensors of one storage type: "BF16", "Q4_K", "GPTQ 4-bit".
struct TypeRow {
  std::string type;
  TensorTotals totals;
};

/// Tensors of one component. With a config, the component is the graph's ("attention.qkv") and the
/// category is that of the parameter sums; without one, it is the tensor name with {} for numbers.
struct ComponentRow {
  std::string category;
  std::string component;
  TensorTotals totals;
};

/// Tensors that are not weights of the model: buffers, tied copies, unused heads, …
struct ExtraRow {
  std::string kind;
  TensorTotals totals;
  std::string example;
};

enum class ProblemKind {
  missing_tensor,  ///< required by the config, absent from the files
  unknown_tensor,  ///< in the files, not in the config's graph
  wrong_shape,
};

[[nodiscard]] std::string_view name_of(ProblemKind kind) noexcept;

/// A disagreement between config and files.
struct Problem {
  ProblemKind kind = ProblemKind::missing_tensor;
  std::string tensor;
  std::string detail;
};

/// The files reconciled with the graph of their config.
struct Reconciliation {
  Model model;
  Integer expected_parameters = 0;  ///< of the graph
  Integer found_parameters = 0;     ///< of weights with a tensor of the right shape
  std::vector<Problem> problems;    ///< the first 100
  std::int64_t problem_count = 0;   ///< of all
};

struct Inspection {
  std::string path;
  FileFormat format = FileFormat::safetensors;
  std::int64_t files = 0;
  TensorTotals all;                      ///< every tensor
  TensorTotals weights;                  ///< without extras: `values` are the parameters
  std::vector<TypeRow> types;            ///< of all tensors, most bytes first
  std::vector<ComponentRow> components;  ///< of weights
  std::vector<ExtraRow> extras;
  std::optional<Reconciliation> reconciliation;  ///< empty without a readable config
  std::string config_error;                      ///< why the config could not be read
  std::vector<std::string> notes;

  /// False if the config cannot be read or any problem was found; true without a config.
  [[nodiscard]] bool is_explained() const noexcept;
};

/// Reads the headers of the files at `path`: a safetensors file, a folder or its index.json, or a
/// GGUF file. Throws Error{invalid_input} if a header is invalid.
[[nodiscard]] Inspection inspect(const std::string& path);

/// As `inspect`, without a config: components are tensor names.
[[nodiscard]] Inspection inspect_headers(const std::string& path);

// Models of an unknown architecture.

/// A shard index (model.safetensors.index.json) whose shards are not all at hand.
struct ShardIndexTotals {
  std::int64_t tensors = 0;
  std::int64_t absent_files = 0;
  Integer total_bytes = 0;                    ///< its metadata.total_size
  std::optional<Integer> total_parameters{};  ///< its metadata.total_parameters
};

/// Sizes of a decoder that nearly every config and GGUF file states.
struct StandardSizes {
  std::int64_t num_hidden_layers = 0;
  std::int64_t num_key_value_heads = 0;
  std::int64_t head_dim = 0;
};

/// Estimates as for a plain decoder with full attention in every layer. Other architectures differ.
struct UnknownModelEstimates {
  StandardSizes sizes;
  std::int64_t batch_size = 1;
  std::int64_t seq_len = 0;
  std::int64_t past_len = 0;
  DType kv_dtype = DType::float32;
  Integer kv_cache_bytes = 0;  ///< 2·layers·batch·(past + seq)·kv_heads·head_dim·type
  Integer kv_cache_bytes_per_token = 0;  ///< of one sequence
  /// N: the exact count, else the bytes divided by those of the config's torch_dtype.
  std::optional<Integer> parameters{};
  std::optional<Integer> matrix_flops{};  ///< 2·N·batch·seq
};

/// Exact sums over the files of a model whose architecture is unknown.
struct UnknownModel {
  std::string path;
  std::string model_type;    ///< as its config or GGUF file says; may be empty
  std::string architecture;  ///< the class of `architectures`; may be empty
  std::vector<std::string> nearest_types{};
  std::optional<Inspection> files{};  ///< empty: shards are absent, `index` has the sums
  std::optional<ShardIndexTotals> index{};
  std::optional<UnknownModelEstimates> estimates{};
  std::string why_no_estimates;  ///< the key that the config lacks, or "config.json"
  std::vector<std::string> notes{};

  /// Parameters; empty if the shards are absent and their index does not state them.
  [[nodiscard]] std::optional<Integer> parameters() const;
  /// Bytes of the weights.
  [[nodiscard]] Integer weight_bytes() const;
};

/// The model at `path`, or of this name in a local store, if it is a folder, a safetensors file or
/// a GGUF file with weights whose architecture is unknown: its config has an unknown model_type, or
/// there is no config. Empty otherwise. `request` gives batch, lengths and types of the estimates.
/// Throws Error{invalid_input} if a header or the config is invalid.
[[nodiscard]] std::optional<UnknownModel> read_unknown_model(const std::string& path,
                                                             const WorkloadRequest& request);

}  // namespace headroom
