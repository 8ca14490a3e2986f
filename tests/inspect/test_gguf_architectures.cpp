// Every supported GGUF architecture: a published model's metadata, as converters write them, must
// give its published parameter count. Sizes come from the models' config.json files, parameters
// from the reference code's counts in tests/data/golden, tests/data/wild and the presets.
#include <doctest/doctest.h>

#include "inspect/model_folder.h"
#include "inspect/published_gguf.h"
#include "support/data.h"

using namespace headroom;
using namespace headroom::test;

TEST_CASE("the metadata of published models give their published parameter counts") {
  std::vector<PublishedGguf> models = published_decoders();
  const std::vector<PublishedGguf> hybrids = published_hybrids();
  models.insert(models.end(), hybrids.begin(), hybrids.end());
  for (const PublishedGguf& published : models) {
    CAPTURE(published.model);
    const TempFolder folder;
    write_file(folder / "model.gguf", file_of(published));
    try {
      const ModelSpec spec = load_model((folder / "model.gguf").string()).spec;
      const Graph graph = build_graph(spec, {});
      CHECK(count_parameters(graph).total.evaluate(graph.sizes) == Integer{published.parameters});
    } catch (const Error& error) {
      FAIL_CHECK(std::string(error.what()));
    }
  }
}
