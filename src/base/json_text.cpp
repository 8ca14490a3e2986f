#include "json_text.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <set>
#include <span>
#include <system_error>
#include <utility>
#include <vector>

#include "descriptor.h"
#include "headroom/error.h"
#include "interruption.h"
#include "reading_limits.h"

namespace headroom::detail {
namespace {

using nlohmann::json;

/// Handler of parse events that rejects absurd depth and numbers of values, and repeated keys,
/// which would silently replace the earlier value. Runs before the parser: nlohmann's own callback
/// makes parsing quadratic in the members of an object.
class ParseGuard : public nlohmann::json_sax<json> {
 public:
  explicit ParseGuard(const std::string& file) : file_(file) {}

  bool null() override { return count(); }
  bool boolean(bool /*value*/) override { return count(); }
  bool number_integer(number_integer_t /*value*/) override { return count(); }
  bool number_unsigned(number_unsigned_t /*value*/) override { return count(); }
  bool number_float(number_float_t /*value*/, const string_t& /*text*/) override { return count(); }
  bool string(string_t& /*text*/) override { return count(); }
  bool binary(binary_t& /*value*/) override { return count(); }
  bool start_object(std::size_t /*size*/) override {
    keys_.emplace_back();
    return open();
  }
  bool end_object() override {
    keys_.pop_back();
    return close();
  }
  bool start_array(std::size_t /*size*/) override { return open(); }
  bool end_array() override { return close(); }
  bool key(string_t& name) override {
    if (keys_.back().insert(name).second) return true;
    throw Error(ErrorCode::invalid_input, fmt::format("the key \"{}\" occurs twice", name), file_,
                "remove one of them");
  }
  /// The parser reports the error itself.
  bool parse_error(std::size_t /*position*/, const std::string& /*token*/,
                   const nlohmann::detail::exception& /*error*/) override {
    return false;
  }

 private:
  bool count() {
    if (depth_ > kDeepestNesting) {
      throw Error(ErrorCode::invalid_input,
                  fmt::format("nested deeper than {} levels", kDeepestNesting), file_,
                  "this is not a model's config.json");
    }
    if (++values_ > kMostJsonValues) {
      throw Error(ErrorCode::invalid_input, fmt::format("has over {} values", kMostJsonValues),
                  file_, "this is not a model's config.json");
    }
    return true;
  }
  bool open() {
    const bool counted = count();
    ++depth_;
    return counted;
  }
  bool close() {
    --depth_;
    return count();
  }

  const std::string& file_;
  std::size_t values_ = 0;
  int depth_ = 0;
  std::vector<std::set<std::string>> keys_;
};

/// `text` with the words that Python's json module writes for non-finite numbers, which JSON lacks,
/// as null and as the largest numbers of as many characters.
std::string without_python_words(std::string_view text) {
  constexpr std::pair<std::string_view, std::string_view> kWords[] = {{"NaN", "null"},
                                                                      {"Infinity", "1.7e+308"}};
  std::string result;
  result.reserve(text.size());
  bool quoted = false;
  for (std::size_t at = 0; at < text.size();) {
    const char c = text[at];
    if (quoted && c == '\\' && at + 1 < text.size()) {
      result += text.substr(at, 2);
      at += 2;
      continue;
    }
    if (c == '"') quoted = !quoted;
    const auto* const word = std::ranges::find_if(kWords, [&](const auto& pair) {
      return !quoted && text.substr(at).starts_with(pair.first);
    });
    const bool found = word != std::end(kWords);
    result += found ? word->second : text.substr(at, 1);
    at += found ? word->first.size() : 1;
  }
  return result;
}

/// nlohmann's message without its error number, which it begins with: "[json.exception.…] …".
std::string reason(const json::parse_error& error) {
  const std::string_view text = error.what();
  return std::string(text.substr(text.find("] ") + 2));
}

}  // namespace

json parse_json(std::string_view text, const std::string& file) {
  // The parser treats a zero byte as the end and would ignore the rest.
  if (text.find('\0') != std::string_view::npos) {
    throw Error(ErrorCode::invalid_input, "not valid JSON: it contains a zero byte", file,
                "this is not a text file");
  }
  try {
    const std::string written = without_python_words(text);
    ParseGuard guard(file);
    json::sax_parse(written, &guard);
    return json::parse(written);
  } catch (const json::parse_error& error) {
    throw Error(ErrorCode::invalid_input, "not valid JSON: " + reason(error), file,
                "fix the file at that position");
  } catch (const json::out_of_range& error) {
    throw Error(ErrorCode::invalid_input, fmt::format("a number is out of range: {}", error.what()),
                file, "write a number that fits 64 bits");
  }
}

namespace {

[[noreturn]] void throw_unreadable(const std::string& path, int error) {
  throw Error(ErrorCode::missing_resource,
              "cannot be read: " + std::generic_category().message(error), path,
              "check the path and its permissions");
}

/// Reads up to `bytes` into `buffer`. Returns their number; 0 at the end.
std::size_t read_some(int file, std::span<char> buffer, const std::string& path) {
  while (true) {
    const ssize_t count = read(file, buffer.data(), buffer.size());
    if (count >= 0) return static_cast<std::size_t>(count);
    if (errno != EINTR) throw_unreadable(path, errno);
    throw_if_interrupted();
  }
}

std::string read_all(int file, const std::string& path) {
  std::string text;
  std::vector<char> buffer(std::size_t{1} << 16U);
  while (const std::size_t count = read_some(file, buffer, path)) {
    text.append(buffer.data(), count);
    if (text.size() > kMostTextBytes) {
      throw Error(ErrorCode::invalid_input, fmt::format("is larger than {} bytes", kMostTextBytes),
                  path, "name a text file, such as a config.json");
    }
  }
  return text;
}

}  // namespace

std::string read_text_file(const std::string& path) {
  if (path == "-") return read_all(STDIN_FILENO, "standard input");
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));  // NOLINT: variadic
  if (!file.is_open()) throw_unreadable(path, errno);
  return read_all(file.number(), path);
}

}  // namespace headroom::detail
