// Checks the properties of random models, one config per seed:
//
//   headroom_property_models --configs 1000000 [--first 0]
//   headroom_property_models --print SEED    its config, to look into a crash
//
// Each run takes one thread: start as many programs, on other seeds, as there are processors.
// Prints every config that breaks a property, with its seed, and the totals. Exit status: 0 if all
// properties held, 1 if one did not, 2 for usage.
#include <fmt/format.h>
#include <omp.h>

#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <map>

#include "model_properties.h"

namespace {

using namespace headroom::test;

struct Range {
  std::uint64_t first = 0;
  std::uint64_t configs = 0;
  bool prints = false;  ///< the config of `first`, without a check
};

/// False for a usage error.
bool parse(int argc, char** argv, Range& range) {
  for (int i = 1; i < argc; i += 2) {
    if (i + 1 == argc) return false;
    const std::string_view option = argv[i];
    if (option != "--configs" && option != "--first" && option != "--print") return false;
    std::uint64_t& number = option == "--configs" ? range.configs : range.first;
    range.prints = range.prints || option == "--print";
    const char* const end = argv[i + 1] + std::strlen(argv[i + 1]);
    const auto [rest, failed] = std::from_chars(argv[i + 1], end, number);
    if (failed != std::errc{} || rest != end) return false;
  }
  return range.prints || range.configs > 0;
}

}  // namespace

int main(int argc, char** argv) {
  Range range;
  if (!parse(argc, argv, range)) {
    fmt::print(stderr,
               "usage: headroom_property_models --configs N [--first SEED] | --print SEED\n");
    return 2;
  }
  omp_set_num_threads(1);
  const RandomConfigs configs(HEADROOM_TEST_DATA);
  if (range.prints) {
    fmt::print("{}\n", configs.config(range.first).dump());
    return 0;
  }
  const auto start = std::chrono::steady_clock::now();
  std::map<Reached, std::uint64_t> reached;
  std::uint64_t broken = 0;
  for (std::uint64_t seed = range.first; seed < range.first + range.configs; ++seed) {
    const nlohmann::json config = configs.config(seed);
    const CheckedModel checked = check_model(config, seed);
    ++reached[checked.reached];
    if (checked.findings.broken().empty()) continue;
    ++broken;
    fmt::print("seed {}: {}\n", seed, config.dump());
    for (const std::string& finding : checked.findings.broken()) fmt::print("  {}\n", finding);
    std::fflush(stdout);
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  fmt::print(
      "{} configs: {} refused, {} counted, {} counted and run, {} broke a property, {:.0f} s\n",
      range.configs, reached[Reached::refused], reached[Reached::counted], reached[Reached::run],
      broken, took.count());
  return broken == 0 ? 0 : 1;
}
