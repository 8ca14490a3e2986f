#include "headroom/machine_names.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <iterator>
#include <string_view>
#include <vector>

#include "embedded_json.h"
#include "headroom/error.h"
#include "similar.h"
#include "user_folder.h"

namespace headroom {
namespace {

using detail::lower_case;

/// Words that tell no two machines of the catalogue apart. A plain name is the SXM module.
constexpr std::array<std::string_view, 21> kIdleWords{
    "nvidia", "tesla", "geforce", "rtx",    "gtx",   "amd",   "instinct",
    "radeon", "rx",    "intel",   "google", "apple", "aws",   "sxm",
    "sxm2",   "sxm4",  "sxm5",    "hbm2e",  "hbm3",  "hbm3e", "generation"};

bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

/// "80gb"
bool is_memory(const std::string& word) {
  return word.size() > 2 && word.ends_with("gb") &&
         std::all_of(word.begin(), word.end() - 2, is_digit);
}

/// The words of a name in lower case, a series' letters apart from its number: "rtx4090" is two.
std::vector<std::string> name_words(std::string_view name) {
  std::string spaced = lower_case(name);
  for (const std::string_view series : {"rtx", "rx", "gtx"}) {
    if (spaced.starts_with(series)) spaced.insert(series.size(), 1, '-');
  }
  std::vector<std::string> words(1);
  for (const char c : spaced) {
    if (c == '-' || c == ' ' || c == '_') {
      words.emplace_back();
    } else {
      words.back() += c;
    }
  }
  std::erase_if(words, [](const std::string& word) {
    return word.empty() || std::ranges::find(kIdleWords, word) != kIdleWords.end();
  });
  return words;
}

std::vector<std::string> without_memory(std::vector<std::string> words) {
  std::erase_if(words, is_memory);
  return words;
}

/// Equal words in any order, or in their order with other separators.
bool are_alike(std::vector<std::string> a, std::vector<std::string> b) {
  if (fmt::format("{}", fmt::join(a, "")) == fmt::format("{}", fmt::join(b, ""))) return true;
  std::ranges::sort(a);
  std::ranges::sort(b);
  return a == b;
}

std::vector<std::string> known_machines() {
  std::vector<std::string> names;
  for (const auto& file : detail::json_files_of(detail::own_folders().machines)) {
    names.push_back(file.stem().string());
  }
  for (const detail::EmbeddedJson& file : detail::embedded_machines()) {
    names.emplace_back(file.name);
  }
  std::ranges::sort(names);
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

template <class Form>
std::vector<std::string> alike(const std::string& typed, const std::vector<std::string>& known,
                               Form form) {
  const std::vector<std::string> words = name_words(typed);
  std::vector<std::string> found;
  std::ranges::copy_if(known, std::back_inserter(found), [&](const std::string& name) {
    return !words.empty() && are_alike(words, form(name_words(name)));
  });
  return found;
}

}  // namespace

std::string machine_meant(const std::string& typed) {
  const std::vector<std::string> known = known_machines();
  if (std::ranges::find(known, typed) != known.end()) return typed;
  std::error_code failed;
  if (std::filesystem::exists(typed, failed)) return typed;
  std::vector<std::string> meant = alike(typed, known, [](const auto& words) { return words; });
  if (meant.empty()) meant = alike(typed, known, without_memory);
  if (meant.empty()) return typed;
  if (meant.size() == 1) return meant.front();
  throw Error(ErrorCode::invalid_input, "could be several machines", typed,
              fmt::format("name one of them: {}", fmt::join(meant, ", ")));
}

}  // namespace headroom
