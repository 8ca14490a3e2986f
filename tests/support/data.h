// Paths of the test data and small readers for them.
#pragma once

#include <doctest/doctest.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "headroom/analysis.h"
#include "headroom/error.h"
#include "headroom/graph.h"
#include "headroom/model_source.h"

namespace headroom::test {

/// tests/data of this checkout.
[[nodiscard]] std::filesystem::path data_folder();

/// Folders of tiny reference models, sorted by name: config, weights, inputs and the reference
/// code's outputs. Those of tests/data/golden/models, and any further ones of the folders that the
/// environment variable HEADROOM_GOLDEN lists, separated by colons; by default the CMake variable
/// of that name.
[[nodiscard]] std::vector<std::filesystem::path> golden_models();

/// The folders that HEADROOM_GOLDEN lists.
[[nodiscard]] std::vector<std::filesystem::path> more_golden_folders();

[[nodiscard]] std::string read_file(const std::filesystem::path& file);
[[nodiscard]] nlohmann::json read_json(const std::filesystem::path& file);
/// JSON as Python writes it; Infinity and NaN, which JSON lacks, become null.
[[nodiscard]] nlohmann::json read_python_json(const std::filesystem::path& file);

/// One row of a CSV file by column title.
using CsvRow = std::map<std::string, std::string>;
[[nodiscard]] std::vector<CsvRow> read_csv(const std::filesystem::path& file);

/// The row's value as a number; 0 if empty.
[[nodiscard]] std::int64_t number(const CsvRow& row, const std::string& column);

/// The config that a row of tests/data/golden/*.csv was recorded with.
[[nodiscard]] nlohmann::json golden_config(const CsvRow& row);

/// Name and shape of every tensor of a safetensors file, from its header.
using TensorShapes = std::map<std::string, std::vector<std::int64_t>>;
[[nodiscard]] TensorShapes safetensors_shapes(const std::filesystem::path& file);

/// The spec of a JSON config.
[[nodiscard]] ModelSpec spec_of(const nlohmann::json& config, const std::string& name = "test");

/// Graph, analysis and figures of one model and workload.
struct Counted {
  Graph graph;
  Analysis analysis;
  Figures figures;
};
[[nodiscard]] Counted count(const ModelSpec& spec, const Workload& workload,
                            Convention convention = Convention::headroom);

/// Collapses `formula` by the relations of the workload and of the model.
[[nodiscard]] Expr collapsed(const Expr& formula, const Graph& graph, const Workload& workload);

/// Number of parameters of `graph`, all layers included.
[[nodiscard]] Integer parameters_on(const Graph& graph);

/// Message of the Error{invalid_input} that `call` throws; empty if it does not throw.
template <class Call>
std::string refusal_of(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::invalid_input);
    return error.what();
  }
  return {};
}

}  // namespace headroom::test

namespace doctest {
/// Prints 128-bit integers and formulas in failure messages.
template <>
struct StringMaker<headroom::Integer> {
  static String convert(headroom::Integer value);
};
template <>
struct StringMaker<headroom::Expr> {
  static String convert(const headroom::Expr& value);
};
}  // namespace doctest
