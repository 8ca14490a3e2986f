// Arbitrary bytes as model.safetensors.index.json give an error, or files in the index's folder.
#include "fuzz_target.h"
#include "shard_index.h"
#include "temporary_file.h"

using namespace headroom;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::filesystem::path file =
      test::temporary_file(data, size, "model.safetensors.index.json");
  (void)test::accepts([&] {
    for (const auto& [tensor, name] : checkpoint::read_shard_index(file)) {
      if (std::filesystem::path(name).has_parent_path()) std::abort();
    }
    (void)checkpoint::summarize_shard_index(file);
  });
  return 0;
}
