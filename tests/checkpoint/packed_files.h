// Safetensors with packed weights, for tests of what they unpack to.
#pragma once

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "grouped_weights.h"
#include "headroom/error.h"
#include "safetensors_writer.h"
#include "support/scratch.h"
#include "weight_reader.h"

namespace headroom::test {

using Tensors = std::vector<checkpoint::TensorToWrite>;

/// A tensor whose bytes all have the value `fill`.
[[nodiscard]] inline checkpoint::TensorToWrite filled_with(int fill, std::string name,
                                                           checkpoint::StoredType type,
                                                           std::vector<std::int64_t> shape) {
  const std::size_t bytes = checkpoint::stored_bytes(type, shape).value();
  return {std::move(name), type, std::move(shape), std::vector(bytes, std::byte(fill))};
}

/// A vector of these bytes.
[[nodiscard]] inline checkpoint::TensorToWrite text_tensor(std::string name,
                                                           std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {std::move(name),
          checkpoint::StoredType::uint8,
          {static_cast<std::int64_t>(text.size())},
          {bytes.begin(), bytes.end()}};
}

/// A vector of these numbers.
[[nodiscard]] inline checkpoint::TensorToWrite integers(std::string name,
                                                        const std::vector<std::int32_t>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return {std::move(name),
          checkpoint::StoredType::int32,
          {static_cast<std::int64_t>(values.size())},
          {bytes.begin(), bytes.end()}};
}

/// A folder with these tensors, and with this config.json unless it is empty.
[[nodiscard]] inline std::unique_ptr<ScratchFolder> packed_folder(const Tensors& tensors,
                                                                  std::string_view config = {}) {
  auto folder = std::make_unique<ScratchFolder>();
  checkpoint::write_safetensors(folder->path() / "model.safetensors", tensors);
  if (!config.empty()) folder->write("config.json", config);
  return folder;
}

/// Why the weight `name` in `folder` is not read; empty if it is.
[[nodiscard]] inline std::string reason_against(const ScratchFolder& folder,
                                                const std::string& name = "x.weight",
                                                std::optional<std::int64_t> expert = {}) {
  try {
    (void)detail::read_packed(folder.path())->read_groups(name, expert);
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::invalid_input);
    CHECK(error.where().find("model.safetensors") != std::string::npos);
    CHECK(error.hint() != "");
    return error.message();
  }
  return {};
}

[[nodiscard]] inline std::string reason_against(const Tensors& tensors) {
  return reason_against(*packed_folder(tensors));
}

}  // namespace headroom::test
