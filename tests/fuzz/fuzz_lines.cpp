// Arbitrary text as a trace of requests, a file of measured runs, or the user's configuration is
// read, or refused as input. What is read of a trace is served.
#include <algorithm>
#include <cmath>
#include <string>

#include "command_line.h"
#include "fuzz_target.h"
#include "headroom/model_source.h"
#include "headroom/serve.h"
#include "measured_runs.h"
#include "temporary_file.h"

using namespace headroom;

namespace {

void read_trace(const std::string& text) {
  const std::vector<ServeRequest> requests = parse_trace(text, "trace").requests;
  if (!std::ranges::is_sorted(requests, {}, &ServeRequest::arrival_s)) std::abort();
  for (const ServeRequest& request : requests) {
    if (!std::isfinite(request.arrival_s) || request.input_tokens < 1) std::abort();
  }
}

void read_runs(const std::uint8_t* data, std::size_t size) {
  const std::filesystem::path file = test::temporary_file(data, size, "runs.jsonl");
  try {
    (void)cli::read_measured_runs(file.string(), "h100-80gb");
  } catch (const Error& error) {
    // A command may name a model or a file that is missing.
    if (error.code() != ErrorCode::missing_resource) throw;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  (void)test::accepts([&] { read_trace(text); });
  (void)test::accepts([&] { (void)cli::parse_configuration(text, "headroom.toml"); });
  if (text.find('/') == std::string::npos) {
    (void)test::accepts([&] { read_runs(data, size); });
  }
  return 0;
}
