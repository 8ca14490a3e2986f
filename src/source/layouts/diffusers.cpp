// A diffusers pipeline: several models, of which the transformer denoises.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>
#include <system_error>
#include <vector>

#include "family.h"
#include "headroom/error.h"
#include "json_text.h"
#include "readers.h"

namespace headroom::detail {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kTransformer = "transformer";

struct PipelinePart {
  std::string name;
  std::string class_name;
};

std::string described(const PipelinePart& part) {
  return fmt::format("{} ({})", part.name, part.class_name);
}

/// The pipeline's parts; [null, null] is left out.
std::vector<PipelinePart> parts_of(const nlohmann::json& index) {
  std::vector<PipelinePart> parts;
  for (const auto& [name, entry] : index.items()) {
    const bool is_part = entry.is_array() && entry.size() == 2 && entry[1].is_string();
    if (is_part) parts.push_back({name, entry[1].get<std::string>()});
  }
  return parts;
}

bool has_config(const fs::path& folder, const std::string& part) {
  std::error_code failed;
  return fs::is_regular_file(folder / part / "config.json", failed);
}

bool is_readable(const PipelinePart& part) {
  return part.name == kTransformer && find_family(part.class_name) != nullptr;
}

[[noreturn]] void refuse_pipeline(const fs::path& folder, const std::string& file,
                                  const nlohmann::json& index,
                                  const std::vector<PipelinePart>& parts) {
  std::vector<std::string> words;
  std::string first;
  for (const PipelinePart& part : parts) {
    words.push_back(described(part));
    if (first.empty() && has_config(folder, part.name)) first = part.name;
  }
  if (first.empty()) first = parts.empty() ? kTransformer : parts.front().name;
  const auto pipeline = index.find("_class_name");
  const bool named = pipeline != index.end() && pipeline->is_string();
  throw Error(ErrorCode::invalid_input,
              fmt::format("is a diffusers pipeline{} of several models: {}",
                          named ? " (" + pipeline->get<std::string>() + ")" : std::string(),
                          fmt::join(words, ", ")),
              file,
              fmt::format("give the folder of one model, such as {}", (folder / first).string()));
}

}  // namespace

Model read_diffusers_folder(const fs::path& folder) {
  const std::string file = (folder / "model_index.json").string();
  const nlohmann::json index = parse_json(read_text_file(file), file);
  const std::vector<PipelinePart> parts = parts_of(index);
  const auto transformer = std::ranges::find_if(parts, is_readable);
  if (transformer == parts.end()) refuse_pipeline(folder, file, index, parts);
  Model model = load_model((folder / kTransformer).string());
  model.spec.name = name_of_folder(folder);
  std::vector<std::string> others;
  for (const PipelinePart& part : parts) {
    if (has_config(folder, part.name) && part.name != kTransformer) {
      others.push_back(described(part));
    }
  }
  if (!others.empty()) {
    model.spec.assumptions.push_back(fmt::format(
        "of the pipeline, the transformer alone is counted: without {}", fmt::join(others, ", ")));
  }
  return model;
}

}  // namespace headroom::detail
