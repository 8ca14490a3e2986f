#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "config_reader.h"
#include "headroom/error.h"
#include "json_text.h"
#include "readers.h"
#include "with_noun.h"

namespace headroom::detail {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPackage = "sentence_transformers.models.";

/// A step from token states to the sentence's embedding.
struct Module {
  std::string type;  ///< the class: "Transformer", "Pooling", "Dense", …
  fs::path folder;
};

std::vector<Module> read_modules(const fs::path& folder, const std::string& file) {
  std::vector<Module> modules;
  const nlohmann::json list = parse_json(read_text_file(file), file);
  for (const nlohmann::json& entry : list) {
    ConfigReader module(entry, file);
    const std::string type = module.text_or({"type"}, "");
    const std::string path = module.text_or({"path"}, "");
    if (path.find("..") != std::string::npos || fs::path(path).is_absolute()) {
      module.fail("path", "leads out of the folder", "name a folder inside it");
    }
    modules.push_back({type.substr(type.rfind('.') + 1), path.empty() ? folder : folder / path});
  }
  return modules;
}

void add_dense(const fs::path& folder, ModelSpec& spec) {
  const std::string file = (folder / "config.json").string();
  const nlohmann::json document = parse_json(read_text_file(file), file);
  ConfigReader dense(document, file);
  const std::int64_t in = dense.size({"in_features"});
  const std::int64_t out = dense.size({"out_features"});
  const std::string path = "sentence." + name_of_folder(folder);
  const auto add = [&](const char* name, std::vector<std::int64_t> shape) {
    spec.counted_only.push_back(
        {path + name, std::move(shape), WeightRole::head, 1, ModelPart::text});
  };
  add(".weight", {out, in});
  if (dense.flag_or({"bias"}, true)) add(".bias", {out});
  dense.ignore({"activation_function"});
  dense.require_all_read();
}

}  // namespace

Model read_sentence_transformers_folder(const fs::path& folder) {
  const std::string file = (folder / "modules.json").string();
  std::optional<Model> model;
  std::vector<fs::path> dense;
  for (const Module& module : read_modules(folder, file)) {
    if (module.type == "Transformer") {
      model = load_model((module.folder / "config.json").string());
    } else if (module.type == "Dense") {
      dense.push_back(module.folder);
    } else if (module.type != "Pooling" && module.type != "Normalize" && module.type != "Dropout") {
      throw Error(ErrorCode::invalid_input,
                  fmt::format("the sentence-transformers module \"{}\" is not read", module.type),
                  file, fmt::format("give the config.json of its {}Transformer", kPackage));
    }
  }
  if (!model) {
    throw Error(ErrorCode::invalid_input, "has no transformer among its modules", file,
                "give a folder with a transformer");
  }
  model->spec.name = name_of_folder(folder);
  for (const fs::path& one : dense) add_dense(one, model->spec);
  if (!dense.empty()) {
    model->spec.assumptions.push_back(
        fmt::format("{} after pooling: parameters and weights only; pooling has neither",
                    detail::with_noun(static_cast<Integer>(dense.size()), "dense layer")));
  }
  return *std::move(model);
}

}  // namespace headroom::detail
