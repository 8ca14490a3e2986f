// A model's weights: one file, or shards and an index that agree.
#include <doctest/doctest.h>

#include "checkpoint.h"
#include "checkpoint/weight_files.h"
#include "model_files.h"
#include "safetensors_writer.h"
#include "shard_index.h"
#include "support/data.h"

using namespace headroom;
using namespace headroom::checkpoint;
using namespace headroom::test;

namespace fs = std::filesystem;

namespace {

const std::string kIndex = "model.safetensors.index.json";

void write_tensor(const fs::path& path, const std::string& name, float value) {
  const std::vector<TensorToWrite> tensors = {float32_tensor(name, {1}, {{value}})};
  write_safetensors(path, tensors);
}

/// Two shards with one tensor each, and an index with this weight map.
void write_shards(const TempFolder& folder, const std::string& weight_map) {
  write_tensor(folder / "one.safetensors", "a", 1.0F);
  write_tensor(folder / "two.safetensors", "b", 2.0F);
  write_file(folder / kIndex, R"({"metadata":{"total_size":8},"weight_map":)" + weight_map + "}");
}

float value_of(const Checkpoint& weights, const std::string& name) {
  const StoredTensor* const tensor = weights.find(name);
  REQUIRE(tensor != nullptr);
  float value = 0;
  copy_as_float32(*tensor, {&value, 1}, tensor_place(weights.location(name), name));
  return value;
}

/// The place of the error from opening the folder, relative to the folder; both readers of folders
/// agree about the file.
std::string place_of(const TempFolder& folder) {
  const Error error = input_error_of([&] { Checkpoint weights(folder.path()); });
  const Error other = input_error_of([&] { ModelFiles files(folder.path()); });
  CHECK(error.where().starts_with(other.where()));
  const std::string start = folder.path().string();
  REQUIRE(error.where().starts_with(start));
  return error.where().substr(start.size());
}

std::string place_with_map(const std::string& weight_map) {
  CAPTURE(weight_map);
  const TempFolder folder;
  write_shards(folder, weight_map);
  return place_of(folder);
}

}  // namespace

TEST_CASE("a single file opens through its folder and its path") {
  const TempFolder folder;
  CHECK_FALSE(Checkpoint::exists(folder.path()));
  CHECK_FALSE(Checkpoint::exists(folder / "model.safetensors"));
  write_tensor(folder / "model.safetensors", "w", 3.0F);
  const std::string file = (folder / "model.safetensors").string();
  for (const fs::path& path : {folder.path(), fs::path(file)}) {
    CHECK(Checkpoint::exists(path));
    const Checkpoint weights(path);
    CHECK(weights.names() == std::vector<std::string>{"w"});
    CHECK(value_of(weights, "w") == 3.0F);
    CHECK(weights.location("w") == file);
    CHECK(weights.location("absent") == file);
    CHECK(weights.find("absent") == nullptr);
  }
}

TEST_CASE("shards open through their index and survive a move") {
  const TempFolder folder;
  write_shards(folder, R"({"b":"two.safetensors","a":"one.safetensors"})");
  CHECK(Checkpoint::exists(folder.path()));
  for (const fs::path& path : {folder.path(), folder / kIndex}) {
    Checkpoint opened(path);
    const Checkpoint weights = std::move(opened);
    CHECK(weights.names() == std::vector<std::string>{"a", "b"});
    CHECK(value_of(weights, "a") == 1.0F);
    CHECK(value_of(weights, "b") == 2.0F);
    CHECK(weights.location("b") == (folder / "two.safetensors").string());
    CHECK(weights.location("absent") == (folder / kIndex).string());
  }
}

TEST_CASE("a single file takes precedence over an index, as in safetensors") {
  const TempFolder folder;
  write_shards(folder, R"({"a":"one.safetensors","b":"two.safetensors"})");
  write_tensor(folder / "model.safetensors", "w", 3.0F);
  CHECK(Checkpoint(folder.path()).names() == std::vector<std::string>{"w"});
}

TEST_CASE("a folder without weights and a missing folder are refused") {
  const TempFolder folder;
  CHECK(place_of(folder).empty());
  fs::create_directory(folder / "model.safetensors");
  CHECK(place_of(folder).empty());
  const Error error = input_error_of([&] { Checkpoint weights(folder / "absent"); });
  CHECK(error.where() == (folder / "absent").string());
}

TEST_CASE("the error names a missing or damaged shard") {
  CHECK(place_with_map(R"({"a":"one.safetensors","b":"three.safetensors"})") ==
        "/three.safetensors");
  const TempFolder folder;
  write_shards(folder, R"({"a":"one.safetensors","b":"two.safetensors"})");
  write_file(folder / "two.safetensors", "damaged");
  CHECK(place_of(folder) == "/two.safetensors");
}

