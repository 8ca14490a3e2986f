// Parts of stored tensors: nested loops over each published layout build the stacks; every number
// encodes its weight, row and column.
#include <doctest/doctest.h>

#include <vector>

#include "headroom/error.h"
#include "stored/stored_layout.h"

using namespace headroom::detail;

namespace {

/// The number at row `r`, column `c` of weight `weight`.
float mark(int weight, std::int64_t r, std::int64_t c) {
  return static_cast<float>(weight * 10000 + r * 100 + c);
}

std::vector<float> marked(int weight, MatrixShape shape) {
  std::vector<float> values;
  for (std::int64_t r = 0; r < shape.rows; ++r) {
    for (std::int64_t c = 0; c < shape.columns; ++c) values.push_back(mark(weight, r, c));
  }
  return values;
}

std::vector<float> transposed_copy(const std::vector<float>& values, MatrixShape shape) {
  std::vector<float> out;
  for (std::int64_t c = 0; c < shape.columns; ++c) {
    for (std::int64_t r = 0; r < shape.rows; ++r) {
      out.push_back(values[static_cast<std::size_t>(r * shape.columns + c)]);
    }
  }
  return out;
}

std::vector<float> copied(const std::vector<float>& stored, const StoredLayout& layout,
                          const StackRange& range, MatrixShape wanted) {
  std::vector<float> out(static_cast<std::size_t>(wanted.rows * wanted.columns));
  copy_part(stored, layout, range, wanted, out);
  return out;
}

}  // namespace

TEST_CASE("query, key and value of unequal sizes come from one stack") {
  const MatrixShape query{6, 3};
  const MatrixShape other{2, 3};
  std::vector<float> stored = marked(0, query);
  for (const int weight : {1, 2}) {
    for (const float value : marked(weight, other)) stored.push_back(value);
  }
  CHECK(copied(stored, part(0), {1, 10, 0, 6}, query) == marked(0, query));
  CHECK(copied(stored, part(1), {1, 10, 6, 2}, other) == marked(1, other));
  CHECK(copied(stored, part(2), {1, 10, 8, 2}, other) == marked(2, other));
  CHECK(stored_shape(part(1), {1, 10, 6, 2}, other) == MatrixShape{10, 3});
  // Stored as [in, out], like Conv1D, these parts are columns.
  const std::vector<float> conv1d = transposed_copy(stored, {10, 3});
  CHECK(copied(conv1d, transposed(part(1)), {1, 10, 6, 2}, other) == marked(1, other));
  CHECK(stored_shape(transposed(part(1)), {1, 10, 6, 2}, other) == MatrixShape{3, 10});
}

TEST_CASE("BLOOM and GPT-NeoX store [head][query, key, value][head_dim]") {
  constexpr std::int64_t kHeads = 3;
  constexpr std::int64_t kHeadDim = 2;
  constexpr std::int64_t kColumns = 4;
  std::vector<float> stored;
  for (std::int64_t head = 0; head < kHeads; ++head) {
    for (int weight = 0; weight < 3; ++weight) {
      for (std::int64_t i = 0; i < kHeadDim; ++i) {
        for (std::int64_t c = 0; c < kColumns; ++c) {
          stored.push_back(mark(weight, head * kHeadDim + i, c));
        }
      }
    }
  }
  const MatrixShape wanted{kHeads * kHeadDim, kColumns};
  for (std::uint8_t weight = 0; weight < 3; ++weight) {
    const StackRange range{kHeads, 3 * kHeadDim, weight * kHeadDim, kHeadDim};
    CHECK(copied(stored, part(weight, Stacking::per_key_value_head), range, wanted) ==
          marked(weight, wanted));
  }
}

TEST_CASE("Falcon's new decoder stores [group][its query heads, key, value][head_dim]") {
  constexpr std::int64_t kGroups = 2;
  constexpr std::int64_t kQueryHeads = 3;  // per group
  constexpr std::int64_t kHeadDim = 2;
  std::vector<float> stored;  // one column, as in a bias
  for (std::int64_t group = 0; group < kGroups; ++group) {
    for (std::int64_t i = 0; i < kQueryHeads * kHeadDim; ++i) {
      stored.push_back(mark(0, group * kQueryHeads * kHeadDim + i, 0));
    }
    for (const int weight : {1, 2}) {
      for (std::int64_t i = 0; i < kHeadDim; ++i) {
        stored.push_back(mark(weight, group * kHeadDim + i, 0));
      }
    }
  }
  constexpr auto kStacking = Stacking::per_key_value_head;
  CHECK(copied(stored, part(0, kStacking), {2, 10, 0, 6}, {12, 1}) == marked(0, {12, 1}));
  CHECK(copied(stored, part(1, kStacking), {2, 10, 6, 2}, {4, 1}) == marked(1, {4, 1}));
  CHECK(copied(stored, part(2, kStacking), {2, 10, 8, 2}, {4, 1}) == marked(2, {4, 1}));
}

