#include <fmt/format.h>

#include <array>
#include <filesystem>
#include <system_error>
#include <vector>

#include "checkpoint.h"
#include "gguf.h"
#include "headroom/error.h"
#include "headroom/model_source.h"
#include "layouts/layouts.h"
#include "model_files.h"
#include "shard_index.h"
#include "standard_sizes.h"

namespace headroom {
namespace {

namespace fs = std::filesystem;
using detail::StatedModel;

constexpr std::string_view kIndexSuffix = ".safetensors.index.json";
constexpr std::string_view kPickleIndex = "pytorch_model.bin.index.json";

bool is_file(const fs::path& path) {
  std::error_code failed;
  return fs::is_regular_file(path, failed);
}

/// The files of this ending in `folder`, in no order.
std::vector<fs::path> files_ending(const fs::path& folder, std::string_view ending) {
  std::vector<fs::path> found;
  std::error_code failed;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, failed)) {
    if (entry.path().filename().string().ends_with(ending)) found.push_back(entry.path());
  }
  return found;
}

/// The weights in `folder`: by their usual names, else the one index, safetensors or GGUF file.
std::optional<fs::path> weights_in(const fs::path& folder) {
  if (auto usual = checkpoint::safetensors_in(folder)) return usual;
  for (const std::string_view ending : {kIndexSuffix, std::string_view(".safetensors")}) {
    const std::vector<fs::path> found = files_ending(folder, ending);
    if (found.size() == 1) return found.front();
  }
  if (auto gguf = checkpoint::gguf_in(folder)) return gguf;
  // Pickles are not read, but their index states the sum.
  if (is_file(folder / kPickleIndex)) return folder / kPickleIndex;
  return std::nullopt;
}

/// Weights and the config beside them.
struct Place {
  std::optional<fs::path> weights;
  std::optional<fs::path> config;
};

/// `name` as a path; a model of a local store is its folder or file.
fs::path path_of(const std::string& name) {
  std::error_code failed;
  if (fs::exists(name, failed)) return name;
  const auto local = find_local_model(list_local_models(), name);
  return local ? fs::path(local->path) : fs::path(name);
}

Place place_of(const fs::path& path) {
  std::error_code failed;
  const bool is_config = path.filename() == "config.json";
  const bool is_folder = fs::is_directory(path, failed);
  const fs::path folder = is_folder ? path : fs::absolute(path).parent_path();
  Place place;
  if (is_folder || (is_config && is_file(path))) {
    place.weights = weights_in(folder);
  } else if (path.extension() == ".safetensors" || checkpoint::is_gguf(path)) {
    if (is_file(path)) place.weights = path;
  }
  if (is_file(folder / "config.json")) place.config = folder / "config.json";
  return place;
}

StatedModel stated_at(const Place& place) {
  if (checkpoint::is_gguf(*place.weights)) return detail::read_stated_gguf(*place.weights);
  if (place.config) return detail::read_stated_config(*place.config);
  StatedModel none;
  none.missing = "config.json";
  return none;
}

/// The sums of an index whose shards are absent or pickles; empty for files that are all read.
std::optional<ShardIndexTotals> index_totals(const fs::path& weights) {
  const bool has_pickles = weights.filename() == kPickleIndex;
  if (!has_pickles && !weights.filename().string().ends_with(kIndexSuffix)) return std::nullopt;
  const checkpoint::ShardIndexSummary index = checkpoint::summarize_shard_index(weights);
  if (index.absent_files == 0 && !has_pickles) return std::nullopt;
  if (!index.total_size) {
    throw Error(ErrorCode::invalid_input,
                fmt::format("{} of its files are absent, and it has no metadata.total_size",
                            index.absent_files),
                weights.string(), "download the files that it lists");
  }
  return ShardIndexTotals{index.tensors, index.absent_files, *index.total_size,
                          index.total_parameters};
}

std::optional<DType> type_of(std::string_view torch_dtype) {
  constexpr std::array kTypes{DType::float32, DType::float16, DType::bfloat16};
  for (const DType type : kTypes) {
    if (torch_dtype == name_of(type)) return type;
  }
  return std::nullopt;
}

/// As `resolve` does for a known model.
UnknownModelEstimates lengths_of(const WorkloadRequest& request,
                                 const std::optional<DType>& stored) {
  const bool decodes = request.phase == Phase::decode;
  UnknownModelEstimates estimates;
  estimates.batch_size = request.batch_size;
  estimates.seq_len = request.seq_len.value_or(decodes ? 1 : 128);
  estimates.past_len = request.past_len.value_or(decodes ? 127 : 0);
  const DType activations = request.dtype.value_or(stored.value_or(DType::float32));
  estimates.kv_dtype = request.kv_dtype.value_or(activations);
  if (estimates.batch_size < 1 || estimates.seq_len < 1 || estimates.past_len < 0) {
    throw_invalid_input("sizes of the workload must be positive", "give larger numbers");
  }
  return estimates;
}

UnknownModelEstimates estimates_of(const UnknownModel& model, const StandardSizes& sizes,
                                   const WorkloadRequest& request, std::string_view torch_dtype) {
  const std::optional<DType> stored = type_of(torch_dtype);
  UnknownModelEstimates estimates = lengths_of(request, stored);
  estimates.sizes = sizes;
  Integer per_token =
      checked_multiply(Integer{2} * sizes.num_hidden_layers, sizes.num_key_value_heads);
  per_token = checked_multiply(per_token, Integer{sizes.head_dim} * bytes_of(estimates.kv_dtype));
  const Integer tokens = checked_add(estimates.past_len, estimates.seq_len);
  estimates.kv_cache_bytes_per_token = per_token;
  estimates.kv_cache_bytes =
      checked_multiply(checked_multiply(per_token, estimates.batch_size), tokens);
  estimates.parameters = model.parameters();
  if (!estimates.parameters && stored) {
    estimates.parameters = model.weight_bytes() / bytes_of(*stored);
  }
  if (!estimates.parameters) return estimates;
  estimates.matrix_flops = checked_multiply(
      checked_multiply(2 * *estimates.parameters, estimates.batch_size), estimates.seq_len);
  return estimates;
}

}  // namespace

std::optional<Integer> UnknownModel::parameters() const {
  return files ? files->weights.values : index->total_parameters;
}

Integer UnknownModel::weight_bytes() const {
  return files ? files->weights.bytes : index->total_bytes;
}

std::optional<UnknownModel> read_unknown_model(const std::string& path,
                                               const WorkloadRequest& request) {
  if (find_preset(path) || detail::has_other_layout(path)) return std::nullopt;
  const Place place = place_of(path_of(path));
  if (!place.weights) return std::nullopt;
  const StatedModel stated = stated_at(place);
  if (stated.is_known) return std::nullopt;
  UnknownModel model;
  model.path = path;
  model.model_type = stated.model_type;
  model.architecture = stated.architecture;
  model.nearest_types = nearest_model_types(stated.model_type);
  if (stated.has_known_type) {
    model.notes.push_back(fmt::format("headroom knows the type {}, but not its class {}",
                                      stated.model_type, stated.architecture));
  }
  model.index = index_totals(*place.weights);
  if (!model.index) model.files = inspect_headers(place.weights->string());
  model.why_no_estimates = stated.missing;
  if (stated.sizes) {
    model.estimates = estimates_of(model, *stated.sizes, request, stated.torch_dtype);
  }
  return model;
}

}  // namespace headroom
