// Errors and their exit statuses, and the command line that reports repeat.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "headroom/error.h"
#include "invocation_json.h"

using namespace headroom;

// The statuses of docs/reference.md.
TEST_CASE("each kind of error ends the program with its status") {
  CHECK(exit_status(ErrorCode::invalid_input) == 2);
  CHECK(exit_status(ErrorCode::overflow) == 2);
  CHECK(exit_status(ErrorCode::missing_resource) == 3);
  CHECK(exit_status(ErrorCode::internal) == 4);
}

TEST_CASE("an error's text begins with its place, if it has one") {
  CHECK(std::string(Error(ErrorCode::internal, "broken").what()) == "broken");
  CHECK(std::string(Error(ErrorCode::internal, "broken", "file").what()) == "file: broken");
}

TEST_CASE("a report repeats its command line, with a commit if that is known") {
  Invocation invocation{"0.1.0", "", {"analyze", "gpt2"}};
  nlohmann::ordered_json json = detail::to_json(invocation);
  CHECK(json.at("command") == "analyze");
  CHECK(json.at("arguments").get<std::vector<std::string>>() == invocation.arguments);
  CHECK(json.at("commit").is_null());
  invocation.commit = "4c0ffee";
  CHECK(detail::to_json(invocation).at("commit") == "4c0ffee");
  invocation.settings = {{"batch", "2", "headroom.toml"}};
  json = detail::to_json(invocation, {{"seq", "8", "default"}});
  CHECK(json.at("settings").size() == 2);
  CHECK(json.at("settings")[1].at("name") == "seq");
}

TEST_CASE("what no command line asked for repeats none") {
  CHECK(detail::to_json(Invocation{"0.1.0", "4c0ffee", {}}).is_null());
}
