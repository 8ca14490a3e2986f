// Arbitrary JSON as a machine's profile or datasheet gives an error, or a machine that can be
// written, reported and predicted on, with times that are finite.
#include <cmath>
#include <string_view>

#include "fuzz_target.h"
#include "headroom/report.h"

using namespace headroom;

namespace {

void predict_on(const MachineProfile& machine) {
  static const Model kModel = load_model("bert-tiny");
  AnalyzeReport report = make_analyze_report(kModel, {});
  add_prediction(report, machine, {});
  if (!std::isfinite(report.time->total_s) || report.time->total_s < 0) std::abort();
  (void)render(report, {Format::json, Detail::operators, 0, Colour::off});
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  (void)test::accepts([&] {
    const MachineProfile machine = profile_from_json(text, "file");
    (void)profile_from_json(profile_to_json(machine), "written again");
    (void)render(machine, {});
    (void)test::accepts([&] { predict_on(machine); });
  });
  return 0;
}
