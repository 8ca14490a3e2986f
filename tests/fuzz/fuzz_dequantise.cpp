// Arbitrary bytes as blocks of a type that the first byte chooses give an error or finite values.
#include <cmath>
#include <span>
#include <vector>

#include "fuzz_target.h"
#include "ggml_type.h"
#include "ggml_values.h"

using namespace headroom;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const auto type = checkpoint::ggml_type(data[0]);
  if (!type) return 0;
  const checkpoint::GgmlTypeInfo& info = checkpoint::info(*type);
  const std::size_t blocks = (size - 1) / static_cast<std::size_t>(info.block_bytes);
  const std::size_t bytes = blocks * static_cast<std::size_t>(info.block_bytes);
  std::vector<float> values(blocks * static_cast<std::size_t>(info.block_size));
  const bool read = test::accepts([&] {
    checkpoint::dequantise(*type, std::as_bytes(std::span(data + 1, bytes)), values, "file");
  });
  for (const float value : values) {
    if (read && !std::isfinite(value)) std::abort();
  }
  return 0;
}
