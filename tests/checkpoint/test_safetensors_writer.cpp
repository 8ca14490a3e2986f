// Writing safetensors files: reading back gives the tensors, and a failure leaves no trace.
#include <doctest/doctest.h>
#include <sys/resource.h>

#include <algorithm>
#include <bit>
#include <csignal>
#include <limits>

#include "checkpoint/weight_files.h"
#include "safetensors.h"
#include "safetensors_writer.h"
#include "support/data.h"

using namespace headroom;
using namespace headroom::checkpoint;
using namespace headroom::test;

TEST_CASE("written tensors read back unchanged, aligned in the file") {
  const TempFolder folder;
  const std::vector<float> weights = {1.0F, -2.5F, 0x1p-149F, 3.4e38F, -0.0F, 7.0F};
  const std::vector<std::int64_t> ids = {-1, std::numeric_limits<std::int64_t>::max()};
  const std::vector<TensorToWrite> tensors = {
      {"tokens \"é\"", StoredType::uint8, {3}, std::vector<std::byte>(3, std::byte{7})},
      float32_tensor("weights", {2, 3}, weights),
      int64_tensor("ids", {2}, ids),
      float32_tensor("none", {0, 4}, {})};
  write_safetensors(folder / "w.safetensors", tensors);
  const SafetensorsFile file(folder / "w.safetensors");
  REQUIRE(file.tensors().size() == tensors.size());
  for (const TensorToWrite& written : tensors) {
    CAPTURE(written.name);
    const StoredTensor* const read = file.find(written.name);
    REQUIRE(read != nullptr);
    CHECK((read->type == written.type));
    CHECK(read->shape == written.shape);
    CHECK(std::ranges::equal(read->data, written.data));
    // The mapping is page-aligned.
    CHECK(std::bit_cast<std::uintptr_t>(read->data.data()) % (stored_bits(read->type) / 8) == 0);
  }
  std::vector<float> values(weights.size());
  copy_as_float32(*file.find("weights"), values, "w.safetensors: weights");
  CHECK(values == weights);
  const std::string text = read_file(folder / "w.safetensors");
  CHECK(static_cast<unsigned char>(text[0]) % 8 == 0);
  CHECK(text.find("\"ids\"") < text.find("\"none\""));
  write_safetensors(folder / "w.safetensors", {});
  CHECK(SafetensorsFile(folder / "w.safetensors").tensors().empty());
}

TEST_CASE("a failed write is an error and keeps the previous file") {
  const TempFolder folder;
  const std::vector<float> values(100'000);
  const std::vector<TensorToWrite> tensors = {float32_tensor("w", {100'000}, values)};
  for (const std::string name : {"absent/w", "."}) {
    const Error error = error_of([&] { write_safetensors(folder / name, tensors); });
    CHECK(error.code() == ErrorCode::missing_resource);
    CHECK(error.where() == (folder / name).string());
  }
  write_file(folder / "w", "before");
  rlimit usual{};
  REQUIRE(getrlimit(RLIMIT_FSIZE, &usual) == 0);
  const rlimit small{1000, usual.rlim_max};
  auto* const handler = std::signal(SIGXFSZ, SIG_IGN);
  REQUIRE(setrlimit(RLIMIT_FSIZE, &small) == 0);
  const Error error = error_of([&] { write_safetensors(folder / "w", tensors); });
  REQUIRE(setrlimit(RLIMIT_FSIZE, &usual) == 0);
  std::signal(SIGXFSZ, handler);
  CHECK(error.code() == ErrorCode::missing_resource);
  CHECK(read_file(folder / "w") == "before");
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 1);
}

TEST_CASE("invalid tensors are not written") {
  const TempFolder folder;
  const std::vector<float> two = {1.0F, 2.0F};
  const std::vector<std::vector<TensorToWrite>> invalid = {
      {float32_tensor("w", {3}, two)},
      {float32_tensor("w", {-1, -2}, two)},
      {float32_tensor("__metadata__", {2}, two)},
      {float32_tensor("\xff", {2}, two)},
      {float32_tensor("w", {2}, two), float32_tensor("w", {2}, two)}};
  for (const std::vector<TensorToWrite>& tensors : invalid) {
    const Error error = error_of([&] { write_safetensors(folder / "w", tensors); });
    CHECK(error.code() == ErrorCode::internal);
    CHECK_FALSE(std::filesystem::exists(folder / "w"));
  }
}
