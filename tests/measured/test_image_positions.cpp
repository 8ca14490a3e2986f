// Order of patches in a tower, and the positions of patches and visual tokens.
#include <doctest/doctest.h>

#include <cmath>

#include "images.h"
#include "position_table.h"
#include "rotary.h"

using namespace headroom;
using namespace headroom::measured;

namespace {

/// A tower whose rows are ordered by blocks of 2 × 2 patches and windows of 2 × 2 blocks.
ImageSpec windowed_image() {
  ImageSpec image;
  image.patch_size = 4;
  image.prefix = PrefixTokens::none;
  image.block_side = 2;
  image.window_blocks = 2;
  return image;
}

RopeSpec axes_of(RopeAxes axes) {
  RopeSpec rope;
  rope.axes = axes;
  rope.sections = {4, 2, 2};
  return rope;
}

/// The frequency of pair `pair` of `dim` dimensions (arXiv 2104.09864, eq. 15).
double frequency(std::int64_t pair, std::int64_t dim) {
  return std::pow(10000.0, -2.0 * static_cast<double>(pair) / static_cast<double>(dim));
}

}  // namespace

// arXiv 2502.13923, section 2.1.1.
TEST_CASE(
    "rows of a tower go window by window, block by block, and windows at the edge are smaller") {
  const ImageSpec image = windowed_image();
  const ImageGrid grid{4, 6};
  CHECK(window_rows(image, grid) == std::vector<std::int64_t>{16, 8});
  const std::vector<PatchPlace> places = patch_places(image, grid);
  REQUIRE(places.size() == 24);
  const auto is_at = [&](std::size_t row, std::int64_t y, std::int64_t x) {
    return places[row].row == y && places[row].column == x;
  };
  CHECK(is_at(0, 0, 0));
  CHECK(is_at(1, 0, 1));
  CHECK(is_at(2, 1, 0));
  CHECK(is_at(4, 0, 2));
  CHECK(is_at(8, 2, 0));
  CHECK(is_at(16, 0, 4));
  const std::vector<std::int64_t> rows = rows_of_patches(image, std::vector{grid});
  for (std::size_t row = 0; row < places.size(); ++row) {
    const auto patch = static_cast<std::size_t>(places[row].row * 6 + places[row].column);
    CHECK(rows[patch] == static_cast<std::int64_t>(row));
  }
}

// arXiv 2409.12191, section 2.1 and figure 3.
TEST_CASE("the text after an image continues behind the largest of its positions") {
  TokenInputs tokens{1, 9, {}, {}, {}};
  tokens.ids.resize(9);
  tokens.visual_rows = {2, 3, 4, 5, 6, 7};
  const AxisPositions positions = axis_positions(tokens, std::vector<ImageGrid>{{2, 3}});
  REQUIRE(positions.of_tokens.size() == 9);
  CHECK(positions.of_tokens[1] == AxisPosition{1, 1, 1});
  CHECK(positions.of_tokens[2] == AxisPosition{2, 2, 2});
  CHECK(positions.of_tokens[4] == AxisPosition{2, 2, 4});
  CHECK(positions.of_tokens[7] == AxisPosition{2, 3, 4});
  CHECK(positions.of_tokens[8] == AxisPosition{5, 5, 5});
  CHECK(positions.shifts == std::vector<std::int64_t>{-3});
}

TEST_CASE("equal positions on three axes are plain RoPE") {
  for (const RopeAxes axes : {RopeAxes::sections, RopeAxes::interleaved_sections}) {
    const RopeSpec rope = axes_of(axes);
    const RotaryTable plain = make_rotary_table(rope, 16, 3, 64);
    const RotaryTable table =
        make_axis_rotary_table(rope, 16, 64, {{0, 0, 0}, {1, 1, 1}, {2, 2, 2}});
    CHECK(table.cos == plain.cos);
    CHECK(table.sin == plain.sin);
  }
}

TEST_CASE("axes turn consecutive pairs, or pairs in turns") {
  const std::vector<AxisPosition> positions{{0, 1, 2}};
  const RotaryTable chunks = make_axis_rotary_table(axes_of(RopeAxes::sections), 16, 64, positions);
  const RotaryTable turns =
      make_axis_rotary_table(axes_of(RopeAxes::interleaved_sections), 16, 64, positions);
  const std::vector<double> position_in_chunks{0, 0, 0, 0, 1, 1, 2, 2};
  const std::vector<double> position_in_turns{0, 1, 2, 0, 1, 2, 0, 0};
  for (std::size_t pair = 0; pair < 8; ++pair) {
    const double turn = frequency(static_cast<std::int64_t>(pair), 16);
    CHECK(static_cast<double>(chunks.cos[pair]) ==
          doctest::Approx(std::cos(position_in_chunks[pair] * turn)));
    CHECK(static_cast<double>(turns.sin[pair]) ==
          doctest::Approx(std::sin(position_in_turns[pair] * turn)));
  }
}

TEST_CASE("rows turn the first half of a patch's pairs, columns the second, at equal frequencies") {
  const RotaryTable table =
      make_patch_rotary_table(axes_of(RopeAxes::rows_then_columns), 8, {{3, 3}, {1, 2}});
  CHECK(table.cos[0] == table.cos[2]);
  CHECK(table.cos[1] == table.cos[3]);
  CHECK(static_cast<double>(table.cos[4]) == doctest::Approx(std::cos(1.0)));
  CHECK(static_cast<double>(table.cos[6]) == doctest::Approx(std::cos(2.0)));
}

TEST_CASE("RoPE within halves rotates each half as a head of its own") {
  RopeSpec rope = axes_of(RopeAxes::columns_then_rows);
  rope.layout = RopeLayout::half_split_in_halves;
  std::vector<float> head{1, 2, 3, 4, 5, 6, 7, 8};
  std::vector<float> halves = head;
  const RotaryArguments whole{1, 1, 1, 8, 8, 8, 0};
  apply_rotary(make_patch_rotary_table(rope, 8, {{3, 2}}), whole, head.data());
  // A head of 4 dimensions has the frequencies of either half.
  const RotaryTable plain = make_rotary_table(RopeSpec{}, 4, 4, 64);
  RotaryArguments half{1, 1, 1, 4, 4, 4, 2};
  apply_rotary(plain, half, halves.data());
  half.first_position = 3;
  apply_rotary(plain, half, halves.data() + 4);
  for (std::size_t i = 0; i < head.size(); ++i) {
    CHECK(static_cast<double>(head[i]) == doctest::Approx(static_cast<double>(halves[i])));
  }
}

TEST_CASE("a linear interpolation keeps the corners and halves the way between them") {
  const std::vector<float> table{1, 3, 5, 11};
  const auto larger =
      interpolate_positions({2, 2, 0, 1}, table.data(), 3, 3, PositionInterpolation::linear);
  CHECK(larger == std::vector<float>{1, 2, 3, 3, 5, 7, 5, 8, 11});
}

TEST_CASE("tables of columns and rows are added by place") {
  const std::vector<float> tables{1, 2, 10, 20};  // columns, rows
  CHECK(sum_of_tables(tables.data(), 2, 1, {2, 2}) == std::vector<float>{11, 12, 21, 22});
}
