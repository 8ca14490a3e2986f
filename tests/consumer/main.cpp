// Uses only the installed library, like any other project.
#include <cstdio>

#include "headroom/model_source.h"
#include "headroom/report.h"

int main() {
  using namespace headroom;
  const AnalyzeReport report = make_analyze_report(load_model("bert-base"), {});
  const bool as_published = report.figures.parameters == 109'482'240 &&
                            report.figures.forward.matrix_flops == 22'348'431'360;
  std::fputs(render(report, {}).c_str(), stdout);
  return as_published ? 0 : 1;
}
