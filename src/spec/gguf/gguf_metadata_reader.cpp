#include "gguf_metadata_reader.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "headroom/error.h"
#include "reading_limits.h"
#include "utf8.h"
#include "visit.h"

namespace headroom::detail {
namespace {

using checkpoint::GgufArray;
using checkpoint::GgufTensor;
using checkpoint::GgufValue;
using checkpoint::GgufValueType;
using nlohmann::json;

constexpr const char* kHint = "convert the model again with a current converter";

/// The shortest decimal that rounds to the float32 `value`.
double shortest(double value) {
  const auto narrow = static_cast<float>(value);
  if (static_cast<double>(narrow) != value) return value;
  return std::stod(fmt::format("{}", narrow));
}

}  // namespace

GgufMetadataReader::GgufMetadataReader(const checkpoint::GgufContent& content, std::string file)
    : content_(content), file_(std::move(file)) {
  const GgufValue* const value = find("general.architecture");
  const auto* const text = value == nullptr ? nullptr : std::get_if<std::string_view>(value);
  if (text == nullptr || !is_printable_utf8(*text)) {
    throw Error(ErrorCode::invalid_input, "has no text general.architecture", file_, kHint);
  }
  architecture_ = *text;
  tensors_.reserve(content_.tensors.size());
  for (const GgufTensor& tensor : content_.tensors) tensors_.try_emplace(tensor.name, &tensor);
}

const GgufValue* GgufMetadataReader::find(std::string_view key) const {
  const auto found = content_.metadata.find(key);
  return found == content_.metadata.end() ? nullptr : &found->second;
}

bool GgufMetadataReader::is_present(std::string_view key) const {
  return find(fmt::format("{}.{}", architecture_, key)) != nullptr;
}

std::string GgufMetadataReader::place(std::string_view key) const {
  return fmt::format("{}: {}.{}", file_, architecture_, key);
}

void GgufMetadataReader::fail(std::string_view key, const std::string& message) const {
  throw Error(ErrorCode::invalid_input, message, place(key), kHint);
}

std::optional<json> GgufMetadataReader::value(std::string_view key) const {
  const GgufValue* const found = find(fmt::format("{}.{}", architecture_, key));
  if (found == nullptr) return std::nullopt;
  const auto list = [&](const GgufArray& array) -> json {
    const auto values = array.integers(place(key));
    if (values.empty()) fail(key, "is an empty list");
    const bool equal =
        std::ranges::all_of(values, [&](std::int64_t other) { return other == values.front(); });
    if (equal) return values.front();
    constexpr std::size_t kShown = 8;
    fail(key, fmt::format("differs between layers ({}{}), which this family's config cannot "
                          "express",
                          fmt::join(values.begin(),
                                    values.begin() + static_cast<std::ptrdiff_t>(
                                                         std::min(values.size(), kShown)),
                                    ", "),
                          values.size() > kShown ? ", …" : ""));
  };
  const auto number = [&](double value) -> json {
    if (!std::isfinite(value)) fail(key, "is not finite");
    return shortest(value);
  };
  const auto text = [&](std::string_view value) -> json {
    if (!is_printable_utf8(value)) fail(key, "is not valid text");
    return std::string(value);
  };
  const auto as_it_is = [](auto value) -> json { return value; };
  return std::visit(Overloaded{[&](std::uint64_t value) { return as_it_is(value); },
                               [&](std::int64_t value) { return as_it_is(value); },
                               [&](bool value) { return as_it_is(value); }, number, text, list},
                    *found);
}

std::optional<std::string> GgufMetadataReader::text(std::string_view key) const {
  const auto found = value(key);
  if (!found || !found->is_string()) return std::nullopt;
  return found->get<std::string>();
}

std::optional<double> GgufMetadataReader::number(std::string_view key) const {
  const auto found = value(key);
  if (!found || !found->is_number()) return std::nullopt;
  return found->get<double>();
}

std::optional<std::int64_t> GgufMetadataReader::count(std::string_view key) const {
  const auto found = value(key);
  if (!found) return std::nullopt;
  const bool fits = found->is_number_integer() &&
                    (!found->is_number_unsigned() ||
                     found->get<std::uint64_t>() <=
                         static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()));
  if (!fits || found->get<std::int64_t>() < 0) fail(key, "is not a whole number");
  return found->get<std::int64_t>();
}

