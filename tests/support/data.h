// Where the tests' data are, and small readers for them.
#pragma once

#include <doctest/doctest.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "headroom/analysis.h"
#include "headroom/error.h"
#include "headroom/figures.h"
#include "headroom/graph.h"
#include "headroom/model_source.h"

namespace headroom::test {

/// tests/data of this checkout.
[[nodiscard]] std::filesystem::path data_folder();

/// A folder of further reference models beside the checkout; empty where there is none.
[[nodiscard]] std::optional<std::filesystem::path> extended_golden_folder();

[[nodiscard]] std::string read_file(const std::filesystem::path& file);
[[nodiscard]] nlohmann::json read_json(const std::filesystem::path& file);

/// One row of a CSV file, by column title.
using CsvRow = std::map<std::string, std::string>;
[[nodiscard]] std::vector<CsvRow> read_csv(const std::filesystem::path& file);

/// The row's value as a number; 0 where it is empty.
[[nodiscard]] std::int64_t number(const CsvRow& row, const std::string& column);

/// Name and shape of every tensor of a safetensors file, from its header.
using TensorShapes = std::map<std::string, std::vector<std::int64_t>>;
[[nodiscard]] TensorShapes safetensors_shapes(const std::filesystem::path& file);

/// The spec of a config given as JSON.
[[nodiscard]] ModelSpec spec_of(const nlohmann::json& config, const std::string& name = "test");

/// Everything about one model and workload, from graph to numbers.
struct Counted {
  Graph graph;
  Analysis analysis;
  Figures figures;
};
[[nodiscard]] Counted count(const ModelSpec& spec, const Workload& workload,
                            Convention convention = Convention::headroom);

/// `formula` in the model's and the workload's own symbols, related ones collapsed.
[[nodiscard]] Expr collapsed(const Expr& formula, const Graph& graph, const Workload& workload);

/// All parameters that `graph` holds, layers repeated.
[[nodiscard]] Integer parameters_on(const Graph& graph);

/// What `call` says when it throws Error{invalid_input}; empty when it does not throw.
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
/// Shows 128-bit integers and formulas in failure messages.
template <>
struct StringMaker<headroom::Integer> {
  static String convert(headroom::Integer value);
};
template <>
struct StringMaker<headroom::Expr> {
  static String convert(const headroom::Expr& value);
};
}  // namespace doctest
