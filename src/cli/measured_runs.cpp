#include "measured_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string_view>

#include "command_line.h"
#include "headroom/error.h"
#include "headroom/machine_names.h"
#include "imported_runs.h"
#include "json_text.h"
#include "plan_options.h"
#include "plan_violations.h"
#include "run_figures.h"
#include "serve_command.h"

namespace headroom::cli {
namespace {

using Words = std::vector<std::string>;

/// 2^60: a million terabytes.
constexpr double kMostBytes = 1152921504606846976.0;

[[noreturn]] void fail(const std::string& where, const std::string& message) {
  throw Error(
      ErrorCode::invalid_input, message, where,
      R"(a line is {"command": ["fit", "MODEL", …], "time_s": 0.281} or )"
      R"({"command": ["serve", "MODEL", …], "output_tokens_per_s": 5200}, with other figures )"
      R"(("ttft_s", "tpot_s", "tokens_per_s") or an "import": "FILE" in their place, and an )"
      R"(optional "memory_bytes" and "name")");
}

/// Commands whose predictions can be measured.
enum class Predicting { fit, serve };

/// A command's words after its name, without its machine.
struct MeasuredCommand {
  Predicting command = Predicting::fit;
  Words words;
};

/// Throws if `command` is none of them, or names another machine.
MeasuredCommand measured_command(const nlohmann::json& command, const std::string& machine,
                                 const std::string& where) {
  if (!command.is_array()) fail(where, "\"command\" is not a list of words");
  Words words;
  for (const nlohmann::json& word : command) {
    if (!word.is_string()) fail(where, "\"command\" is not a list of words");
    words.push_back(word.get<std::string>());
  }
  if (!words.empty() && words.front() == "headroom") words.erase(words.begin());
  const bool served = !words.empty() && words.front() == "serve";
  if (words.empty() || (words.front() != "fit" && !served)) {
    fail(where, "\"command\" is neither a fit nor a serve command, which could be predicted");
  }
  words.erase(words.begin());
  for (const std::string_view help : {"-h", "--help"}) {
    if (std::ranges::find(words, help) != words.end()) fail(where, "\"command\" asks for help");
  }
  constexpr std::string_view kOption = "--machine";
  for (auto word = words.begin(); word != words.end();) {
    const bool joined = word->starts_with("--machine=");
    if (!joined && *word != kOption) {
      ++word;
      continue;
    }
    const auto next = word + 1;
    if (!joined && next == words.end()) fail(where, "--machine has no value");
    const std::string name = joined ? word->substr(kOption.size() + 1) : *next;
    if (name != machine && machine_meant(name) != machine) {
      fail(where, fmt::format("the run is of {}, not of {}", name, machine));
    }
    word = words.erase(word, joined ? next : next + 1);
  }
  return {served ? Predicting::serve : Predicting::fit, words};
}

/// A plan and its load.
struct FitRun {
  PlanQuestion question;
  PlanRequest request;
};

/// The planner's question of these words, with the load that was measured.
FitRun fit_run(const Words& words, const StatedLoad& load) {
  Application parser("headroom", "", "");
  PlanOptions options;
  Command fit = parser.root().add_command("fit", "");
  add_plan_options(fit, options);
  Words arguments{"fit"};
  arguments.insert(arguments.end(), words.begin(), words.end());
  parser.run(arguments);
  if (load.batch_size) options.batch_size = load.batch_size;
  if (load.seq_len) options.seq_len = load.seq_len;
  refuse_ignored_options(options);
  options.engine = kFittedEngine;
  return {question_of(options), request_of(options)};
}

double positive(const nlohmann::json& line, std::string_view key, const std::string& where) {
  const nlohmann::json& value = line.at(key);
  if (!value.is_number() || !(value.get<double>() > 0)) {
    fail(where, fmt::format("\"{}\" is not a number above 0", key));
  }
  return value.get<double>();
}

bool has_figure(Predicting command, const RunFigureInfo& figure) {
  if (figure.key.empty()) return false;
  return command == Predicting::fit ? figure.of_fit.has_value() : figure.of_serve.has_value();
}

/// Throws for keys that no line with this command has.
void require_known_keys(const nlohmann::json& line, Predicting command, const std::string& where) {
  std::vector<std::string_view> known{"command", "memory_bytes", "name"};
  if (line.contains("import")) {
    known.emplace_back("import");
  } else {
    for (const RunFigureInfo& one : run_figures()) {
      if (has_figure(command, one)) known.push_back(one.key);
    }
  }
  for (const auto& [key, value] : line.items()) {
    if (std::ranges::find(known, key) != known.end()) continue;
    fail(where, fmt::format("has an unknown key \"{}\"", key));
  }
}

/// The figures that the line states itself. Throws without one.
std::vector<ImportedRun> stated_runs(const nlohmann::json& line, Predicting command,
                                     const std::string& where) {
  ImportedRun run;
  std::string keys;
  for (const RunFigureInfo& one : run_figures()) {
    if (!has_figure(command, one)) continue;
    keys += fmt::format("{}\"{}\"", keys.empty() ? "" : ", ", one.key);
    if (!line.contains(one.key)) continue;
    run.figures.push_back({one.figure, positive(line, one.key, where), 0});
  }
  if (run.figures.empty()) fail(where, fmt::format("has none of {}", keys));
  return {run};
}

/// A path in a line is relative to the file of runs.
std::string path_in(const nlohmann::json& line, const std::string& runs, const std::string& where) {
  if (!line["import"].is_string()) fail(where, "\"import\" is not the name of a file");
  const std::filesystem::path path(line["import"].get<std::string>());
  return (std::filesystem::path(runs).parent_path() / path).string();
}

std::vector<ImportedRun> runs_of(const nlohmann::json& line, Predicting command,
                                 const std::string& runs, const std::string& where) {
  require_known_keys(line, command, where);
  if (!line.contains("import")) return stated_runs(line, command, where);
  const std::string file = path_in(line, runs, where);
  return command == Predicting::fit ? runs_for_fit(file) : runs_for_serve(file);
}

std::vector<MeasuredRun> predicted_runs(const MeasuredCommand& command, const ImportedRun& run) {
  std::vector<MeasuredRun> runs;
  switch (command.command) {
    case Predicting::fit: {
      const FitRun fit = fit_run(command.words, run.load);
      for (const MeasuredFigure& figure : run.figures) {
        runs.push_back(measured_plan(fit.question, fit.request, figure));
      }
      break;
    }
    case Predicting::serve: {
      const ServedRun served = served_run(command.words, run.load);
      for (const MeasuredFigure& figure : run.figures) {
        runs.push_back(measured_service(served, figure));
      }
      break;
    }
  }
  return runs;
}

std::string name_in(const nlohmann::json& line, const Words& words, const std::string& where) {
  if (!line.contains("name")) return fmt::format("{}", fmt::join(words, " "));
  if (!line["name"].is_string()) fail(where, "\"name\" is not a text");
  return line["name"];
}

/// Numbers the runs of a line with several.
void name_runs(const std::string& name, std::vector<MeasuredRun>& runs) {
  for (std::size_t i = 0; i < runs.size(); ++i) {
    runs[i].name = runs.size() == 1 ? name : fmt::format("{} ({})", name, i + 1);
  }
}

std::optional<Integer> memory_in(const nlohmann::json& line, const std::string& where) {
  if (!line.contains("memory_bytes")) return std::nullopt;
  const double bytes = positive(line, "memory_bytes", where);
  if (bytes > kMostBytes) fail(where, "\"memory_bytes\" is more than any device holds");
  return static_cast<Integer>(bytes);
}

std::vector<MeasuredRun> read_line(const nlohmann::json& line, const std::string& machine,
                                   const std::string& file, const std::string& where) {
  if (!line.is_object()) fail(where, "is not an object");
  if (!line.contains("command")) fail(where, "has no \"command\"");
  MeasuredCommand command = measured_command(line["command"], machine, where);
  const std::string name = name_in(line, command.words, where);
  const std::optional<Integer> memory = memory_in(line, where);
  command.words.insert(command.words.end(), {"--machine", machine});
  std::vector<MeasuredRun> runs;
  try {
    for (const ImportedRun& run : runs_of(line, command.command, file, where)) {
      for (MeasuredRun& one : predicted_runs(command, run)) runs.push_back(std::move(one));
    }
  } catch (const IllegalPlan& error) {
    const Error worded = with_options(error);
    throw Error(worded.code(), worded.what(), where, worded.hint());
  } catch (const Error& error) {
    if (error.where().starts_with(where)) throw;
    throw Error(error.code(), error.what(), where, error.hint());
  }
  name_runs(name, runs);
  runs.front().memory_bytes = memory;
  return runs;
}

}  // namespace

std::vector<MeasuredRun> read_measured_runs(const std::string& file, const std::string& machine) {
  const std::string text = detail::read_text_file(file);
  std::vector<MeasuredRun> runs;
  std::string_view rest = text;
  for (std::size_t number = 1; !rest.empty(); ++number) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    const std::string where = fmt::format("{}:{}", file, number);
    for (MeasuredRun& run : read_line(detail::parse_json(line, where), machine, file, where)) {
      runs.push_back(std::move(run));
    }
  }
  if (runs.empty()) fail(file, "holds no run");
  return runs;
}

}  // namespace headroom::cli
