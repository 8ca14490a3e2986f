// Arbitrary bytes as a safetensors file give its tensors or an error.
#include <span>

#include "fuzz_target.h"
#include "safetensors.h"

using namespace headroom;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  const bool valid = test::accepts([&] { (void)checkpoint::parse_safetensors(bytes, "file"); });
  if (valid) test::inspect_bytes(data, size);
  return 0;
}
