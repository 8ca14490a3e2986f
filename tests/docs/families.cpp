// The table of docs/families.md: every family of the registry, with what the tests' data and the
// executor say of it.
//
// usage: families PAGE.md [--update]
//
// Compares the page with the table between its marks, or rewrites it. Exit status: 0 equal, 1 not.
// The readers of the tests' data are built on doctest.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "families/drafts.h"
#include "family.h"
#include "headroom/error.h"
#include "headroom/graph.h"
#include "headroom/model_source.h"
#include "measure.h"
#include "support/data.h"

namespace headroom {
namespace {

namespace fs = std::filesystem;
using detail::Family;
using detail::None;
using nlohmann::json;

constexpr std::string_view kBegin = "<!-- table of families: begin -->\n";
constexpr std::string_view kEnd = "<!-- table of families: end -->\n";

/// Independent data on a family.
struct Truth {
  int outputs = 0;     ///< folders with weights and the reference code's outputs
  int parameters = 0;  ///< tiny configs with the reference code's parameters
  int published = 0;   ///< published configs with totals
  int presets = 0;     ///< with a reference count
};

/// One family, by its configs.
struct Row {
  Truth truth;
  std::optional<ModelSpec> spec;  ///< of the first config that runs, else of the first that is read
};

using Rows = std::map<const Family*, Row>;

/// The family of a config by its type or, in diffusers' format and of drafts, by its class; null if
/// it has none.
const Family* family_of(const json& config) {
  const auto classes = config.find("architectures");
  if (classes != config.end() && classes->is_array() && !classes->empty()) {
    const auto* const draft = detail::find_draft(classes->front().get<std::string>());
    if (draft != nullptr) return draft;
  }
  for (const char* const key : {"model_type", "_class_name"}) {
    const auto type = config.find(key);
    const bool named = type != config.end() && type->is_string();
    if (named) return detail::find_family(type->get_ref<const std::string&>());
  }
  return nullptr;
}

/// Text models of a wrapper are configs of their own families.
void visit_configs(const json& config, const auto& visit) {
  if (!config.is_object()) return;
  if (family_of(config) != nullptr) visit(config);
  for (const auto& [key, value] : config.items()) visit_configs(value, visit);
}

bool runs(const ModelSpec& spec) { return measured::reason_not_run(spec).empty(); }

void add_config(const json& config, int Truth::*kind, Rows& rows) {
  visit_configs(config, [&](const json& own) {
    Row& row = rows[family_of(own)];
    if (kind != nullptr) ++(row.truth.*kind);
    if (row.spec && runs(*row.spec)) return;
    try {
      ModelSpec spec = read_model_spec(own.dump(), "config.json", "test");
      if (!row.spec || runs(spec)) row.spec = std::move(spec);
    } catch (const Error&) {
      // A text_config without its wrapper may lack keys: another config shows the family.
    }
  });
}

/// The kind of data that a file of tests/data is; null: none.
int Truth::*kind_of(const fs::path& file) {
  const std::string name = file.filename().string();
  const std::string folder = file.parent_path().filename().string();
  if (name == "config.json") {
    return fs::exists(file.parent_path() / "expected.safetensors") ? &Truth::outputs : nullptr;
  }
  if (folder == "tiny") return &Truth::parameters;
  if (folder == "published" || name.ends_with(".config.json")) return &Truth::published;
  const bool counted = folder == "configs" || folder == "diffusion";
  return counted ? &Truth::parameters : nullptr;
}

/// Configs of tests/data by path, those with outputs first.
std::vector<fs::path> data_files() {
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(test::data_folder())) {
    const fs::path& file = entry.path();
    const bool config = file.extension() == ".json" && kind_of(file) != nullptr;
    // Quantised copies of models say nothing more of their families.
    if (config && file.parent_path().filename() != "quantization") files.push_back(file);
  }
  std::ranges::sort(files, {}, [](const fs::path& file) {
    return std::pair{kind_of(file) != &Truth::outputs, file};
  });
  return files;
}

Rows rows_of_data() {
  Rows rows;
  for (const fs::path& file : data_files()) {
    json content = test::read_python_json(file);
    add_config(content.contains("config") ? content["config"] : content, kind_of(file), rows);
  }
  for (const Preset& preset : list_presets()) {
    json config = json::parse(preset.json);
    if (config.contains("overrides")) config["config"].update(config["overrides"]);
    add_config(config["config"], config.contains("reference") ? &Truth::presets : nullptr, rows);
  }
  return rows;
}

std::string joined(const std::vector<std::string>& words) {
  return fmt::format("{}", fmt::join(words, " · "));
}

std::string types_of(const Family& family) {
  std::vector<std::string> types;
  for (const std::string_view name : family.model_types.names) {
    types.push_back(fmt::format("`{}`", name));
  }
  return fmt::format("{}", fmt::join(types, ", "));
}

std::string_view word_of(ModelPart part) {
  switch (part) {
    case ModelPart::text:
      return "part of the text";
    case ModelPart::vision:
      return "vision";
    case ModelPart::audio:
      return "audio";
    case ModelPart::projector:
      return "projector";
    case ModelPart::adapter:
      break;
  }
  return "adapter";
}

/// Parts whose weights have no operator.
std::set<ModelPart> parts_without_operators(const ModelSpec& spec) {
  std::set<ModelPart> parts;
  for (const CountedWeight& weight : spec.counted_only) {
    if (weight.use == CountedUse::part_not_run) parts.insert(weight.part);
  }
  return parts;
}

std::string counted(const Row& row) {
  if (!row.spec) return "yes";
  (void)build_graph(*row.spec, {});
  std::vector<std::string> parts;
  for (const ModelPart part : parts_without_operators(*row.spec)) {
    parts.emplace_back(word_of(part));
  }
  return parts.empty() ? "yes" : fmt::format("{}: parameters only", fmt::join(parts, ", "));
}

std::string run(const Family& family, const Row& row) {
  if (!row.spec) return "no config at hand";
  const std::string reason = measured::reason_not_run(*row.spec);
  if (!reason.empty()) return "no: " + reason;
  if (const auto* const none = std::get_if<None>(&family.names)) {
    return fmt::format("random weights: {}", none->because);
  }
  std::set<ModelPart> parts = parts_without_operators(*row.spec);
  parts.erase(ModelPart::text);
  if (parts.empty()) return "yes";
  if (parts.contains(ModelPart::adapter)) return "text";  // images need their adapter
  if (row.spec->audio_tower) return row.spec->tower ? "text, images and sound" : "text and sound";
  return row.spec->tower ? "text and images" : "text";
}

std::string gguf(const Family& family) {
  if (const auto* const none = std::get_if<None>(&family.gguf)) {
    return fmt::format("– ({})", none->because);
  }
  std::vector<std::string> names;
  for (const auto& architecture : std::get<detail::GgufForm>(family.gguf).architectures) {
    names.push_back(fmt::format("`{}`", architecture.name));
  }
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names.empty() ? "another family's name" : joined(names);
}

std::string truth(const Truth& truth) {
  std::vector<std::string> kinds;
  const auto add = [&](int count, const char* kind) {
    if (count > 0) kinds.push_back(fmt::format("{} {}", kind, count));
  };
  add(truth.outputs, "outputs");
  add(truth.parameters, "reference code");
  add(truth.published, "published configs");
  add(truth.presets, "presets");
  return kinds.empty() ? "published code" : joined(kinds);
}

std::string table() {
  const Rows rows = rows_of_data();
  std::map<std::string_view, std::string> lines;
  for (const Family& family : detail::families()) {
    const auto found = rows.find(&family);
    const Row row = found == rows.end() ? Row{} : found->second;
    lines[family.model_types.names.front()] =
        fmt::format("| {} | {} | {} | {} | {} |\n", types_of(family), counted(row),
                    run(family, row), gguf(family), truth(row.truth));
  }
  std::string text =
      "\n| Model types | Counted | Run | GGUF | Checked against |\n| :-- | :-- | :-- | :-- | :-- "
      "|\n";
  for (const auto& [name, line] : lines) text += line;
  return text + "\n";
}

/// Replaces the text between the marks. Returns an empty text if the page lacks them.
std::string with_table(const std::string& page) {
  const auto begin = page.find(kBegin);
  const auto end = page.find(kEnd);
  if (begin == std::string::npos || end == std::string::npos) return {};
  return page.substr(0, begin + kBegin.size()) + table() + page.substr(end);
}

int check(const std::string& file) {
  const std::string page = test::read_file(file);
  if (page == with_table(page)) return 0;
  fmt::print(stderr, "{} differs from the registry: run `./dev update-goldens`\n", file);
  return 1;
}

int rewrite(const std::string& file) {
  const std::string page = with_table(test::read_file(file));
  if (page.empty()) return 1;
  std::ofstream(file, std::ios::binary) << page;
  return 0;
}

}  // namespace
}  // namespace headroom

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  if (arguments.size() == 1) return headroom::check(arguments.front());
  const bool updates = arguments.size() == 2 && arguments.back() == "--update";
  return updates ? headroom::rewrite(arguments.front()) : 2;
}
