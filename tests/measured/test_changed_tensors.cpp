// Quantised safetensors of which one tensor is changed: another type, another shape, cut, or left
// out. Their numbers are judged elsewhere (test_quantized_weights.cpp); here nothing may be read
// beyond its end, and a refusal names the file.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <vector>

#include "headroom/error.h"
#include "headroom/model_source.h"
#include "measure.h"
#include "safetensors.h"
#include "safetensors_writer.h"
#include "session.h"
#include "support/data.h"
#include "support/sanitized.h"
#include "support/scratch.h"
#include "weight_reader.h"

namespace fs = std::filesystem;

namespace headroom::test {
namespace {

using checkpoint::StoredType;
using checkpoint::TensorToWrite;

/// Returns the changed tensor; empty if the tensor cannot be changed so.
using Change = std::function<std::optional<TensorToWrite>(TensorToWrite)>;

/// Another type of as many bytes.
std::optional<TensorToWrite> as(StoredType type, TensorToWrite tensor) {
  const bool is_as_large = checkpoint::stored_bits(tensor.type) == checkpoint::stored_bits(type);
  if (tensor.type == type || !is_as_large) return std::nullopt;
  tensor.type = type;
  return tensor;
}

std::optional<TensorToWrite> turned(TensorToWrite tensor) {
  if (tensor.shape.size() < 2 || tensor.shape.front() == tensor.shape.back()) return std::nullopt;
  std::ranges::reverse(tensor.shape);
  return tensor;
}

std::optional<TensorToWrite> flat(TensorToWrite tensor) {
  if (tensor.shape.size() == 1) return std::nullopt;
  std::int64_t elements = 1;
  for (const std::int64_t size : tensor.shape) elements *= size;
  tensor.shape = {elements};
  return tensor;
}

std::optional<TensorToWrite> with_first_size(std::int64_t size, TensorToWrite tensor) {
  if (tensor.shape.empty() || tensor.shape.front() <= size) return std::nullopt;
  const auto rows = static_cast<std::size_t>(tensor.shape.front());
  tensor.data.resize(tensor.data.size() / rows * static_cast<std::size_t>(size));
  tensor.shape.front() = size;
  return tensor;
}

std::optional<TensorToWrite> with_last_size_halved(TensorToWrite tensor) {
  if (tensor.shape.empty() || tensor.shape.back() % 2 != 0) return std::nullopt;
  tensor.shape.back() /= 2;
  tensor.data.resize(tensor.data.size() / 2);
  return tensor;
}

std::optional<TensorToWrite> with_bytes(std::byte value, TensorToWrite tensor) {
  std::ranges::fill(tensor.data, value);
  return tensor;
}

std::vector<Change> changes() {
  std::vector<Change> all{turned, flat, with_last_size_halved,
                          [](TensorToWrite tensor) {
                            tensor.shape.insert(tensor.shape.begin(), 1);
                            return std::optional(std::move(tensor));
                          },
                          [](TensorToWrite tensor) {
                            tensor.shape.push_back(1);
                            return std::optional(std::move(tensor));
                          }};
  for (const std::int64_t size : {0, 1, 3}) {
    all.emplace_back(
        [size](TensorToWrite tensor) { return with_first_size(size, std::move(tensor)); });
  }
  for (const std::byte value : {std::byte{0}, std::byte{0x7f}, std::byte{0xff}}) {
    all.emplace_back(
        [value](TensorToWrite tensor) { return with_bytes(value, std::move(tensor)); });
  }
  for (const StoredType type :
       {StoredType::int8, StoredType::uint8, StoredType::float8_e4m3, StoredType::float8_e8m0,
        StoredType::float16, StoredType::bfloat16, StoredType::int16, StoredType::float32,
        StoredType::int32, StoredType::uint32}) {
    all.emplace_back([type](TensorToWrite tensor) { return as(type, std::move(tensor)); });
  }
  return all;
}

std::vector<TensorToWrite> tensors_of(const fs::path& file) {
  const checkpoint::SafetensorsFile content(file);
  std::vector<TensorToWrite> tensors;
  for (const checkpoint::StoredTensor& tensor : content.tensors()) {
    tensors.push_back(
        {tensor.name, tensor.type, tensor.shape, {tensor.data.begin(), tensor.data.end()}});
  }
  return tensors;
}

/// A folder whose weights are replaced, and loaded as stored and as float32 in turn.
class ChangedFolder {
 public:
  explicit ChangedFolder(const fs::path& folder) {
    fs::copy_file(folder / "config.json", scratch_.path() / "config.json");
    spec_ = load_model(scratch_.path().string()).spec;
  }

  /// False if the weights are refused.
  [[nodiscard]] bool reads(const std::vector<TensorToWrite>& tensors) {
    checkpoint::write_safetensors(scratch_.path() / "model.safetensors", tensors);
    options_.storage = options_.storage == measured::HeldType::stored ? measured::HeldType::float32
                                                                      : measured::HeldType::stored;
    try {
      const auto source =
          measured::stored_weights(spec_, headroom::detail::read_packed(scratch_.path()));
      const measured::Session session(spec_, *source, options_);
      return true;
    } catch (const Error& error) {
      CAPTURE(error.what());
      CHECK(error.code() != ErrorCode::internal);
      CHECK(error.where() != "");
      CHECK(error.hint() != "");
      return false;
    }
  }

 private:
  ScratchFolder scratch_;
  ModelSpec spec_;
  measured::SessionOptions options_;
};

/// Numbers of changed files.
struct Outcomes {
  std::int64_t read = 0;
  std::int64_t refused = 0;
};

void change_each(const fs::path& folder, std::size_t step, Outcomes& outcomes) {
  std::vector<TensorToWrite> tensors = tensors_of(folder / "model.safetensors");
  ChangedFolder changed(folder);
  REQUIRE(changed.reads(tensors));
  const auto count = [&] { ++(changed.reads(tensors) ? outcomes.read : outcomes.refused); };
  const std::vector<Change> all = changes();
  for (std::size_t i = 0; i < tensors.size(); i += step) {
    const TensorToWrite whole = tensors[i];
    CAPTURE(whole.name);
    for (const Change& change : all) {
      const auto other = change(whole);
      if (!other) continue;
      tensors[i] = *other;
      count();
    }
    tensors.erase(tensors.begin() + static_cast<std::ptrdiff_t>(i));
    count();
    tensors.insert(tensors.begin() + static_cast<std::ptrdiff_t>(i), whole);
  }
}

}  // namespace

// A prime, so that tensors of all kinds are changed.
constexpr std::size_t kTensorStep = kSanitized ? 43 : 11;

TEST_CASE("quantised files with any one tensor changed are read, or refused at a place") {
  Outcomes outcomes;
  for (const auto& entry : fs::directory_iterator(data_folder() / "quantized")) {
    CAPTURE(entry.path().filename().string());
    change_each(entry.path(), kTensorStep, outcomes);
  }
  MESSAGE(outcomes.read, " read, ", outcomes.refused, " refused");
  CHECK(outcomes.refused > outcomes.read);
  CHECK(outcomes.read > 20);
}

}  // namespace headroom::test
