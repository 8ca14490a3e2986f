// Headers with very many tensors; headroom_bench_inspect measures time and memory.
#include <doctest/doctest.h>

#include "inspect/model_folder.h"
#include "support/many_tensors.h"

using namespace headroom;
using namespace headroom::test;

TEST_CASE("a header with 60,000 tensors is read and summed") {
  constexpr std::int64_t kTensors = 60000;
  const TempFolder folder;
  write_many_tensors(folder / "m.safetensors", kTensors);
  const Inspection inspection = inspect((folder / "m.safetensors").string());
  CHECK(inspection.all.tensors == kTensors);
  CHECK(inspection.weights.values == Integer{8 * kTensors});
  REQUIRE(inspection.components.size() == 3);
  CHECK(inspection.components[0].component == "model.layers.{}.mlp.experts.{}.w1.weight");
}