TEST_CASE("index and shards must list exactly the same tensors") {
  CHECK(place_with_map(R"({"a":"one.safetensors","b":"two.safetensors","c":"two.safetensors"})") ==
        "/two.safetensors: c");
  CHECK(place_with_map(R"({"a":"two.safetensors"})") == "/two.safetensors: b");
  CHECK(place_with_map(R"({"a":"two.safetensors","b":"two.safetensors"})") ==
        "/two.safetensors: a");
  CHECK(place_with_map(R"({"a":"two.safetensors","b":"one.safetensors"})") ==
        "/one.safetensors: a");
  // Two shards have the tensor: the index lists it in one.
  const TempFolder folder;
  write_shards(folder, R"({"a":"one.safetensors","b":"two.safetensors"})");
  const std::vector<TensorToWrite> both = {float32_tensor("a", {0}, {}),
                                           float32_tensor("b", {0}, {})};
  write_safetensors(folder / "two.safetensors", both);
  CHECK(place_of(folder) == "/two.safetensors: a");
  const Error error = input_error_of([&] { Checkpoint weights(folder.path()); });
  CHECK(error.message() == "the index lists it in one.safetensors, not in this file");
  const Error other = input_error_of([&] { ModelFiles files(folder.path()); });
  CHECK(other.where() == (folder / "two.safetensors").string() + ": a");
  CHECK(other.message() == "another file of the index has it, too");
  CHECK(other.hint() == error.hint());
}

TEST_CASE("a shard's name cannot leave the folder") {
  const TempFolder outside;
  write_tensor(outside / "evil.safetensors", "a", 1.0F);
  for (const std::string& name :
       {std::string("../evil"), (outside / "evil.safetensors").string(),
        std::string("sub/one.safetensors"), std::string(".."), std::string("."), std::string(),
        std::string(".\\\\one"), std::string("one.safetensors\\u0000.txt")}) {
    CHECK(place_with_map(R"({"a":")" + name + "\"}") == "/" + kIndex + ": a");
  }
}

TEST_CASE("an index that is not a map of strings is refused") {
  for (const std::string map : {"3", "[]", "null", "\"one.safetensors\""}) {
    CHECK(place_with_map(map) == "/" + kIndex + "#/weight_map");
  }
  CHECK(place_with_map(R"({"a":3})") == "/" + kIndex + ": a");
  CHECK(place_with_map(R"({"a":"one.safetensors","a":"two.safetensors"})") == "/" + kIndex);
  const TempFolder folder;
  for (const std::string& text : {std::string(), std::string("[]"), std::string("{"),
                                  std::string(R"({"weight_map":{}} x)"), std::string("{}\0", 3)}) {
    write_file(folder / kIndex, text);
    CHECK(place_of(folder) == "/" + kIndex);
  }
  write_file(folder / kIndex, "{}");
  CHECK(place_of(folder) == "/" + kIndex + "#/weight_map");
}

TEST_CASE("every reference checkpoint and every file of expected outputs is read") {
  for (const fs::path& model : golden_models()) {
    CAPTURE(model);
    const Checkpoint weights(model);
    const TensorShapes shapes = safetensors_shapes(model / "model.safetensors");
    CHECK(weights.names().size() == shapes.size());
    for (const auto& [name, shape] : shapes) {
      REQUIRE(weights.find(name) != nullptr);
      const StoredTensor& tensor = *weights.find(name);
      CHECK(tensor.shape == shape);
      if (tensor.type == StoredType::int64) continue;  // a counter of batches, not a weight
      std::vector<float> values(tensor.data.size() * 8 / stored_bits(tensor.type));
      copy_as_float32(tensor, values, tensor_place(weights.location(name), name));
    }
    CHECK_FALSE(SafetensorsFile(model / "expected.safetensors").tensors().empty());
  }
  CHECK(golden_models().size() >= 3);
}

TEST_CASE("a file that changes after it was opened is an error") {
  const TempFolder folder;
  write_tensor(folder / "model.safetensors", "w", 3.0F);
  const Checkpoint weights(folder.path());
  const ModelFiles files(folder.path());
  CHECK_NOTHROW(weights.require_unchanged());
  CHECK_NOTHROW(files.require_unchanged());
  write_file(folder / "model.safetensors", "shorter");
  const std::string file = (folder / "model.safetensors").string();
  CHECK(input_error_of([&] { weights.require_unchanged(); }).where() == file);
  CHECK(input_error_of([&] { files.require_unchanged(); }).where() == file);
}

TEST_CASE("an index's sums are whole numbers, however they are written, or unknown") {
  const TempFolder folder;
  const auto size_in = [&](const std::string& metadata) {
    write_file(folder / kIndex, "{" + metadata + R"("weight_map":{"a":"absent.safetensors"}})");
    const ShardIndexSummary summary = summarize_shard_index(folder / kIndex);
    CHECK(summary.tensors == 1);
    CHECK(summary.absent_files == 1);
    return summary.total_size;
  };
  CHECK(size_in(R"("metadata":{"total_size":8},)") == 8);
  CHECK(size_in(R"("metadata":{"total_size":8.0},)") == 8);
  for (const char* metadata :
       {"", R"("metadata":3,)", R"("metadata":{},)", R"("metadata":{"total_size":"8"},)",
        R"("metadata":{"total_size":-8},)", R"("metadata":{"total_size":8.5},)",
        R"("metadata":{"total_size":1e300},)"}) {
    CAPTURE(metadata);
    CHECK_FALSE(size_in(metadata).has_value());
  }
}

TEST_CASE("a config in the place of an index is refused by what it is, a huge file unread") {
  const TempFolder folder;
  write_file(folder / kIndex, R"({"model_type":"llama"})");
  const Error config = input_error_of([&] { (void)read_shard_index(folder / kIndex); });
  CHECK(config.message().find("config") != std::string::npos);
  fs::resize_file(folder / kIndex, 100'000'001);  // sparse: takes no space
  const Error huge = input_error_of([&] { (void)read_shard_index(folder / kIndex); });
  CHECK(huge.message().find("100000001 bytes") != std::string::npos);
}
