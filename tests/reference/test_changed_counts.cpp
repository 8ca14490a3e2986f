// Configs with one key changed: read with the parameters of the class of transformers, or refused.
// tests/data/defaults/changed.jsonl has each change that the class reads, by
// make_changed_counts.py.
#include <doctest/doctest.h>

#include <optional>
#include <sstream>

#include "support/data.h"
#include "support/python_json.h"

using namespace headroom;
using namespace headroom::test;

namespace {

using nlohmann::json;

/// Parameters of `config`; none if it is refused, which must say where.
std::optional<Integer> parameters_if_read(const json& config) {
  try {
    return parameters_on(build_graph(spec_of(config), {}));
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::invalid_input);
    CHECK_FALSE(error.hint().empty());
    return std::nullopt;
  }
}

}  // namespace

TEST_CASE("a tiny config with one key changed has the parameters of its class, or is refused") {
  std::size_t equal = 0;
  std::size_t refused = 0;
  std::istringstream records(read_file(data_folder() / "defaults/changed.jsonl"));
  for (std::string line; std::getline(records, line);) {
    const json record = json::parse(line);
    const auto file = record.at("config").get<std::string>();
    CAPTURE(file);
    const json config = read_with_infinity(data_folder() / file);
    CHECK(parameters_if_read(config) == Integer(record.at("params").get<std::int64_t>()));
    for (const json& change : record.at("changes")) {
      const auto place = change.at(0).get<std::string>();
      CAPTURE(place);
      const std::string value = change.at(1).dump();
      CAPTURE(value);
      json changed = config;
      changed[json::json_pointer(place)] = change.at(1);
      const std::optional<Integer> counted = parameters_if_read(changed);
      if (counted) CHECK(*counted == Integer(change.at(2).get<std::int64_t>()));
      ++(counted ? equal : refused);
    }
  }
  CHECK(equal > 13'000);
  CHECK(refused < equal / 8);
}
