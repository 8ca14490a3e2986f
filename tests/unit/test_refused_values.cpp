// Values of configs that a family refuses, one row each: tests/data/refused has the config that is
// read, the change that makes it bad, and the place and the words of the error.
#include <doctest/doctest.h>

#include <filesystem>

#include "headroom/error.h"
#include "headroom/model_source.h"
#include "support/data.h"
#include "support/python_json.h"

using namespace headroom;
using namespace headroom::test;

namespace {

using nlohmann::json;

/// The config in `file`, which may have figures beside it.
json config_in(const std::string& file) {
  const json document = read_with_infinity(data_folder() / file);
  const bool is_config = document.contains("model_type") || document.contains("_class_name");
  return is_config ? document : document.at("config");
}

/// "PLACE: MESSAGE" of the error that `config` gives; empty if it is read.
std::string refusal(const json& config) {
  return refusal_of([&] { (void)read_model_spec(config.dump(), "config.json", "test"); });
}

void check_row(const json& row) {
  CAPTURE(row.dump());
  json config = config_in(row.at("config"));
  CHECK(refusal(config).empty());
  config.merge_patch(row.at("with"));  // null removes a key
  const std::string error = refusal(config);
  CAPTURE(error);
  const auto pointer = row.at("refused_at").get<std::string>();  // empty: the file
  CHECK(error.starts_with("config.json" + (pointer.empty() ? "" : "#" + pointer) + ": "));
  CHECK(error.find(row.at("because").get<std::string>()) != std::string::npos);
}

}  // namespace

TEST_CASE("each value that a family cannot count is refused at its key, with its reason") {
  std::size_t rows = 0;
  for (const auto& entry : std::filesystem::directory_iterator(data_folder() / "refused")) {
    const json table = read_json(entry.path());
    for (const json& row : table) check_row(row);
    rows += table.size();
  }
  CHECK(rows > 200);
}
