// headroom models: what the stores of other programs on this machine hold, and what of it fits.
#include <fmt/format.h>

#include <memory>

#include "commands.h"
#include "headroom/error.h"
#include "plan_options.h"

namespace headroom::cli {
namespace {

struct ModelsCommand {
  bool fit = false;
  PlanOptions plan;  ///< machine and context
  std::vector<Option> fit_only;
  OutputOptions output;
};

/// Notes a context that memory holds, but for which the model was not trained.
void note_positions(const LocalModel& model, const PlanQuestion& question,
                    std::vector<std::string>& notes) {
  Workload workload;
  workload.seq_len = question.load.seq_len;
  for (const std::string& note : notes_on_positions(workload, question.model.spec)) {
    notes.push_back(fmt::format("{}: {}", model.name, note));
  }
}

LocalFit fit_of(const LocalModel& model, PlanOptions options, std::vector<std::string>& notes) {
  options.model = model.path;
  const FitReport report =
      make_fit_report(question_of(options, SpeedNeed::optional), request_of(options));
  note_positions(model, report.question, notes);
  return {report.result.figures.memory.total(), report.result.fits, report.result.largest_context};
}

/// Fits every model that can be read; a note says why another cannot.
void add_fits(const PlanOptions& options, LocalModelsReport& report) {
  report.machine = options.machine;
  for (LocalModelSummary& summary : report.models) {
    try {
      summary.fit = fit_of(summary.model, options, report.notes);
    } catch (const Error& error) {
      if (error.code() == ErrorCode::internal) throw;
      report.notes.push_back(fmt::format("{}: {}", summary.model.name, error.what()));
    }
  }
}

void list_models(ModelsCommand& command) {
  if (!command.fit) {
    refuse_given(command.fit_only, "is about what fits", "add --fit, or leave it out");
  }
  LocalModelsReport report = make_local_models_report(list_local_models());
  if (command.fit) add_fits(command.plan, report);
  std::vector<std::string> notes = report.notes;
  if (report.models.empty()) {
    notes.emplace_back(
        "no models in the Hugging Face cache, Ollama's store or LM Studio's folders");
  }
  write_output(render(report, render_options(command.output, Detail::summary)), notes,
               command.output);
}

}  // namespace

void add_models(Command root) {
  auto options = std::make_shared<ModelsCommand>();
  options->plan.machine = "here";
  Command command =
      root.add_command("models", "List the models that other programs keep on this machine");
  command.add_flag("--fit", options->fit,
                   "Show which of them fit on a device, and the longest context");
  options->fit_only.push_back(
      command.add_text("--machine", "MACHINE", options->plan.machine,
                       "The device: here, a name of `headroom machines`, or a file"));
  options->fit_only.push_back(add_count(
      command, "--seq,-s", [options](std::int64_t n) { options->plan.seq_len = n; },
      "Tokens that the KV-cache has room for (4096, or the model's positions if fewer)"));
  add_output_options(command, options->output);
  command.set_footer(
      "Stores: the Hugging Face cache ($HF_HUB_CACHE, $HF_HOME), Ollama ($OLLAMA_MODELS) and LM "
      "Studio.\n"
      "Their names are MODEL arguments of every command.\n"
      "\n"
      "Examples:\n"
      "  headroom models\n"
      "  headroom models --fit\n"
      "  headroom models --fit --machine rtx-4090 --seq 32K\n"
      "  headroom models --format json");
  command.on_run([options] { list_models(*options); });
}

}  // namespace headroom::cli
