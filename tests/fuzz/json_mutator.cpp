// Mutates JSON by its structure: values become others of any type, members move, repeat and vanish.
// Text that is not JSON, and every eighth input, is mutated byte by byte. Linked to all fuzzers of
// JSON.
#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

namespace {

using nlohmann::json;

class JsonMutator {
 public:
  JsonMutator(json document, unsigned seed) : document_(std::move(document)), random_(seed) {}

  [[nodiscard]] std::string mutated() && {
    for (std::size_t changes = 1 + below(3); changes > 0; --changes) change(any_value());
    return document_.dump(-1, ' ', false, json::error_handler_t::replace);
  }

 private:
  [[nodiscard]] std::size_t below(std::size_t count) { return random_() % count; }

  /// Any value of the document, itself included.
  [[nodiscard]] json& any_value() {
    std::vector<json*> values{&document_};
    for (std::size_t i = 0; i < values.size(); ++i) {
      for (json& child : *values[i]) {
        if (values[i]->is_structured()) values.push_back(&child);
      }
    }
    return *values[below(values.size())];
  }

  [[nodiscard]] json odd_value() {
    static const std::vector<json> kValues{nullptr,
                                           true,
                                           false,
                                           0,
                                           -1,
                                           1,
                                           2,
                                           3,
                                           7,
                                           128,
                                           255,
                                           65536,
                                           2147483647,
                                           4e9,
                                           0.5,
                                           -0.25,
                                           1e300,
                                           1e-300,
                                           INT64_MAX,
                                           INT64_MIN,
                                           UINT64_MAX,
                                           "",
                                           "auto",
                                           "\x1b[2J",
                                           "../x",
                                           "=1",
                                           json::array(),
                                           json::object(),
                                           json::array({1, 2}),
                                           json::array({"a", "a"}),
                                           9007199254740993,
                                           1e19};
    return kValues[below(kValues.size())];
  }

  void change(json& value) {
    switch (below(6)) {
      case 0:
        value = odd_value();
        return;
      case 1: {
        const json copy = any_value();  // which `value` may be part of
        value = copy;
        return;
      }
      case 2:
        change_number(value);
        return;
      case 3:
        if (value.is_structured() && !value.empty()) value.erase(any_member(value));
        return;
      case 4:
        add_member(value);
        return;
      default:
        rename_member(value);
    }
  }

  [[nodiscard]] json::iterator any_member(json& value) {
    return std::next(value.begin(), static_cast<std::ptrdiff_t>(below(value.size())));
  }

  void change_number(json& value) {
    if (!value.is_number_integer()) return;
    const auto number = value.get<std::uint64_t>();
    const std::uint64_t results[] = {number + 1, number - 1, number * 2, number / 2, 0 - number};
    value = static_cast<std::int64_t>(results[below(std::size(results))]);
  }

  void add_member(json& value) {
    const json copy = below(2) == 0 ? any_value() : odd_value();
    if (value.is_array()) {
      value.insert(value.begin() + static_cast<std::ptrdiff_t>(below(value.size() + 1)), copy);
    } else if (value.is_object()) {
      const json& other = any_value();
      value[other.is_object() && !other.empty() ? other.begin().key() : "x"] = copy;
    }
  }

  /// Gives a member the key of another.
  void rename_member(json& value) {
    if (!value.is_object() || value.empty()) return;
    const std::string from = any_member(value).key();
    const std::string to = any_member(value).key();
    const json moved = value[from];
    value.erase(from);
    value[to] = moved;
  }

  json document_;
  std::minstd_rand random_;
};

}  // namespace

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t max_size, unsigned int seed) {
  json document = json::parse(data, data + size, nullptr, false);
  if (document.is_discarded() || seed % 8 == 0) return LLVMFuzzerMutate(data, size, max_size);
  const std::string text = JsonMutator(std::move(document), seed).mutated();
  if (text.size() > max_size) return LLVMFuzzerMutate(data, size, max_size);
  std::memcpy(data, text.data(), text.size());
  return text.size();
}
