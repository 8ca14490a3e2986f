// headroom inspect PATH: the tensors of a model's files, reconciled with its config.
#include <memory>

#include "commands.h"
#include "headroom/inspect.h"
#include "options.h"

namespace headroom::cli {
namespace {

struct InspectOptions {
  std::string path;
  OutputOptions output;
};

void run_inspect(const InspectOptions& options, int& status) {
  const Inspection inspection = inspect(options.path);
  write_output(render(inspection, render_options(options.output, Detail::summary)),
               inspection.notes, options.output);
  if (!inspection.is_explained()) status = 1;
}

}  // namespace

void add_inspect(Command root, int& status) {
  auto options = std::make_shared<InspectOptions>();
  Command command =
      root.add_command("inspect", "Reconcile the tensors of a model's files with its config");
  command.add_argument(
      "path", "PATH", [options](const std::string& path) { options->path = path; },
      "A safetensors or GGUF file, an index.json, or a folder with any of them");
  add_output_options(command, options->output);
  command.set_footer(
      "Examples:\n"
      "  headroom inspect ./my-model\n"
      "  headroom inspect model-Q4_K_M.gguf\n"
      "  headroom inspect ./my-model/model.safetensors.index.json --format json\n"
      "\n"
      "Exit status: 1 if a tensor or a weight is unexplained.");
  command.on_run([options, &status] { run_inspect(*options, status); });
}

}  // namespace headroom::cli
