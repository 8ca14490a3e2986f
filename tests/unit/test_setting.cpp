// Settings in the text of errors.
#include <doctest/doctest.h>

#include "headroom/error.h"
#include "setting_format.h"

using namespace headroom;

namespace {

std::string as_option(Setting setting) { return "--" + std::string(name_of(setting)); }

}  // namespace

TEST_CASE("a quoted setting is restated in the words of a front end") {
  const std::string text =
      fmt::format("leave out {}, or set {} to train", Setting::past_len, Setting::phase);
  CHECK(text == "leave out `past_len`, or set `phase` to train");
  CHECK(restate_settings(text, as_option) == "leave out --past_len, or set --phase to train");
}

TEST_CASE("text in backticks that is not a setting stays") {
  for (const char* const text : {"run `headroom calibrate`", "`phases`", "a ` alone", "``", ""}) {
    CAPTURE(text);
    CHECK(restate_settings(text, as_option) == text);
  }
}
