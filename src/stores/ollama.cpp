#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "headroom/error.h"
#include "json_text.h"
#include "stores.h"
#include "user_folder.h"

namespace headroom::detail {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kModelLayer = "application/vnd.ollama.image.model";
/// Left out of names, as `ollama list` leaves it out.
constexpr std::string_view kLibrary = "registry.ollama.ai/library/";
constexpr std::string_view kRegistry = "registry.ollama.ai/";

/// Source: ollama, envconfig/config.go, and the service that its install script makes for Linux.
fs::path models_folder() {
  if (auto folder = folder_in("OLLAMA_MODELS"); !folder.empty()) return folder;
  std::error_code failed;
  const auto home = folder_in("HOME");
  if (!home.empty() && fs::is_directory(home / ".ollama" / "models", failed)) {
    return home / ".ollama" / "models";
  }
  return "/usr/share/ollama/.ollama/models";
}

/// "llama3.2:1b" of "registry.ollama.ai/library/llama3.2/1b".
std::string name_of_manifest(const fs::path& relative) {
  std::string name = relative.parent_path().generic_string();
  for (const std::string_view prefix : {kLibrary, kRegistry}) {
    if (name.starts_with(prefix)) {
      name.erase(0, prefix.size());
      break;
    }
  }
  return name + ":" + relative.filename().string();
}

[[noreturn]] void refuse_manifest(const fs::path& manifest, const std::string& message) {
  throw Error(ErrorCode::invalid_input, message, manifest.string(), "pull the model again");
}

/// The text of a key, or empty.
std::string text_of(const nlohmann::json& object, const char* key) {
  if (!object.is_object()) return {};
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

/// The blob's file; a digest is "sha256:" and hexadecimal digits.
fs::path blob_of(const fs::path& models, const std::string& digest, const fs::path& manifest) {
  constexpr std::string_view kHash = "sha256:";
  const bool known =
      digest.starts_with(kHash) && digest.size() > kHash.size() &&
      digest.find_first_not_of("0123456789abcdef", kHash.size()) == std::string::npos;
  if (!known) refuse_manifest(manifest, fmt::format("the digest \"{}\" is not SHA-256", digest));
  return models / "blobs" / ("sha256-" + digest.substr(kHash.size()));
}

LocalModel model_of_manifest(const fs::path& models, const fs::path& manifest) {
  const nlohmann::json content = parse_json(read_text_file(manifest.string()), manifest.string());
  const auto layers = content.is_object() ? content.find("layers") : content.end();
  if (layers == content.end() || !layers->is_array()) refuse_manifest(manifest, "has no layers");
  const auto model = std::ranges::find_if(*layers, [](const nlohmann::json& layer) {
    return text_of(layer, "mediaType") == kModelLayer;
  });
  if (model == layers->end()) refuse_manifest(manifest, "has no layer with a GGUF model");
  const fs::path blob = blob_of(models, text_of(*model, "digest"), manifest);
  std::error_code failed;
  const auto size = fs::file_size(blob, failed);
  if (failed) refuse_manifest(manifest, fmt::format("its blob {} is missing", blob.string()));
  return {name_of_manifest(manifest.lexically_relative(models / "manifests")), ModelStore::ollama,
          LocalFormat::gguf, blob.string(), static_cast<std::int64_t>(size)};
}

}  // namespace

void add_ollama(LocalModels& local) {
  const fs::path models = models_folder();
  std::error_code failed;
  auto entry = fs::recursive_directory_iterator(
      models / "manifests", fs::directory_options::skip_permission_denied, failed);
  for (; !failed && entry != fs::recursive_directory_iterator(); entry.increment(failed)) {
    std::error_code unknown;
    if (entry->is_directory(unknown) || entry->path().filename().string().starts_with("."))
      continue;
    try {
      local.models.push_back(model_of_manifest(models, entry->path()));
    } catch (const Error& error) {
      const fs::path relative = entry->path().lexically_relative(models / "manifests");
      local.problems.push_back({name_of_manifest(relative), error.what()});
    }
  }
}

}  // namespace headroom::detail
