// Arbitrary bytes as a config.json are read, or refused as
// input. `config` and `model` count and run what is read, with far fewer executions.
#include <string_view>

#include "fuzz_target.h"
#include "headroom/model_source.h"

using namespace headroom;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view json(reinterpret_cast<const char*>(data), size);
  (void)test::accepts([&] { (void)read_model_spec(json, "config.json", "fuzz"); });
  return 0;
}
