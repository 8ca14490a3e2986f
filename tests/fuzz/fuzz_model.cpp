// Arbitrary JSON as a config.json is refused, or has all properties of tests/property: counted
// figures equal those of a real run, formulas their values, formats each other.
#include <cstdio>

#include "fuzz_target.h"
#include "model_properties.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto config = nlohmann::json::parse(data, data + size, nullptr, false);
  if (!config.is_object()) return 0;
  const auto checked = headroom::test::check_model(config, size);
  for (const std::string& broken : checked.findings.broken()) {
    std::fprintf(stderr, "broken: %s\n", broken.c_str());
  }
  if (!checked.findings.broken().empty()) std::abort();
  return 0;
}
