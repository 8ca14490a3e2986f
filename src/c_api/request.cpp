#include "request.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "headroom/error.h"
#include "json_text.h"
#include "similar.h"

namespace headroom::c_api {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kRequest = "request";
constexpr std::string_view kCommand = "command";

[[noreturn]] void refuse(const std::string& key, const std::string& message,
                         const std::string& hint) {
  throw Error(ErrorCode::invalid_input, message, fmt::format("{}#/{}", kRequest, key), hint);
}

/// Parses once with the checks of untrusted JSON, and once for its order of keys.
Json parse(std::string_view text) {
  (void)detail::parse_json(text, std::string(kRequest));
  Json request = Json::parse(text);
  if (!request.is_object()) {
    throw Error(ErrorCode::invalid_input, "must be an object", std::string(kRequest),
                R"(such as {"command": "analyze", "model": "bert-base"})");
  }
  return request;
}

std::string joined_names(const std::vector<std::string>& names) {
  return fmt::format("{}", fmt::join(names, ", "));
}

/// The subcommand of this name. Throws Error{invalid_input} with the names that exist.
const cli::CommandSummary& find_command(const cli::CommandSummary& parent,
                                        const std::string& name) {
  std::vector<std::string> names;
  for (const cli::CommandSummary& command : parent.subcommands) {
    if (command.name == name) return command;
    names.push_back(command.name);
  }
  const std::string guess = detail::did_you_mean(name, names);
  refuse(std::string(kCommand), fmt::format("there is no command \"{}\"", name),
         guess.empty() ? "one of " + joined_names(names) : guess);
}

/// The words of "machines show".
std::vector<std::string> command_words(const Json& request) {
  const auto found = request.find(kCommand);
  if (found == request.end() || !found->is_string()) {
    refuse(std::string(kCommand), "must be the name of a command", R"("command": "analyze")");
  }
  std::istringstream text(found->get<std::string>());
  std::vector<std::string> words;
  for (std::string word; text >> word;) words.push_back(word);
  if (words.empty()) refuse(std::string(kCommand), "is empty", R"("command": "analyze")");
  return words;
}

/// Dashes and underscores are the same.
std::string key_of(std::string name) {
  std::ranges::replace(name, '-', '_');
  return name;
}

std::vector<std::string> keys_of(const cli::OptionSummary& option) {
  std::vector<std::string> keys;
  if (!option.argument.empty()) keys.push_back(key_of(option.argument));
  for (const std::string& name : option.long_names) keys.push_back(key_of(name));
  return keys;
}

const cli::OptionSummary& find_option(const cli::CommandSummary& command, const std::string& key) {
  const std::string name = key_of(key);
  std::vector<std::string> known;
  for (const cli::OptionSummary& option : command.options) {
    const std::vector<std::string> keys = keys_of(option);
    if (std::ranges::find(keys, name) != keys.end()) return option;
    known.insert(known.end(), keys.begin(), keys.end());
  }
  const std::string guess = detail::did_you_mean(name, known);
  refuse(key, fmt::format("{} has no such option", command.name),
         guess.empty() ? "one of " + joined_names(known) : guess);
}

/// False and null stand for a key that is not there.
bool is_given(const Json& value) { return !value.is_null() && value != Json(false); }

/// Turns the values of one key into words of the command line.
class Values {
 public:
  Values(const std::string& key, const cli::OptionSummary& option, Request& request)
      : key_(key), option_(option), request_(request) {}

  void add(const Json& value, std::vector<std::string>& options,
           std::vector<std::string>& positionals) const {
    if (!is_given(value)) return;
    if (!option_.argument.empty()) {
      add_arguments(value, positionals);
    } else if (value.is_boolean()) {
      options.push_back("--" + option_.long_names.front());
    } else {
      options.push_back(fmt::format("--{}={}", option_.long_names.front(), list(value)));
    }
  }

 private:
  void add_arguments(const Json& value, std::vector<std::string>& positionals) const {
    if (!value.is_array()) {
      positionals.push_back(word(value));
      return;
    }
    for (const Json& element : value) positionals.push_back(word(element));
  }

  [[nodiscard]] std::string list(const Json& value) const {
    if (!value.is_array()) return word(value);
    std::vector<std::string> words;
    for (const Json& element : value) words.push_back(word(element));
    return fmt::format("{}", fmt::join(words, ","));
  }

  [[nodiscard]] std::string word(const Json& value) const {
    if (value.is_string()) return value.get<std::string>();
    if (value.is_number()) return value.dump();
    if (value.is_object() && !option_.argument.empty()) {
      return request_.models.emplace_back(value).path();
    }
    refuse(key_, fmt::format("cannot be {}", value.dump()), "give a string or a number");
  }

  const std::string& key_;
  const cli::OptionSummary& option_;
  Request& request_;
};

bool takes_json(const cli::CommandSummary& command) {
  return std::ranges::any_of(command.options, [](const cli::OptionSummary& option) {
    const auto format = std::ranges::find(option.long_names, "format");
    return format != option.long_names.end() &&
           std::ranges::find(option.words, "json") != option.words.end();
  });
}

/// Returns whether the request has a value of the option `name`.
bool has_option(const Json& request, const std::string& name) {
  const auto items = request.items();
  return std::any_of(items.begin(), items.end(), [&name](const auto& item) {
    return key_of(item.key()) == name && is_given(item.value());
  });
}

/// Asks for JSON unless the request says otherwise. Returns whether the command writes JSON.
bool add_format(const Json& request, const cli::CommandSummary& command,
                std::vector<std::string>& options) {
  if (has_option(request, "help") || has_option(request, "help_all")) return false;
  if (has_option(request, "format")) return request.at("format") == "json";
  if (has_option(request, "json")) return true;
  if (!takes_json(command)) return false;
  options.emplace_back("--format=json");
  return true;
}

}  // namespace

Request read_request(std::string_view json, const cli::CommandSummary& program) {
  const Json object = parse(json);
  Request request;
  const cli::CommandSummary* command = &program;
  for (const std::string& word : command_words(object)) {
    command = &find_command(*command, word);
    request.arguments.push_back(word);
  }
  std::vector<std::string> options;
  std::vector<std::string> positionals;
  for (const auto& [key, value] : object.items()) {
    if (key == kCommand) continue;
    Values(key, find_option(*command, key), request).add(value, options, positionals);
  }
  request.wants_json = add_format(object, *command, options);
  std::ranges::move(options, std::back_inserter(request.arguments));
  if (!positionals.empty()) request.arguments.emplace_back("--");
  std::ranges::move(positionals, std::back_inserter(request.arguments));
  return request;
}

}  // namespace headroom::c_api
