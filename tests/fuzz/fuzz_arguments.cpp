// Arbitrary lines as the arguments of the analytic commands give an error or a report, and write no
// file but those that they name, in a temporary folder.
#include <string>
#include <vector>

#include "command_line.h"
#include "commands.h"
#include "fuzz_target.h"
#include "headroom/error.h"
#include "sweep_axis.h"
#include "temporary_file.h"

using namespace headroom;

namespace {

std::vector<std::string> lines_of(const std::uint8_t* data, std::size_t size) {
  std::vector<std::string> lines(1);
  for (std::size_t i = 0; i < size; ++i) {
    if (data[i] == '\n') {
      lines.emplace_back();
    } else if (data[i] != 0) {
      lines.back() += static_cast<char>(data[i]);
    }
  }
  return lines;
}

/// Reads a grid as `sweep` does, without the sweep.
void read_grid(const std::string& text) {
  cli::Application application("headroom", "", "");
  cli::Command command = application.root().add_command("sweep", "");
  const auto set = [](const std::string& grid) { (void)cli::parse_axis("--seq", grid); };
  command.add_text("--seq", "GRID", set, "");
  command.on_run([] {});
  application.run({"sweep", "--seq=" + text});
}

void run(const std::vector<std::string>& arguments) {
  int status = 0;
  cli::Application application("headroom", "", "");
  cli::add_analyze(application.root());
  cli::add_explain(application.root(), status);
  cli::add_diff(application.root());
  cli::add_fit(application.root(), status);
  cli::add_plan(application.root(), status);
  cli::add_complexity(application.root());
  cli::add_machines(application.root());
  cli::add_presets(application.root());
  cli::add_completion(application.root());
  try {
    application.run(arguments);
  } catch (const Error& error) {
    // A file that is missing is no defect.
    if (error.code() != ErrorCode::missing_resource) throw;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  test::move_to_temporary_folder();
  const std::vector<std::string> lines = lines_of(data, size);
  for (const std::string& line : lines) {
    (void)test::accepts([&] { read_grid(line); });
    if (line.find('/') != std::string::npos || line == "--measure") return 0;
  }
  (void)test::accepts([&] { run(lines); });
  return 0;
}
