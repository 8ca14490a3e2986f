// headroom models: what the stores of other programs on this machine hold.
#include <memory>

#include "commands.h"
#include "options.h"

namespace headroom::cli {
namespace {

void list_models(const OutputOptions& output) {
  const LocalModelsReport report = make_local_models_report(list_local_models());
  std::vector<std::string> notes = report.notes;
  if (report.models.empty()) {
    notes.emplace_back(
        "no models in the Hugging Face cache, Ollama's store or LM Studio's folders");
  }
  write_output(render(report, render_options(output, Detail::summary)), notes, output);
}

}  // namespace

void add_models(Command root) {
  auto output = std::make_shared<OutputOptions>();
  Command command =
      root.add_command("models", "List the models that other programs keep on this machine");
  add_output_options(command, *output);
  command.set_footer(
      "Stores: the Hugging Face cache ($HF_HUB_CACHE, $HF_HOME), Ollama ($OLLAMA_MODELS) and LM "
      "Studio.\n"
      "Their names are MODEL arguments of every command.\n"
      "\n"
      "Examples:\n"
      "  headroom models\n"
      "  headroom models --format json");
  command.on_run([output] { list_models(*output); });
}

}  // namespace headroom::cli
