// Comparisons of what lies in files: headroom's own two, or another engine's measurements.
#include <fmt/format.h>

#include "compare_command.h"
#include "headroom/error.h"
#include "json_text.h"
#include "own_machine.h"
#include "run_options.h"

namespace headroom::cli {
namespace {

/// What a foreign file says of its run takes the place of options that were not given; what it does
/// not say has to be given.
void take_over(const RunIdentity& identity, CompareCommand& command) {
  if (identity.phase) command.run.phase = *identity.phase;
  if (identity.batch_size) command.request.batch_size = *identity.batch_size;
  if (identity.seq_len) command.request.seq_len = identity.seq_len;
  if (identity.enc_seq_len) command.request.enc_seq_len = identity.enc_seq_len;
  if (identity.past_len) command.request.past_len = identity.past_len;
  if (identity.new_tokens) command.run.new_tokens = *identity.new_tokens;
  if (!command.request.seq_len) {
    throw Error(ErrorCode::invalid_input, "does not say how long the prompt was",
                command.import_file, "give --seq, and --batch and --new-tokens where they differ");
  }
  const std::int64_t new_tokens = command.run.new_tokens;
  if (new_tokens < kNewTokens.least || new_tokens > kNewTokens.most) {
    throw Error(ErrorCode::invalid_input,
                fmt::format("says that {} tokens were generated", new_tokens), command.import_file,
                fmt::format("{} to {} can be predicted", kNewTokens.least, kNewTokens.most));
  }
}

Comparison compare_one(Figured measured, CompareCommand command) {
  take_over(measured.identity, command);
  WorkloadRequest request = command.request;
  request.phase = first_pass(command.run.phase);
  AnalyzeReport report = make_analyze_report(load_model(command.subjects.front()), request);
  const MachineProfile machine = machine_named(command.machine, command.run.backend);
  add_prediction(report, machine, time_request(command.run));
  // Names of models, threads and of what else a file says differently are the user's to match.
  measured.identity = {};
  measured.rss_before_bytes.reset();
  Comparison comparison = compare(predicted_figures(report), measured, command.options);
  comparison.machine = fmt::format("{} ({}), measured by {}", machine.name,
                                   name_of(report.time->basis), measured.engine);
  return comparison;
}

}  // namespace

Comparison compare_files(const CompareCommand& command) {
  const std::string& a = command.subjects[0];
  const std::string& b = command.subjects[1];
  const Figured predicted = predicted_from_json(detail::read_text_file(a), a);
  const Figured measured = measured_from_json(detail::read_text_file(b), b);
  Comparison comparison = compare(predicted, measured, command.options);
  comparison.machine = fmt::format("predicted in {}, measured by {} in {}", a, measured.engine, b);
  return comparison;
}

std::vector<Comparison> compare_import(const CompareCommand& command) {
  const std::string& file = command.import_file;
  std::vector<Comparison> comparisons;
  for (Figured& measured : import_measurements(detail::read_text_file(file), file)) {
    comparisons.push_back(compare_one(std::move(measured), command));
  }
  return comparisons;
}

}  // namespace headroom::cli
