// The C API: a request runs as a command line, and its output becomes the answer.
#include "headroom/headroom_c.h"

#include <cstdlib>
#include <cstring>
#include <exception>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <string_view>

#include "headroom/error.h"
#include "interruption.h"
#include "program.h"
#include "request.h"
#include "setting_options.h"
#include "standard_streams.h"
#include "version.h"

namespace headroom::c_api {
namespace {

using Json = nlohmann::ordered_json;

std::string_view name_of(ErrorCode code) noexcept {
  switch (code) {
    case ErrorCode::invalid_input:
      return "invalid_input";
    case ErrorCode::overflow:
      return "overflow";
    case ErrorCode::missing_resource:
      return "missing_resource";
    case ErrorCode::internal:
      break;
  }
  return "internal";
}

/// JSON text; bytes that are not UTF-8, which a file's name may have, become U+FFFD.
std::string text_of(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Json lines_of(const std::string& text) {
  Json lines = Json::array();
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

/// The answer to the exception being handled.
std::string answer_of_error() {
  const Error error = cli::current_error();
  const int status = cli::current_status();
  return text_of({{"status", status},
                  {"messages", Json::array()},
                  {"error",
                   {{"code", status == 1 ? "no_plan_fits" : name_of(error.code())},
                    {"message", cli::with_options(error.message())},
                    {"where", error.where()},
                    {"hint", cli::with_options(error.hint())}}}});
}

/// `,"report":…` or `,"text":…`; empty where "output" names the file that has it. A report stays as
/// it was written: its integers may exceed 64 bits.
std::string member_of_output(const Request& request, const std::string& output) {
  if (request.wants_json) return output.empty() ? output : ",\"report\":" + output;
  return ",\"text\":" + text_of(output);
}

/// The answer of a command.
std::string answer_of(int status, const Request& request, const cli::StreamCapture& written) {
  const std::string messages = text_of(lines_of(written.messages()));
  return "{\"status\":" + std::to_string(status) + ",\"messages\":" + messages +
         member_of_output(request, written.output()) + "}";
}

/// `text` without the temporary folders of the request's models.
std::string without_folders(std::string text, const Request& request) {
  for (const TemporaryModel& model : request.models) {
    const std::string prefix = model.prefix();
    for (std::size_t at = text.find(prefix); at != std::string::npos; at = text.find(prefix, at)) {
      text.erase(at, prefix.size());
    }
  }
  return text;
}

std::string run(std::string_view json) {
  const Request request = read_request(json, cli::describe_program());
  const cli::StreamCapture written;
  std::string answer;
  try {
    const int status = cli::run_program(request.arguments);
    answer = answer_of(status, request, written);
  } catch (...) {
    answer = answer_of_error();
  }
  return without_folders(std::move(answer), request);
}

std::string run_or_explain(const char* request) {
  try {
    if (request == nullptr) throw_invalid_input("the request is a null pointer", "pass JSON");
    return run(request);
  } catch (...) {
    return answer_of_error();
  }
}

}  // namespace
}  // namespace headroom::c_api

char* headroom_run(const char* request) {
  try {
    const std::string answer = headroom::c_api::run_or_explain(request);
    auto* const copy = static_cast<char*>(std::malloc(answer.size() + 1));  // NOLINT: C frees it
    if (copy != nullptr) std::memcpy(copy, answer.c_str(), answer.size() + 1);
    return copy;
  } catch (...) {  // no memory for the answer of an error
    return nullptr;
  }
}

void headroom_free(char* answer) { std::free(answer); }  // NOLINT: headroom_run's

const char* headroom_version(void) { return headroom::cli::kVersion; }
