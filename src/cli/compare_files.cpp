// Comparisons of runs in files.
#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <iterator>
#include <string_view>

#include "command_line.h"
#include "compare_command.h"
#include "efficiency_options.h"
#include "headroom/compare.h"
#include "headroom/engine_log.h"
#include "headroom/error.h"
#include "headroom/predict.h"
#include "json_text.h"
#include "options.h"
#include "own_machine.h"
#include "run_options.h"
#include "type_options.h"
#include "weight_words.h"

namespace headroom::cli {
namespace {

/// Options of the command that were given, by name: "--batch".
std::vector<Option> given_options(const CompareCommand& command,
                                  std::initializer_list<std::string_view> names) {
  std::vector<Option> found;
  const RunOptions& run = command.run_options;
  for (const auto* options : {&command.workload, &run.generate_only, &run.others}) {
    std::ranges::copy_if(*options, std::back_inserter(found), [&](const Option& option) {
      return option.is_given() && std::ranges::find(names, option.name()) != names.end();
    });
  }
  return found;
}

/// Throws Error{invalid_input} for options whose values the file states.
void refuse_stated(const std::vector<Option>& options) {
  refuse_given(options, "is stated by the imported file", "leave it out");
}

/// Throws Error{invalid_input} for a given option whose value the file states.
void refuse_stated_options(const RunIdentity& identity, const CompareCommand& command) {
  const auto refuse = [&](bool is_stated, std::string_view name) {
    if (!is_stated) return;
    refuse_stated(given_options(command, {name}));
  };
  refuse(identity.phase.has_value(), "--phase");
  refuse(identity.batch_size.has_value(), "--batch");
  refuse(identity.seq_len.has_value(), "--seq");
  refuse(identity.enc_seq_len.has_value(), "--enc-seq");
  refuse(identity.past_len.has_value(), "--past");
  refuse(identity.new_tokens.has_value(), "--new-tokens");
  refuse(identity.attention.has_value(), "--attention");
  refuse(identity.logits.has_value(), "--logits");
  const std::optional<DType> asked = command.request.dtype;
  refuse(identity.dtype && asked && name_of(*asked) != *identity.dtype, "--dtype");
}

/// A processor's profile has times by number of threads: those that ran. Throws
/// Error{invalid_input} for options of a profile with a machine of rates.
void apply_threads(const RunIdentity& identity, const MachineProfile& machine,
                   CompareCommand& command) {
  if (!std::holds_alternative<MeasuredRates>(machine.rates)) {
    refuse_given(given_options(command, {"--threads", "--backend"}),
                 fmt::format("has no effect on {}, which no calibration measured", machine.name),
                 "leave it out");
    return;
  }
  if (!identity.threads) return;
  refuse_stated(given_options(command, {"--threads"}));
  command.run.threads = static_cast<int>(*identity.threads);
}

/// All requests of an offline run come at once; the options may say how many ran together.
void apply_requests(const ComparedRun& measured, CompareCommand& command) {
  const RunIdentity& identity = measured.identity;
  if (!measured.time_of_all_requests || identity.batch_size || !identity.requests) return;
  if (given_options(command, {"--batch"}).empty()) command.request.batch_size = *identity.requests;
}

/// Sets `value` to the choice that the file names, if it names one of headroom's.
template <class Value>
void apply_word(const std::optional<std::string>& stated, const Choices<Value>& choices,
                const char* setting, std::optional<Value>& value) {
  for (const auto& [word, choice] : choices) {
    if (stated != word) continue;
    value = choice;
    count_as_given({setting});
  }
}

/// Replaces types and choices of the command by those that the file states. A type of the weights
/// that the command gives is kept: engines name theirs differently.
void apply_stated_words(const RunIdentity& identity, WorkloadRequest& request) {
  apply_word(identity.attention, attention_choices(), "attention", request.attention);
  apply_word(identity.logits, logits_choices(), "logits", request.logits);
  apply_word(identity.dtype, dtype_choices(), "dtype", request.dtype);
  const auto weights = detail::weight_form_named(identity.weights.value_or(""));
  if (!request.weights && weights) {
    request.weights = weights;
    count_as_given({"weights"});
  }
}

/// Replaces the command's options by what the imported file states of its run; what it does not
/// state must be given.
void apply_identity(const RunIdentity& identity, CompareCommand& command) {
  refuse_stated_options(identity, command);
  if (identity.phase) command.run.phase = *identity.phase;
  if (identity.batch_size) command.request.batch_size = *identity.batch_size;
  if (identity.seq_len) command.request.seq_len = identity.seq_len;
  if (identity.enc_seq_len) command.request.enc_seq_len = identity.enc_seq_len;
  if (identity.past_len) command.request.past_len = identity.past_len;
  if (identity.global_tokens > 0) command.request.global_tokens = identity.global_tokens;
  if (identity.new_tokens) command.run.new_tokens = *identity.new_tokens;
  apply_stated_words(identity, command.request);
  if (!command.request.seq_len) {
    throw Error(ErrorCode::invalid_input, "does not state the prompt length", command.import_file,
                "add --seq, and --batch and --new-tokens if they differ from the defaults");
  }
  const std::int64_t new_tokens = command.run.new_tokens;
  if (new_tokens < kNewTokens.least || new_tokens > kNewTokens.most) {
    throw Error(ErrorCode::invalid_input, fmt::format("states {} generated tokens", new_tokens),
                command.import_file,
                fmt::format("predictions take {} to {}", kNewTokens.least, kNewTokens.most));
  }
}

Comparison compare_one(ComparedRun measured, CompareCommand command) {
  apply_identity(measured.identity, command);
  apply_requests(measured, command);
  WorkloadRequest request = command.request;
  request.phase = first_pass(command.run.phase);
  const MachineProfile machine = machine_named(command.machine, command.run.backend);
  apply_threads(measured.identity, machine, command);
  Model model = command.reading.load(command.subjects.front());
  if (command.run.phase == MeasuredPhase::generate) {
    require_generates(model.spec);
    request = prompt_request(request);
  }
  if (!request.attention) request.attention = attention_on(machine, model.spec);
  AnalyzeReport report = make_analyze_report(std::move(model), request);
  TimeRequest time = time_request(command.run);
  time.engine = measured.kernels;
  add_prediction(report, machine, time);
  // Engines name models and types differently: matching the file to the model is up to the user.
  measured.identity = {};
  measured.rss_before_bytes.reset();
  Comparison comparison = compare(predicted_run(report), measured, command.options);
  for (std::string& note : notes_on_config(report.model.spec)) {
    comparison.notes.push_back(std::move(note));
  }
  if (!report.model.name_note.empty()) comparison.notes.push_back(report.model.name_note);
  comparison.machine = fmt::format("{} ({}), measured by {}", machine.name,
                                   name_of(report.time->basis), measured.engine);
  return comparison;
}

/// A start-up log states everything but the type of the weights, and no times of operators.
void refuse_workload(const CompareCommand& command) {
  refuse_given(command.operators_only, "has no effect on a start-up log, which prints no times",
               "leave it out");
  std::vector<Option> others;
  for (const auto* options : {&command.workload, &command.run_options.others}) {
    for (const Option& option : *options) {
      if (option.name() != "--weights") others.push_back(option);
    }
  }
  refuse_given(others, "has no effect on a start-up log, which states its own run", "leave it out");
}

std::vector<std::string> notes_on_log(const EngineLog& log) {
  std::vector<std::string> notes;
  if (log.engine == LogEngine::vllm && !log.tensor_parallel) {
    notes.emplace_back("the log states no tensor_parallel_size: one device is assumed");
  }
  if (log.engine == LogEngine::vllm && log.cache_tokens && !log.cache_bytes) {
    notes.emplace_back("the log states no bytes of the KV-cache, so its tokens are not predicted");
  }
  if (log.engine == LogEngine::llama_cpp && log.cache_bytes && !log.context) {
    notes.emplace_back("the log states no n_ctx, so its KV-cache is not predicted");
  }
  return notes;
}

/// The device that --machine names; by default none, since logs come from other machines.
std::optional<DeviceRates> device_of(const CompareCommand& command, const Model& model,
                                     LogEngine engine) {
  if (command.machine == CompareCommand{}.machine) return std::nullopt;
  if (engine == LogEngine::llama_cpp) {
    throw_invalid_input(
        "--machine has no effect on a log of llama.cpp: no device decides its sizes",
        "leave it out");
  }
  const MachineProfile machine = machine_named(command.machine, command.run.backend);
  const DType dtype = stored_16_bit_type(model.spec).value_or(DType::bfloat16);
  return device_rates(machine, Purpose::serve, dtype);
}

Comparison compare_log(const std::string& text, const CompareCommand& command) {
  refuse_workload(command);
  const EngineLog log = read_engine_log(text, command.import_file);
  std::vector<std::string> notes = notes_on_log(log);
  Model model = with_stored_types(command.reading.load(command.subjects.front()), notes);
  if (command.request.weights) {
    model.spec = stored_as(std::move(model.spec), *command.request.weights);
  }
  CompareOptions options = command.options;
  for (const Quantity quantity : {Quantity::weight_bytes, Quantity::kv_cache_bytes}) {
    options.tolerances.emplace(quantity, kPrintedTolerance);
  }
  const std::optional<DeviceRates> device = device_of(command, model, log.engine);
  Comparison comparison =
      compare(predicted_start(model, log, device), measured_start(log), options);
  comparison.workload = describe(log);
  if (command.request.weights) {
    comparison.run.weights = name_of(*command.request.weights);
    comparison.workload += fmt::format(" · {} weights", *comparison.run.weights);
  }
  comparison.machine = fmt::format("{}{}, as {} printed it", device ? device->name + ", " : "",
                                   command.import_file, name_of(log.engine));
  for (std::string& note : notes) comparison.notes.push_back(std::move(note));
  for (std::string& note : notes_on_config(model.spec)) comparison.notes.push_back(std::move(note));
  return comparison;
}

}  // namespace

Comparison compare_files(const CompareCommand& command) {
  const std::string& a = command.subjects[0];
  const std::string& b = command.subjects[1];
  const ComparedRun predicted = import_prediction(detail::read_text_file(a), a);
  const ComparedRun measured = import_measurement(detail::read_text_file(b), b);
  Comparison comparison = compare(predicted, measured, command.options);
  comparison.machine = fmt::format("{} (predicted), {} in {} (measured)", a, measured.engine, b);
  return comparison;
}

std::vector<Comparison> compare_import(const CompareCommand& command) {
  const std::string& file = command.import_file;
  const std::string text = detail::read_text_file(file);
  if (is_engine_log(text)) return {compare_log(text, command)};
  refuse_given(given_options(command, {"--runs"}), "has no effect on a run in a file",
               "leave it out");
  if (!command.variations.empty()) {
    throw_invalid_input("an imported run has one value of each setting",
                        "give options one value each");
  }
  std::vector<ComparedRun> runs = import_runs(text, file);
  const auto lacks_operators = [](const ComparedRun& run) { return run.operator_times.empty(); };
  if (std::ranges::all_of(runs, lacks_operators)) {
    refuse_given(command.operators_only, "has no effect on a file without times of operators",
                 "leave it out");
  }
  std::vector<Comparison> comparisons;
  comparisons.reserve(runs.size());
  for (ComparedRun& measured : runs) {
    comparisons.push_back(compare_one(std::move(measured), command));
  }
  return comparisons;
}

}  // namespace headroom::cli
