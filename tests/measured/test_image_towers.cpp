// Rows of image towers: merged patches, positions of rows and columns, spans of visual tokens, and
// images of different sizes in one run.
#include <doctest/doctest.h>

#include <cmath>
#include <numeric>

#include "golden_values.h"
#include "images.h"
#include "kernels/patches.h"
#include "kernels/rotary.h"
#include "safetensors_writer.h"
#include "session.h"
#include "support/data.h"
#include "support/scratch.h"

using namespace headroom;
using namespace headroom::measured;
using headroom::measured::testing::error_over_tolerance;

namespace {

/// Patches 0, 1, 2, … of two channels: 10·patch and 10·patch + 1.
std::vector<float> numbered_patches(std::int64_t patches) {
  std::vector<float> rows;
  for (std::int64_t patch = 0; patch < patches; ++patch) {
    rows.push_back(static_cast<float>(10 * patch));
    rows.push_back(static_cast<float>(10 * patch + 1));
  }
  return rows;
}

std::vector<float> merged(PatchRows::Kind kind, const std::vector<ImageGrid>& grids,
                          std::size_t floats) {
  const std::vector<float> rows = numbered_patches(100);
  std::vector<float> result(floats);
  std::vector<std::int64_t> raster(100);
  std::iota(raster.begin(), raster.end(), 0);
  merge_patches(kind, grids, {2, 2, raster}, rows.data(), result.data());
  return result;
}

}  // namespace

TEST_CASE("a block of patches is merged patch by patch, channel by channel, or averaged") {
  // A grid of 2 × 4 patches: the second block holds patches 2, 3, 6 and 7.
  using Kind = PatchRows::Kind;
  const std::vector<ImageGrid> grid{{2, 4}};
  const auto patch_major = merged(Kind::patch_major, grid, 16);
  CHECK(std::vector<float>(patch_major.begin() + 8, patch_major.end()) ==
        std::vector<float>{20, 21, 30, 31, 60, 61, 70, 71});
  const auto channel_major = merged(Kind::channel_major, grid, 16);
  CHECK(std::vector<float>(channel_major.begin() + 8, channel_major.end()) ==
        std::vector<float>{20, 30, 60, 70, 21, 31, 61, 71});
  const auto mean = merged(Kind::mean, grid, 4);
  CHECK(mean == std::vector<float>{25, 26, 45, 46});
}

TEST_CASE("blocks of the second image follow those of the first") {
  const auto rows = merged(PatchRows::Kind::mean, {{2, 2}, {2, 2}}, 4);
  CHECK(rows == std::vector<float>{15, 16, 55, 56});
}

TEST_CASE("rows of packed tiles end in a vector, and a separator and the whole follow them") {
  // The whole and a row of two tiles, of 2 × 2 patches each.
  const std::vector<float> patches{100, 101, 102, 103, 0, 1, 2, 3, 10, 11, 12, 13};
  const std::vector<float> row_ends(4, -1);
  const std::vector<float> tile_ends(4, -2);
  const PackArguments args{1, 2, row_ends.data(), tile_ends.data()};
  ImageTiling tiling;
  tiling.tile_rows = 1;
  tiling.tile_columns = 2;
  tiling.out_rows = 1;
  tiling.out_columns = 2;
  std::vector<float> blocks(6 * 4);
  pack_blocks(PatchRows::Kind::pack_blocks, {tiling}, args, patches.data(), blocks.data());
  CHECK(blocks == std::vector<float>{0,  1,  2,  3,  10,  11,  12,  13,  -1, -1, -1, -1,
                                     -2, -2, -2, -2, 100, 101, 102, 103, -1, -1, -1, -1});
  std::vector<float> means(6);
  pack_blocks(PatchRows::Kind::pack_means, {tiling}, args, patches.data(), means.data());
  CHECK(means == std::vector<float>{1.5F, 11.5F, -1, -2, 101.5F, -1});
}

TEST_CASE(
    "3-D RoPE leaves the pairs of time as they are and turns a third each by row and column") {
  RopeSpec rope;
  rope.theta = 10000;
  rope.axes = RopeAxes::time_then_rows_then_columns;
  const RotaryTable table = make_patch_rotary_table(rope, 12, {{2, 3}});
  const std::vector<double> angles{0, 0, 2, 2 * 0.01, 3, 3 * 0.01};
  REQUIRE(table.cos.size() == angles.size());
  for (std::size_t i = 0; i < angles.size(); ++i) {
    CHECK(static_cast<double>(table.cos[i]) == doctest::Approx(std::cos(angles[i])));
    CHECK(static_cast<double>(table.sin[i]) == doctest::Approx(std::sin(angles[i])));
  }
}

