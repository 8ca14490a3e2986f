// Statements of a config's quantization_config that decide how packed weights are read, and packed
// codes of eight bits.
#include <doctest/doctest.h>

#include <array>
#include <cstring>

#include "checkpoint/packed_files.h"
#include "packed_pieces.h"

using namespace headroom;
using namespace headroom::test;
using headroom::checkpoint::GroupedWeights;
using headroom::checkpoint::int64_tensor;
using headroom::checkpoint::StoredType;
using headroom::checkpoint::TensorToWrite;
using headroom::detail::PackedSettings;

namespace {

PackedSettings settings_of_file(std::string_view config) {
  const ScratchFolder folder;
  folder.write("config.json", config);
  return detail::packed_settings(folder.path());
}

PackedSettings settings_of(const std::string& members) {
  return settings_of_file("{\"quantization_config\": {" + members + "}}");
}

/// The sizes of a block in config_groups' "weights".
std::string group_of_block(const std::string& sizes) {
  return R"("config_groups": {"group_0": {"weights": {"block_structure": )" + sizes + "}}}";
}

bool has_default_block(const PackedSettings& settings) {
  return settings.block_rows == 128 && settings.block_columns == 128;
}

/// A tensor of half floats, all 1.
TensorToWrite ones(std::string name, std::vector<std::int64_t> shape) {
  TensorToWrite tensor = filled_with(0, std::move(name), StoredType::float16, std::move(shape));
  for (std::size_t at = 1; at < tensor.data.size(); at += 2) tensor.data[at] = std::byte{0x3c};
  return tensor;
}

TensorToWrite words(std::string name, std::vector<std::int64_t> shape,
                    const std::vector<std::int32_t>& values) {
  TensorToWrite tensor = integers(std::move(name), values);
  tensor.shape = std::move(shape);
  return tensor;
}

/// Row `row` of x.weight.
std::vector<float> row_of(const Tensors& tensors, std::int64_t row) {
  const auto folder = packed_folder(tensors);
  const GroupedWeights groups = detail::read_packed(folder->path())->read_groups("x.weight", {});
  std::vector<float> values(static_cast<std::size_t>(groups.columns));
  checkpoint::dequantise_row(groups, row, values);
  return values;
}

}  // namespace

TEST_CASE("without a quantization_config the settings of packed weights are the defaults") {
  const ScratchFolder empty;
  CHECK(has_default_block(detail::packed_settings(empty.path())));
  for (const char* const config : {"", "[]", "{", "7", "{}", R"({"quantization_config": null})",
                                   R"({"quantization_config": [{"version": "gemv"}]})"}) {
    CAPTURE(config);
    const PackedSettings settings = settings_of_file(config);
    CHECK(has_default_block(settings));
    CHECK(settings.version == "");
    CHECK_FALSE(settings.group_size);
    CHECK_FALSE(settings.is_auto_round);
  }
}

TEST_CASE("a group size is a whole number up to a million, or -1 for a whole row") {
  const auto group = [](const std::string& value) {
    return settings_of("\"group_size\": " + value).group_size;
  };
  CHECK(group("128") == 128);
  CHECK(group("-1") == -1);
  CHECK(group("1048576") == 1048576);
  for (const char* const other : {"0", "-2", "1048577", "64.0", "\"64\"", "null", "[64]"}) {
    CAPTURE(other);
    CHECK_FALSE(group(other));
  }
}

TEST_CASE("a block has two sizes above 0, which a group of compressed-tensors may state") {
  const auto block = [](const PackedSettings& settings) {
    return std::array{settings.block_rows, settings.block_columns};
  };
  const std::array<std::int64_t, 2> stated{2, 4};
  CHECK(block(settings_of(R"("weight_block_size": [2, 4])")) == stated);
  CHECK(block(settings_of(group_of_block("[2, 4]"))) == stated);
  for (const char* const sizes : {"null", "4", "[4]", "[2, 4, 8]", "[2, 0]", "[-1, 4]", "[4, -1]",
                                  "[2.0, 4]", "[2, \"4\"]"}) {
    CAPTURE(sizes);
    CHECK(has_default_block(settings_of(std::string("\"weight_block_size\": ") + sizes)));
    CHECK(has_default_block(settings_of(group_of_block(sizes))));
  }
  for (const char* const groups :
       {"[]", "7", "{}", R"({"group_0": 7})", R"({"group_0": {}})",
        R"({"group_0": {"weights": null}})", R"({"group_0": {"weights": [2, 4]}})"}) {
    CAPTURE(groups);
    CHECK(has_default_block(settings_of(std::string("\"config_groups\": ") + groups)));
  }
}

// As read_auto_round documents: once the method was intel/auto-round and its packing the backend.
TEST_CASE("AutoRound's older name states its packing as the backend") {
  const PackedSettings old =
      settings_of(R"("quant_method": "intel/auto-round", "backend": "auto_round:auto_gptq")");
  CHECK(old.is_auto_round);
  CHECK(old.packing_format == "auto_round:auto_gptq");
  const PackedSettings both =
      settings_of(R"("quant_method": "intel/auto-round", "backend": "a", "packing_format": "b")");
  CHECK(both.packing_format == "b");
  const PackedSettings later = settings_of(R"("quant_method": "auto-round", "backend": "a")");
  CHECK(later.is_auto_round);
  CHECK(later.packing_format == "");
  CHECK_FALSE(settings_of(R"("quant_method": 3, "backend": "a")").is_auto_round);
}

// 2 + 2·256 + 3·256² + 4·256³: codes 2, 2, 3, 4 in a word.
constexpr std::int32_t kCodes = 0x04030202;

TEST_CASE("zero points of GPTQ's eight bits may differ by row") {
  // Stored less one: 2 + 1 and 0 + 1, then 1 and 1.
  const std::vector<std::int32_t> zeros{0x00000002};
  const Tensors tensors = {words("x.qweight", {2, 4}, std::vector<std::int32_t>(8, kCodes)),
                           words("x.qzeros", {1, 1}, zeros), ones("x.scales", {1, 4})};
  CHECK(row_of(tensors, 0) == std::vector<float>{-1, -1, 0, 1, -1, -1, 0, 1});
  CHECK(row_of(tensors, 1) == std::vector<float>{1, 1, 2, 3, 1, 1, 2, 3});
}

TEST_CASE("compressed-tensors orders codes of eight bits by the groups of their inputs") {
  const std::array<std::int64_t, 2> shape{1, 4};
  const auto with = [&](const std::vector<std::int32_t>& groups) {
    return Tensors{words("x.weight_packed", {1, 1}, {kCodes}), ones("x.weight_scale", {1, 2}),
                   int64_tensor("x.weight_shape", {2}, shape), integers("x.weight_g_idx", groups)};
  };
  // Values are codes less 128; the order of the inputs does not change them.
  const std::vector<float> values{-126, -126, -125, -124};
  CHECK(row_of(with({-1, -1, -1, -1}), 0) == values);
  CHECK(row_of(with({0, 0, 1, 1}), 0) == values);
  CHECK(row_of(with({1, 0, 1, 0}), 0) == values);
}
