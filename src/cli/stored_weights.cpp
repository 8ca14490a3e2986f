#include "stored_weights.h"

#include <filesystem>
#include <optional>

#include "checkpoint.h"
#include "gguf.h"
#include "headroom/error.h"
#include "headroom/inspect.h"

namespace headroom::cli {
namespace {

namespace fs = std::filesystem;

/// What holds the weights of the model that is named so; empty for a preset or a config alone.
std::optional<fs::path> weights_of(const std::string& model) {
  if (find_preset(model)) return std::nullopt;
  fs::path path(model);
  if (checkpoint::is_gguf(path)) return path;
  if (path.filename() == "config.json") path = fs::absolute(path).parent_path();
  std::error_code failed;
  const bool can_have = fs::is_directory(path, failed) || path.extension() == ".safetensors";
  if (!can_have || !checkpoint::Checkpoint::exists(path)) return std::nullopt;
  return path;
}

}  // namespace

void apply_stored_weights(AnalyzeReport& report, const std::string& model) {
  const auto path = weights_of(model);
  if (!path) return;
  try {
    (void)use_stored_weights(report, inspect(path->string()));
  } catch (const Error& error) {
    if (error.code() != ErrorCode::invalid_input) throw;
    report.notes.push_back(std::string("the weights beside the config are not read: ") +
                           error.what());
  }
}

}  // namespace headroom::cli
