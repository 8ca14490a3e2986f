// headroom inspect PATH: the tensors of a model's files, reconciled with its config.
#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <system_error>

#include "commands.h"
#include "headroom/error.h"
#include "headroom/model_source.h"
#include "options.h"
#include "output.h"

namespace headroom::cli {
namespace {

struct InspectOptions {
  std::string path;
  OutputOptions output;
};

void refuse_preset(const std::string& name) {
  if (!find_preset(name)) return;
  throw_invalid_input(fmt::format("{} is a preset, which has no files to inspect", name),
                      "name a file or folder of weights, or a model of `headroom models`");
}

/// The files of `name`: a path, or a model of a local store, which a note says.
Inspection inspect_named(const std::string& name) {
  std::error_code failed;
  if (std::filesystem::exists(name, failed)) return inspect(name);
  const auto local = find_local_model(list_local_models(), name);
  if (!local) {
    refuse_preset(name);
    return inspect(name);
  }
  Inspection inspection = inspect(local->path);
  inspection.notes.push_back(
      fmt::format("{} was taken from {}", local->name, description_of(local->store)));
  return inspection;
}

void run_inspect(const InspectOptions& options, int& status) {
  ReportOutput output(options.output);
  const Inspection inspection = inspect_named(options.path);
  output.write(render(inspection, render_options(options.output, Detail::summary)),
               inspection.notes);
  if (!inspection.is_explained()) status = 1;
}

}  // namespace

void add_inspect(Command root, int& status) {
  auto options = std::make_shared<InspectOptions>();
  Command command =
      root.add_command("inspect", "Reconcile the tensors of a model's files with its config");
  command.add_argument(
      "path", "PATH", [options](const std::string& path) { options->path = path; },
      "A safetensors or GGUF file, an index.json, a folder with any of them, or a name of "
      "`headroom models`");
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
