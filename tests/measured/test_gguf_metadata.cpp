// Metadata of every architecture that is converted here, each key changed on its own: the file is
// read, or refused at one of its places, before any size of it is believed.
#include <doctest/doctest.h>

#include <limits>
#include <set>

#include "gguf.h"
#include "gguf/gguf_config.h"
#include "golden_folders.h"
#include "headroom/model_source.h"
#include "measured/gguf_converter.h"
#include "support/data.h"

using namespace headroom;
using namespace headroom::checkpoint;
using namespace headroom::test;

namespace {

using nlohmann::json;

constexpr std::int64_t kHuge = std::int64_t{1} << 40U;

/// Other values of the kind of `value`, and of another kind.
std::vector<json> other_values(const json& value) {
  if (value.is_boolean()) return {!value.get<bool>(), 2};
  if (value.is_string()) return {"unknown", "none", "yarn", 1};
  if (value.is_number_float()) {
    return {0.0F, -1.0F, std::numeric_limits<float>::infinity(), "text"};
  }
  if (value.is_number()) {
    const auto count = value.get<std::int64_t>();
    return {0, 1, count + 1, 2 * count, -1, kHuge, std::numeric_limits<std::int64_t>::max(), 1.5F};
  }
  json shorter = value;
  shorter.erase(shorter.size() - 1);
  json longer = value;
  longer.push_back(value.front());
  json other = value;
  other.back() = other_values(value.front()).front();
  return {json::array(), shorter, longer, other, value.front()};
}

/// A file of many sizes: its tensors are written once.
class ChangedMetadata {
 public:
  explicit ChangedMetadata(ConvertedModel model) : keys_(std::move(model.keys)) {
    for (const auto& [name, tensor] : model.tensors) tensors_.tensor(name, tensor.shape);
  }

  [[nodiscard]] const json& keys() const { return keys_; }

  /// Reads the file with `keys`; an error must say where. Returns whether it is read.
  [[nodiscard]] bool is_read(const json& keys) const {
    GgufWriter writer = tensors_;
    for (const auto& [key, value] : keys.items()) add_metadata(writer, key, value);
    const std::string bytes = writer.str();
    try {
      const GgufContent content = parse_gguf(std::as_bytes(std::span(bytes)), "model.gguf");
      const std::string config = detail::config_from_gguf(content, "model.gguf");
      (void)parameters_on(build_graph(read_model_spec(config, "model.gguf", "test"), {}));
      return true;
    } catch (const Error& error) {
      const std::string text = error.what();
      CAPTURE(text);
      CHECK(error.code() == ErrorCode::invalid_input);
      CHECK(text.starts_with("model.gguf"));
      CHECK_FALSE(error.hint().empty());
      return false;
    }
  }

 private:
  json keys_;
  GgufWriter tensors_;
};

/// Files that are read, and files that are refused.
struct Tally {
  std::size_t read = 0;
  std::size_t refused = 0;
};

void change_each_key(const ChangedMetadata& model, Tally& tally) {
  for (const auto& entry : model.keys().items()) {
    const std::string& key = entry.key();
    if (key == "general.architecture") continue;
    CAPTURE(key);
    json keys = model.keys();
    for (const json& other : other_values(entry.value())) {
      keys[key] = other;
      ++(model.is_read(keys) ? tally.read : tally.refused);
    }
    keys.erase(key);
    ++(model.is_read(keys) ? tally.read : tally.refused);
  }
}

}  // namespace

TEST_CASE("GGUF metadata with any one key changed or removed are read, or refused at a place") {
  Tally tally;
  std::set<std::string_view> tried;
  for (const auto& folder : models_with_outputs()) {
    json config = read_python_json(folder / "config.json");
    config.erase("time_step_limit");  // its Infinity is no JSON; the default of every class
    const GgufConverter* const how = find_gguf_converter(config);
    if (how == nullptr || !tried.insert(how->architecture).second) continue;
    CAPTURE(how->architecture);
    config.merge_patch(json::parse(how->fixed));
    const ChangedMetadata model(convert_to_gguf(*how, config, folder));
    CHECK(model.is_read(model.keys()));
    change_each_key(model, tally);
  }
  CHECK(tried.size() > 20);
  CHECK(tally.read > 1'000);
  CHECK(tally.refused > 1'000);
}
