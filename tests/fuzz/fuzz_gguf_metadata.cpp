// A well-formed GGUF file with arbitrary metadata and tensors, from JSON
// {"metadata": {KEY: value}, "tensors": {NAME: [type, size…]}}: an error, or a config that can be
// read and a file that can be inspected.
#include <limits>
#include <nlohmann/json.hpp>
#include <string>

#include "fuzz_target.h"
#include "gguf.h"
#include "gguf/gguf_config.h"
#include "headroom/model_source.h"
#include "support/gguf_writer.h"

using namespace headroom;
using nlohmann::json;

namespace {

/// More data than that takes long to write, and is zeros.
constexpr std::int64_t kMostBytes = std::int64_t{1} << 20U;

std::vector<std::uint32_t> numbers_of(const json& list) {
  std::vector<std::uint32_t> numbers;
  for (const json& value : list)
    numbers.push_back(value.is_number_unsigned() ? value.get<std::uint32_t>() : 0);
  return numbers;
}

void add_metadata(test::GgufWriter& writer, const std::string& key, const json& value) {
  constexpr auto kInt64 = static_cast<std::uint32_t>(checkpoint::GgufValueType::int64);
  if (value.is_boolean()) {
    writer.add(key, value.get<bool>());
  } else if (value.is_number_unsigned() && value <= std::numeric_limits<std::uint32_t>::max()) {
    writer.add(key, value.get<std::uint32_t>());
  } else if (value.is_number_integer()) {
    writer.add_raw(key, kInt64, test::bytes_of(value.get<std::int64_t>()));
  } else if (value.is_number()) {
    writer.add(key, static_cast<float>(value.get<double>()));
  } else if (value.is_string()) {
    writer.add(key, value.get_ref<const std::string&>().c_str());
  } else if (value.is_array()) {
    writer.add(key, numbers_of(value));
  }
}

void add_tensor(test::GgufWriter& writer, const std::string& name, const json& entry) {
  if (!entry.is_array() || entry.size() < 2 || entry.size() > 5) return;
  const std::vector<std::uint32_t> numbers = numbers_of(entry);
  const auto type = checkpoint::ggml_type(numbers.front());
  const std::vector<std::int64_t> shape(numbers.begin() + 1, numbers.end());
  if (!type) return;
  const auto bytes = checkpoint::ggml_bytes(*type, shape);
  if (bytes && *bytes <= kMostBytes) {
    writer.tensor(name, shape, *type);
  } else {
    writer.tensor_raw(name, {shape.begin(), shape.end()}, numbers.front(), 0);
  }
}

std::string file_of(const json& description) {
  test::GgufWriter writer;
  if (const auto metadata = description.find("metadata"); metadata != description.end()) {
    for (const auto& [key, value] : metadata->items()) add_metadata(writer, key, value);
  }
  if (const auto tensors = description.find("tensors"); tensors != description.end()) {
    for (const auto& [name, entry] : tensors->items()) add_tensor(writer, name, entry);
  }
  return writer.str();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const json description = json::parse(data, data + size, nullptr, false);
  if (!description.is_object()) return 0;
  const std::string file = file_of(description);
  const bool valid = test::accepts([&] {
    const checkpoint::GgufContent content =
        checkpoint::parse_gguf(std::as_bytes(std::span(file)), "file");
    (void)test::accepts(
        [&] { (void)read_model_spec(detail::config_from_gguf(content, "file"), "file", "fuzz"); });
  });
  if (valid) test::inspect_bytes(reinterpret_cast<const std::uint8_t*>(file.data()), file.size());
  return 0;
}
