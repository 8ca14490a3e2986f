// Arbitrary text as a start-up log or a benchmark of any engine, or as a pair {"prediction",
// "measurement"}, gives an error or runs that can be compared and reported.
#include <nlohmann/json.hpp>
#include <string_view>

#include "fuzz_target.h"
#include "headroom/compare.h"
#include "headroom/engine_log.h"
#include "headroom/report.h"

using namespace headroom;

namespace {

void compare_and_report(const ComparedRun& predicted, const ComparedRun& measured) {
  const Comparison comparison = compare(predicted, measured, {});
  for (const Format format : {Format::json, Format::csv, Format::table}) {
    (void)render({&comparison, 1}, {format, Detail::operators, 0, Colour::off});
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  (void)test::accepts([&] {
    const EngineLog log = read_engine_log(text, "file");
    (void)describe(log);
    const ComparedRun printed = measured_start(log);
    compare_and_report(printed, printed);
    static const Model model = load_model("gpt2");
    compare_and_report(predicted_start(model, log), printed);
  });
  (void)test::accepts([&] {
    for (const ComparedRun& run : import_runs(text, "file")) {
      (void)test::accepts([&] { compare_and_report(run, run); });
    }
  });
  const auto pair = nlohmann::json::parse(text, nullptr, false);
  if (!pair.is_object() || !pair.contains("prediction") || !pair.contains("measurement")) return 0;
  const auto text_of = [&](const char* key) {
    return pair.at(key).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  };
  (void)test::accepts([&] {
    compare_and_report(import_prediction(text_of("prediction"), "prediction"),
                       import_measurement(text_of("measurement"), "measurement"));
  });
  return 0;
}