TEST_CASE("gpt-oss stores gate in even and up in odd columns of [in, 2 * out]") {
  const MatrixShape wanted{3, 2};
  std::vector<float> stored;
  for (std::int64_t c = 0; c < wanted.columns; ++c) {
    for (std::int64_t r = 0; r < wanted.rows; ++r) {
      stored.push_back(mark(0, r, c));
      stored.push_back(mark(1, r, c));
    }
  }
  constexpr auto kStacking = Stacking::per_index;
  CHECK(copied(stored, transposed(part(0, kStacking)), {3, 2, 0, 1}, wanted) == marked(0, wanted));
  CHECK(copied(stored, transposed(part(1, kStacking)), {3, 2, 1, 1}, wanted) == marked(1, wanted));
}

TEST_CASE("parts may be stacked along the input of a weight") {
  const MatrixShape wanted{2, 3};
  std::vector<float> stored;
  for (std::int64_t r = 0; r < wanted.rows; ++r) {
    for (const int weight : {0, 1}) {
      for (std::int64_t c = 0; c < wanted.columns; ++c) stored.push_back(mark(weight, r, c));
    }
  }
  const StoredLayout second = along_input(part(1));
  CHECK(copied(stored, second, {1, 6, 3, 3}, wanted) == marked(1, wanted));
  CHECK(copied(transposed_copy(stored, {2, 6}), transposed(second), {1, 6, 3, 3}, wanted) ==
        marked(1, wanted));
}

TEST_CASE("whole rows are those of tensors as they are, alone or stacked along the output") {
  CHECK(has_whole_rows({}));
  CHECK(has_whole_rows(part(1)));
  CHECK(has_whole_rows(along_input({})));
  CHECK_FALSE(has_whole_rows(along_input(part(1))));
  CHECK_FALSE(has_whole_rows(transposed()));
  CHECK_FALSE(has_whole_rows(transposed(part(1))));
}

TEST_CASE("rows of a part are the bytes of its rows") {
  std::vector<std::byte> stored;
  for (int i = 0; i < 12; ++i) stored.push_back(std::byte(i));
  const auto rows = [&](const StoredLayout& layout, const StackRange& range, std::int64_t count) {
    std::vector<int> values;
    for (const std::byte value : rows_of_part(stored, layout, range, count, 2)) {
      values.push_back(std::to_integer<int>(value));
    }
    return values;
  };
  CHECK(rows({}, {1, 2, 0, 2}, 2) == std::vector{0, 1, 2, 3});
  CHECK(rows(part(1), {1, 6, 4, 2}, 2) == std::vector{8, 9, 10, 11});
  // The second of each group's three rows.
  CHECK(rows(part(1, Stacking::per_key_value_head), {2, 3, 1, 1}, 2) == std::vector{2, 3, 8, 9});
  CHECK(rows({}, {1, 0, 0, 0}, 0).empty());
}

TEST_CASE("a part is copied only between buffers of the sizes of the tensor and the weight") {
  const std::vector<float> stored(12);
  std::vector<float> out(6);
  const StackRange range{1, 4, 0, 2};
  CHECK_NOTHROW(copy_part(stored, part(0), range, {2, 3}, out));
  CHECK_THROWS_AS(copy_part(std::span(stored).first(11), part(0), range, {2, 3}, out),
                  headroom::Error);
  CHECK_THROWS_AS(copy_part(stored, part(0), range, {2, 3}, std::span(out).first(5)),
                  headroom::Error);
}

TEST_CASE("a number is a matrix of one row and column") {
  CHECK(matrix_shape({}) == MatrixShape{1, 1});
  CHECK(matrix_shape(std::vector<std::int64_t>{3}) == MatrixShape{3, 1});
  CHECK(matrix_shape(std::vector<std::int64_t>{3, 4, 5}) == MatrixShape{3, 20});
}