TEST_CASE("2-D RoPE turns even pairs by the patch's row and odd pairs by its column") {
  RopeSpec rope;
  rope.theta = 10000;
  rope.axes = RopeAxes::rows_and_columns_alternate;
  const std::vector<PatchPoint> places{{0, 0}, {0, 1}, {0, 2}, {1, 0}, {1, 1}, {1, 2}};
  const RotaryTable table = make_patch_rotary_table(rope, 8, places);
  REQUIRE(table.positions == 6);
  REQUIRE(table.half == 4);
  // Frequencies 10000^(-i/4); patch 5 stands in row 1 and column 2.
  const std::vector<double> angles{1, 1 * 0.01, 2 * 0.1, 2 * 0.001};
  for (std::size_t i = 0; i < angles.size(); ++i) {
    CHECK(static_cast<double>(table.cos[5 * 4 + i]) == doctest::Approx(std::cos(angles[i])));
    CHECK(static_cast<double>(table.sin[5 * 4 + i]) == doctest::Approx(std::sin(angles[i])));
  }
}

TEST_CASE("visual tokens see their image, and tokens of a prompt see the prompt") {
  TokenInputs tokens;
  tokens.batch = 2;
  tokens.seq_len = 6;
  tokens.visual_rows = {1, 2, 4, 5, 6, 7};  // two images in the first sequence, one in the second
  const auto spans = key_spans(tokens, Lookahead::image);
  const auto check_span = [&](std::size_t row, std::int64_t begin, std::int64_t end) {
    CAPTURE(row);
    CHECK(spans.at(row).begin == begin);
    CHECK(spans.at(row).end == end);
  };
  check_span(0, 0, 1);
  check_span(1, 1, 3);
  check_span(2, 1, 3);
  check_span(5, 4, 6);
  check_span(6, 0, 2);
  check_span(8, 2, 3);
  tokens.type_ids = {0, 0, 0, 1, 1, 1, 0, 0, 0, 0, 0, 0};
  const auto prompts = key_spans(tokens, Lookahead::prompt);
  CHECK(prompts[0].end == 3);
  CHECK(prompts[3].end == 4);
  CHECK(prompts[6].end == 6);
}

namespace {

/// Visual tokens of images of these grids, which hold the same pixels in every run.
std::vector<float> visual_tokens_of(Session& session, const std::vector<ImageGrid>& grids) {
  const ImageSpec& image = *session.spec().tower->embedding.image;
  ModelInputs inputs;
  inputs.images.emplace();
  std::int64_t tokens = 0;
  for (const ImageGrid& grid : grids) {
    const ImageSize size{grid.rows * image.patch_size, grid.columns * image.patch_size};
    inputs.images->sizes.push_back(size);
    for (std::int64_t i = 0; i < image.num_channels * size.height * size.width; ++i) {
      inputs.images->pixels.push_back(
          std::sin(static_cast<float>(i * (grid.rows + 2 * grid.columns))));
    }
    tokens += visual_tokens(*session.spec().tower, grid);
  }
  inputs.main.batch = 1;
  inputs.main.seq_len = tokens + 1;
  inputs.main.ids.assign(static_cast<std::size_t>(tokens + 1), 1);
  inputs.main.visual_rows.resize(static_cast<std::size_t>(tokens));
  std::iota(inputs.main.visual_rows.begin(), inputs.main.visual_rows.end(), 1);
  for (NamedTensor& tensor : session.forward(inputs)) {
    if (tensor.name == "image_features") return std::move(tensor.values);
  }
  return {};
}

}  // namespace

TEST_CASE("image grids whose patches no file holds are refused") {
  const test::ScratchFolder folder;
  const ModelSpec spec =
      load_model((test::data_folder() / "towers/tiny/qwen2_vl.config.json").string()).spec;
  checkpoint::write_safetensors(folder.path() / "inputs.safetensors", {});
  const std::string image = std::to_string(spec.tower_tokens.front());
  const std::string side = std::to_string(std::int64_t{1} << 30U);
  const std::string grid = "[1, " + side + ", " + side + "]";
  const auto file =
      folder.write("inputs.json", R"({"pixel_values": 0, "input_ids": [[1, )" + image +
                                      "]], \"image_grid_thw\": [" + grid + ", " + grid + "]}");
  CHECK_THROWS_WITH((void)read_inputs(file, spec), doctest::Contains("more patches"));
}

TEST_CASE("images of different sizes in one run become the tokens that each becomes alone") {
  const auto file = test::data_folder() / "towers/tiny/mistral3.config.json";
  for (const auto attention : {AttentionImplementation::eager, AttentionImplementation::fused}) {
    const auto source = random_weights(1);
    SessionOptions options;
    options.attention = attention;
    Session session(load_model(file.string()).spec, *source, options);
    std::vector<float> apart;
    for (const ImageGrid& grid : {ImageGrid{2, 4}, ImageGrid{6, 2}, ImageGrid{4, 3 * 2}}) {
      const std::vector<float> own = visual_tokens_of(session, {grid});
      apart.insert(apart.end(), own.begin(), own.end());
    }
    REQUIRE(apart.size() == (2 + 3 + 6) * 48);
    CHECK(error_over_tolerance(visual_tokens_of(session, {{2, 4}, {6, 2}, {4, 6}}), apart) <= 1.0);
  }
}