std::optional<std::vector<bool>> GgufMetadataReader::flags_by_layer(std::string_view key) const {
  const GgufValue* const found = find(fmt::format("{}.{}", architecture_, key));
  const auto* const list = found == nullptr ? nullptr : std::get_if<GgufArray>(found);
  if (list == nullptr) return std::nullopt;
  if (list->type != GgufValueType::boolean) fail(key, "lists no flags");
  std::vector<bool> flags = list->flags(place(key));
  if (std::ssize(flags) < layers()) fail(key, "does not list block_count layers");
  return flags;
}

std::vector<std::int64_t> GgufMetadataReader::counts(std::string_view key) const {
  const GgufValue* const found = find(fmt::format("{}.{}", architecture_, key));
  const auto* const list = found == nullptr ? nullptr : std::get_if<GgufArray>(found);
  if (list == nullptr) return {};
  std::vector<std::int64_t> counts = list->integers(place(key));
  if (std::ranges::any_of(counts, [](std::int64_t one) { return one < 0; })) {
    fail(key, "lists a negative count");
  }
  return counts;
}

std::optional<std::vector<double>> GgufMetadataReader::numbers_by_layer(
    std::string_view key) const {
  const GgufValue* const found = find(fmt::format("{}.{}", architecture_, key));
  const auto* const list = found == nullptr ? nullptr : std::get_if<GgufArray>(found);
  if (list == nullptr) return std::nullopt;
  return list->numbers(place(key));
}

std::int64_t GgufMetadataReader::blocks() const {
  const std::int64_t blocks = count("block_count").value_or(0);
  if (blocks > kMostLayers) fail("block_count", "is not a number of layers");
  return blocks;
}

std::int64_t GgufMetadataReader::layers() const {
  const std::int64_t prediction = count("nextn_predict_layers").value_or(0);
  if (prediction > blocks()) fail("nextn_predict_layers", "exceeds block_count");
  return blocks() - prediction;
}

std::vector<std::int64_t> GgufMetadataReader::counts_by_layer(std::string_view key) const {
  const GgufValue* const found = find(fmt::format("{}.{}", architecture_, key));
  const auto* const list = found == nullptr ? nullptr : std::get_if<GgufArray>(found);
  if (list == nullptr) {
    const auto one = count(key);
    if (!one) fail(key, "is missing");
    return std::vector<std::int64_t>(static_cast<std::size_t>(blocks()), *one);
  }
  std::vector<std::int64_t> counts = list->integers(place(key));
  if (std::ssize(counts) != blocks()) fail(key, "does not list block_count layers");
  if (std::ranges::any_of(counts, [](std::int64_t one) { return one < 0; })) {
    fail(key, "lists a negative count");
  }
  return counts;
}

bool GgufMetadataReader::is_set(std::string_view key) const {
  const auto found = value(key);
  if (!found) return false;
  if (found->is_boolean()) return found->get<bool>();
  return count(key).value_or(0) > 0;
}

bool GgufMetadataReader::has_tensor(std::string_view name) const { return tensors_.contains(name); }

std::optional<std::int64_t> GgufMetadataReader::rows(std::string_view tensor) const {
  const auto found = tensors_.find(tensor);
  if (found == tensors_.end()) return std::nullopt;
  return found->second->rank == 2 ? found->second->shape().front() : 1;
}

std::int64_t GgufMetadataReader::vocab_size() const {
  if (const auto words = rows("token_embd.weight"); words && *words > 1) return *words;
  if (const auto said = count("vocab_size")) return *said;
  const GgufValue* const words = find("tokenizer.ggml.tokens");
  const auto* const list = words == nullptr ? nullptr : std::get_if<GgufArray>(words);
  if (list == nullptr)
    fail("vocab_size", "is missing, and there is no token list or embedding table to count");
  return static_cast<std::int64_t>(
      std::min<std::uint64_t>(list->count, std::numeric_limits<std::int32_t>::max()));
}

}  // namespace headroom::detail
