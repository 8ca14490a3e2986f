#include "measured_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>

#include "command_line.h"
#include "headroom/error.h"
#include "json_text.h"
#include "plan_options.h"
#include "plan_violations.h"
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
      R"({"command": ["serve", "MODEL", …], "output_tokens_per_s": 5200}, with an optional )"
      R"("memory_bytes" and "name")");
}

/// Commands whose predictions can be measured, with the figure of a line that was.
enum class RunFigure { iteration, throughput };

const char* key_of(RunFigure measured) {
  switch (measured) {
    case RunFigure::iteration:
      return "time_s";
    case RunFigure::throughput:
      break;
  }
  return "output_tokens_per_s";
}

/// A command's words after its name, without its machine.
struct MeasuredCommand {
  RunFigure measured = RunFigure::iteration;
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
    if (name != machine) {
      fail(where, fmt::format("the run is of {}, not of {}", name, machine));
    }
    word = words.erase(word, joined ? next : next + 1);
  }
  return {served ? RunFigure::throughput : RunFigure::iteration, words};
}

/// The simulation of these words; `tokens_per_s` becomes the time of all its requests.
void set_serving(Words words, const std::string& machine, double tokens_per_s, MeasuredRun& run) {
  words.insert(words.end(), {"--machine", machine});
  const ServedRun served = served_run(words);
  run.question = served.question.plan;
  run.request = served.request;
  const ServeFigures figures = simulate(served.question, served.request.choice).figures;
  run.time_s = figures.output_tokens_per_s * figures.duration_s / tokens_per_s;
  run.seconds = [served](const DeviceRates& rates) {
    ServeQuestion question = served.question;
    question.plan.rates = rates;
    return simulate(question, served.request.choice).figures.duration_s;
  };
}

/// The planner's question of these words.
void set_plan(const Words& words, const std::string& machine, MeasuredRun& run) {
  Application parser("headroom", "", "");
  PlanOptions options;
  Command fit = parser.root().add_command("fit", "");
  add_plan_options(fit, options);
  Words arguments{"fit"};
  arguments.insert(arguments.end(), words.begin(), words.end());
  arguments.insert(arguments.end(), {"--machine", machine});
  parser.run(arguments);
  refuse_ignored_options(options);
  run.question = question_of(options);
  run.request = request_of(options);
}

double positive(const nlohmann::json& line, const char* key, const std::string& where) {
  const nlohmann::json& value = line.at(key);
  if (!value.is_number() || !(value.get<double>() > 0)) {
    fail(where, fmt::format("\"{}\" is not a number above 0", key));
  }
  return value.get<double>();
}

MeasuredRun read_run(const nlohmann::json& line, const std::string& machine,
                     const std::string& where) {
  if (!line.is_object()) fail(where, "is not an object");
  if (!line.contains("command")) fail(where, "has no \"command\"");
  const auto [measured, words] = measured_command(line["command"], machine, where);
  const char* const figure = key_of(measured);
  const std::string_view known[] = {"command", figure, "memory_bytes", "name"};
  for (const auto& [key, value] : line.items()) {
    if (std::ranges::find(known, key) == std::end(known)) {
      fail(where, fmt::format("has an unknown key \"{}\"", key));
    }
  }
  if (!line.contains(figure)) fail(where, fmt::format("has no \"{}\"", figure));
  MeasuredRun run;
  run.time_s = positive(line, figure, where);
  if (line.contains("memory_bytes")) {
    const double bytes = positive(line, "memory_bytes", where);
    if (bytes > kMostBytes) fail(where, "\"memory_bytes\" is more than any device holds");
    run.memory_bytes = static_cast<Integer>(bytes);
  }
  run.name = fmt::format("{}", fmt::join(words, " "));
  if (line.contains("name") && line["name"].is_string()) run.name = line["name"];
  try {
    switch (measured) {
      case RunFigure::iteration:
        set_plan(words, machine, run);
        break;
      case RunFigure::throughput:
        set_serving(words, machine, run.time_s, run);
        break;
    }
    const PlanChoice choice = resolve(run.request, run.question.load);
    const Planner planner(run.question.model.spec, run.question.query, run.question.rates);
    require_legal(choice, run.question.load, planner.limits(run.question.load.seq_len));
  } catch (const IllegalPlan& error) {
    const Error worded = with_options(error);
    throw Error(worded.code(), worded.what(), where, worded.hint());
  } catch (const Error& error) {
    throw Error(error.code(), error.what(), where, error.hint());
  }
  return run;
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
    runs.push_back(read_run(detail::parse_json(line, where), machine, where));
  }
  if (runs.empty()) fail(file, "holds no run");
  return runs;
}

}  // namespace headroom::cli
