// The options that an engine documents (tests/data/engines), and those of a command.
#pragma once

#include <fmt/format.h>

#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "headroom/engine_info.h"
#include "support/data.h"

namespace headroom::test {

/// A release of an engine with its options, and the values that some of them take.
struct EngineOptions {
  std::string version;
  std::string date;
  std::map<std::string, std::set<std::string>> values;  ///< by option; empty: any
};

inline EngineOptions engine_options(Engine engine) {
  std::ifstream file(data_folder() / "engines" / fmt::format("{}.txt", info(engine).name));
  EngineOptions options;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string first;
    words >> first;
    if (first == "#") {
      std::string key;
      words >> key;
      if (key == "version") words >> options.version;
      if (key == "date") words >> options.date;
      continue;
    }
    std::set<std::string>& values = options.values[first];
    for (std::string value; words >> value;) values.insert(value);
  }
  return options;
}

/// The words of a command line, each in quotes or without blanks.
inline std::vector<std::string> words_of(const std::string& command) {
  std::vector<std::string> words{""};
  bool quoted = false;
  for (const char c : command) {
    if (c == '\'') quoted = !quoted;
    if (c == ' ' && !quoted) {
      words.emplace_back();
    } else {
      words.back() += c;
    }
  }
  return words;
}

/// Options of the command that the engine's list lacks, and values that an option of it does not
/// take; adds those that it has to `seen`. The launcher's own options are not looked at.
inline std::vector<std::string> unknown_options(const EngineOptions& options,
                                                const std::string& command,
                                                std::set<std::string>& seen) {
  std::vector<std::string> unknown;
  const std::set<std::string>* values = nullptr;
  const std::size_t program = command.find("torchrun ") == 0 ? command.find(" pretrain_gpt.py") : 0;
  const std::size_t module = command.find(" -m torchtitan.train");
  const std::size_t start = module != std::string::npos ? module + 3 : program;
  for (const std::string& word : words_of(command.substr(start))) {
    if (word.starts_with("--")) {
      const auto found = options.values.find(word);
      if (found == options.values.end()) unknown.push_back(word);
      values = found == options.values.end() ? nullptr : &found->second;
      if (values != nullptr) seen.insert(word);
    } else if (values != nullptr && !values->empty() && !values->contains(word)) {
      unknown.push_back(word);
    }
  }
  return unknown;
}

}  // namespace headroom::test
