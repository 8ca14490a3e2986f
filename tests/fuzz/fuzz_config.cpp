// Arbitrary bytes as a config.json give an error or a spec that can be built and counted.
#include <string_view>

#include "fuzz_target.h"
#include "headroom/analysis.h"
#include "headroom/model_source.h"

using namespace headroom;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view json(reinterpret_cast<const char*>(data), size);
  (void)test::accepts([&] {
    const Graph graph = build_graph(read_model_spec(json, "config.json", "fuzz"), {});
    (void)count_parameters(graph).total.evaluate(graph.sizes);
  });
  return 0;
}
