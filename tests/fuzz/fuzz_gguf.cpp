// Arbitrary bytes as a GGUF file give an error, or tensors and a config from its metadata.
#include <span>

#include "fuzz_target.h"
#include "gguf.h"
#include "gguf/gguf_config.h"
#include "headroom/model_source.h"

using namespace headroom;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  const bool valid = test::accepts([&] {
    const checkpoint::GgufContent content = checkpoint::parse_gguf(bytes, "file");
    (void)test::accepts(
        [&] { (void)read_model_spec(detail::config_from_gguf(content, "file"), "file", "fuzz"); });
  });
  if (valid) test::inspect_bytes(data, size);
  return 0;
}
