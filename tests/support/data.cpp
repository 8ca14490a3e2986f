#include "data.h"

#include <array>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <regex>
#include <sstream>
#include <stdexcept>

namespace headroom::test {
namespace {

namespace fs = std::filesystem;

/// Splits one CSV line; quoted fields may contain commas (RFC 4180).
std::vector<std::string> csv_fields(const std::string& line) {
  std::vector<std::string> fields(1);
  bool quoted = false;
  for (const char c : line) {
    if (c == '"') {
      quoted = !quoted;
    } else if (c == ',' && !quoted) {
      fields.emplace_back();
    } else if (c != '\r') {
      fields.back() += c;
    }
  }
  return fields;
}

/// All folders of tiny reference models by name; of equal names the first.
std::map<std::string, fs::path> all_golden_models() {
  std::vector<fs::path> folders = more_golden_folders();
  folders.insert(folders.begin(), data_folder() / "golden/models");
  std::map<std::string, fs::path> by_name;
  for (const fs::path& folder : folders) {
    for (const auto& entry : fs::directory_iterator(folder)) {
      if (!fs::exists(entry.path() / "model.safetensors")) continue;
      by_name.emplace(entry.path().filename().string(), entry.path());
    }
  }
  return by_name;
}

}  // namespace

fs::path data_folder() { return HEADROOM_TEST_DATA; }

std::vector<fs::path> more_golden_folders() {
  const char* const chosen = std::getenv("HEADROOM_GOLDEN");  // NOLINT(concurrency-mt-unsafe)
  std::istringstream list(chosen != nullptr ? chosen : HEADROOM_MORE_GOLDEN);
  std::vector<fs::path> folders;
  for (std::string folder; std::getline(list, folder, ':');) {
    if (!folder.empty()) folders.emplace_back(folder);
  }
  return folders;
}

std::vector<fs::path> golden_models() {
  std::vector<fs::path> models;
  for (const auto& [name, path] : all_golden_models()) models.push_back(path);
  return models;
}

std::string read_file(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  if (!stream) throw std::runtime_error("cannot read " + file.string());
  return {std::istreambuf_iterator<char>(stream), {}};
}

nlohmann::json read_json(const fs::path& file) { return nlohmann::json::parse(read_file(file)); }

nlohmann::json read_python_json(const fs::path& file) {
  static const std::regex kNoNumber("([:,\\[]\\s*)(-?Infinity|NaN)");
  return nlohmann::json::parse(std::regex_replace(read_file(file), kNoNumber, "$1null"));
}

std::vector<CsvRow> read_csv(const fs::path& file) {
  std::istringstream stream(read_file(file));
  std::string line;
  std::getline(stream, line);
  const std::vector<std::string> titles = csv_fields(line);
  std::vector<CsvRow> rows;
  while (std::getline(stream, line)) {
    const std::vector<std::string> fields = csv_fields(line);
    CsvRow row;
    for (std::size_t i = 0; i < titles.size(); ++i) row[titles[i]] = fields.at(i);
    rows.push_back(std::move(row));
  }
  return rows;
}

std::int64_t number(const CsvRow& row, const std::string& column) {
  const std::string& text = row.at(column);
  return text.empty() ? 0 : std::stoll(text);
}

nlohmann::json golden_config(const CsvRow& row) {
  const std::string& name = row.at("model");
  if (row.at("size") == "full") {
    return read_json(data_folder() / "golden/configs" / (name + ".config.json"));
  }
  return read_json(data_folder() / "golden/tiny" / (name + ".json")).at("config");
}

TensorShapes safetensors_shapes(const fs::path& file) {
  const std::string content = read_file(file);
  std::uint64_t length = 0;
  for (std::size_t i = 8; i-- > 0;)
    length = length << 8U | static_cast<unsigned char>(content.at(i));
  const auto header = nlohmann::json::parse(content.substr(8, length));
  TensorShapes shapes;
  for (const auto& [name, tensor] : header.items()) {
    if (name != "__metadata__") shapes[name] = tensor.at("shape").get<std::vector<std::int64_t>>();
  }
  return shapes;
}

ModelSpec spec_of(const nlohmann::json& config, const std::string& name) {
  return read_model_spec(config.dump(), name + "/config.json", name);
}

Counted count(const ModelSpec& spec, const Workload& workload, Convention convention) {
  Counted counted;
  counted.graph = build_graph(spec, graph_options(workload));
  counted.analysis = analyze(counted.graph, {convention, workload.recompute, workload.kernels});
  counted.figures =
      Evaluator(counted.graph, counted.analysis, workload.recompute).evaluate(workload);
  return counted;
}

Expr collapsed(const Expr& formula, const Graph& graph, const Workload& workload) {
  return collapse(collapse(formula, relations_of(workload)), graph.relations);
}

Integer parameters_on(const Graph& graph) {
  return count_parameters(graph).total.evaluate(graph.sizes);
}

}  // namespace headroom::test

namespace doctest {

String StringMaker<headroom::Integer>::convert(headroom::Integer value) {
  return headroom::to_string(value).c_str();
}

String StringMaker<headroom::Expr>::convert(const headroom::Expr& value) {
  return headroom::format(value).c_str();
}

}  // namespace doctest
