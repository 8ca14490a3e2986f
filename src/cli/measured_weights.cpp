#include "measured_weights.h"

#include "checkpoint.h"
#include "gguf.h"
#include "run_options.h"
#include "weight_reader.h"

namespace headroom::cli {

bool is_quantised(const std::filesystem::path& files) {
  if (files.empty()) return false;
  return checkpoint::is_gguf(files) || detail::has_packed_weights(files);
}

StoredWeights stored_weights_of(const Workload& workload, const std::filesystem::path& files) {
  if (storage_of(workload) == measured::HeldType::stored) return StoredWeights::random;
  if (workload.weights || files.empty()) return StoredWeights::none;
  if (checkpoint::is_gguf(files)) return StoredWeights::gguf;
  return detail::has_packed_weights(files) ? StoredWeights::packed : StoredWeights::none;
}

std::unique_ptr<measured::WeightSource> open_weights(const std::filesystem::path& files,
                                                     const measured::MeasureOptions& options,
                                                     const ModelSpec& spec) {
  if (files.empty()) {
    const bool stored = options.storage == measured::HeldType::stored;
    return stored ? measured::random_stored(spec, options.seed)
                  : measured::random_weights(options.seed);
  }
  if (checkpoint::is_gguf(files)) {
    return measured::stored_weights(spec, detail::read_gguf(files, spec));
  }
  if (detail::has_packed_weights(files)) {
    return measured::stored_weights(spec, detail::read_packed(files));
  }
  return measured::checkpoint_weights(spec, checkpoint::Checkpoint(files));
}

}  // namespace headroom::cli
