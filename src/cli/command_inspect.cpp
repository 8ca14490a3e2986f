// headroom inspect PATH: what a model's files hold, reconciled with what its config says.
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

constexpr int kUnexplained = 1;

}  // namespace

void add_inspect(CLI::App& app, int& status) {
  auto options = std::make_shared<InspectOptions>();
  CLI::App* command =
      app.add_subcommand("inspect", "Lay the tensors of a model's files beside its config");
  command
      ->add_option("path", options->path,
                   "A safetensors or GGUF file, an index.json, or a folder with any of them")
      ->type_name("PATH")
      ->required();
  add_output_options(*command, options->output);
  command->footer(
      "Examples:\n"
      "  headroom inspect ./my-model\n"
      "  headroom inspect model-Q4_K_M.gguf\n"
      "  headroom inspect ./my-model/model.safetensors.index.json --format json\n"
      "\n"
      "Exit status: 1 when a tensor or a weight is left unexplained.");
  command->callback([options, &status] {
    const Inspection inspection = inspect(options->path);
    write_output(render(inspection, render_options(options->output, Detail::summary)),
                 inspection.notes, options->output);
    if (!inspection.is_explained()) status = kUnexplained;
  });
}

}  // namespace headroom::cli
