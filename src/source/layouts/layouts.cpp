#include "layouts.h"

#include <array>
#include <nlohmann/json.hpp>
#include <string_view>
#include <system_error>
#include <vector>

#include "headroom/error.h"
#include "json_text.h"
#include "readers.h"

namespace headroom::detail {
namespace {

namespace fs = std::filesystem;

enum class Layout { peft_adapter, sentence_transformers, diffusers, params_json, nemo, megatron };

/// A file that only folders of the layout have.
struct Marker {
  const char* file;
  Layout layout;
};
constexpr std::array kMarkers{
    Marker{"adapter_config.json", Layout::peft_adapter},
    Marker{"model_index.json", Layout::diffusers},
    Marker{"params.json", Layout::params_json},
    Marker{"model_config.yaml", Layout::nemo},
    Marker{"context/model.yaml", Layout::nemo},  // NeMo 2
    Marker{"latest_checkpointed_iteration.txt", Layout::megatron},
};
constexpr const char* kModules = "modules.json";

/// A folder and its layout.
struct Place {
  fs::path folder;
  Layout layout;
};

bool is_file(const fs::path& path) {
  std::error_code failed;
  return fs::is_regular_file(path, failed);
}

bool lists_sentence_transformers(const fs::path& modules) {
  const nlohmann::json list = parse_json(read_text_file(modules.string()), modules.string());
  if (!list.is_array() || list.empty() || !list.front().is_object()) return false;
  const auto type = list.front().find("type");
  return type != list.front().end() && type->is_string() &&
         type->get_ref<const std::string&>().starts_with("sentence_transformers.");
}

std::optional<Place> place_of_folder(const fs::path& folder) {
  if (is_file(folder / kModules) && lists_sentence_transformers(folder / kModules)) {
    return Place{folder, Layout::sentence_transformers};
  }
  if (is_file(folder / "config.json")) return std::nullopt;
  for (const Marker& marker : kMarkers) {
    if (is_file(folder / marker.file)) return Place{folder, marker.layout};
  }
  return std::nullopt;
}

std::optional<Place> place_of(const fs::path& path) {
  std::error_code failed;
  if (fs::is_directory(path, failed)) return place_of_folder(path);
  if (!is_file(path)) return std::nullopt;
  if (path.extension() == ".nemo") return Place{path, Layout::nemo};
  if (path.extension() == ".yaml" || path.extension() == ".yml") {
    return Place{path, Layout::megatron};
  }
  const fs::path folder = fs::absolute(path).parent_path();
  for (const Marker& marker : kMarkers) {
    if (path.filename() == marker.file) return Place{folder, marker.layout};
  }
  if (path.filename() == kModules) return place_of_folder(folder);
  return std::nullopt;
}

[[noreturn]] void refuse(const fs::path& path, const std::string& what) {
  throw Error(ErrorCode::invalid_input, what, path.string(),
              "convert it to Hugging Face's format, and give that folder or its config.json");
}

Model read_at(const Place& place) {
  switch (place.layout) {
    case Layout::peft_adapter:
      return read_adapter_folder(place.folder);
    case Layout::sentence_transformers:
      return read_sentence_transformers_folder(place.folder);
    case Layout::diffusers:
      return read_diffusers_folder(place.folder);
    case Layout::params_json:
      return read_params_folder(place.folder);
    case Layout::nemo:
      refuse(place.folder, "is a NeMo checkpoint, whose YAML headroom does not read");
    case Layout::megatron:
      break;
  }
  refuse(place.folder,
         "is a checkpoint or config of Megatron or NeMo, which headroom does not read");
}

}  // namespace

bool has_other_layout(const std::string& path) { return place_of(path).has_value(); }

std::optional<Model> read_other_layout(const fs::path& path) {
  const std::optional<Place> place = place_of(path);
  if (!place) return std::nullopt;
  return read_at(*place);
}

std::string name_of_folder(const fs::path& folder) {
  return fs::weakly_canonical(folder).filename().string();
}

}  // namespace headroom::detail
