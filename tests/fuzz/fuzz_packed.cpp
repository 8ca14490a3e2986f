// Arbitrary bytes as quantised safetensors give matrices of their shapes or an error.
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "fuzz_target.h"
#include "grouped_weights.h"
#include "temporary_file.h"
#include "weight_reader.h"

using namespace headroom;

namespace {

using Experts = std::vector<std::optional<std::int64_t>>;

/// The first of the stacked experts, and one behind the last.
Experts experts_of(const detail::WeightReader& reader, const std::string& name) {
  const auto shape = reader.shape(name).value();
  return shape.size() == 3 ? Experts{0, shape.front()} : Experts{std::nullopt};
}

/// Unpacks one tensor, or one of its experts, and decodes its rows.
void read(const detail::WeightReader& reader, const std::string& name,
          std::optional<std::int64_t> expert) {
  const checkpoint::GroupedWeights groups = reader.read_groups(name, expert);
  std::vector<float> row(static_cast<std::size_t>(groups.columns));
  for (std::int64_t i = 0; i < groups.rows; ++i) checkpoint::dequantise_row(groups, i, row);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::filesystem::path file = test::temporary_file(data, size, "model.safetensors");
  if (!detail::has_packed_weights(file)) return 0;
  (void)test::accepts([&] {
    const auto reader = detail::read_packed(file);
    for (const std::string& name : reader->names()) {
      if (!reader->group_format(name)) continue;
      for (const auto expert : experts_of(*reader, name)) {
        (void)test::accepts([&] { read(*reader, name, expert); });
      }
    }
  });
  return 0;
}
