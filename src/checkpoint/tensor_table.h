// Tensor descriptions, stored compactly: a million of them use tens of megabytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <variant>
#include <vector>

#include "element_type.h"
#include "ggml_type.h"

namespace headroom::checkpoint {

/// Encoding of a tensor's elements, in its file format's terms.
using DataType = std::variant<StoredType, GgmlType>;

[[nodiscard]] std::string_view name_of(DataType type);

/// One tensor: row-major shape; `bytes` is its size in the file.
struct TensorInfo {
  std::string_view name;
  DataType type;
  std::span<const std::int64_t> shape;
  std::uint64_t begin = 0;  ///< begin of its data, from the end of the header
  std::uint64_t bytes = 0;
  std::size_t file = 0;

  [[nodiscard]] std::int64_t elements() const;
};

/// Tensors in insertion order, with lookup by name. Names are not copied: they must outlive the
/// table, in mapped files.
class TensorTable {
 public:
  /// Adds a tensor; returns false, and adds nothing, if its name exists already.
  bool add(const TensorInfo& tensor);
  void reserve(std::size_t tensors);

  [[nodiscard]] std::size_t size() const noexcept { return rows_.size(); }
  [[nodiscard]] TensorInfo operator[](std::size_t index) const;
  /// The index of the tensor named `name`.
  [[nodiscard]] std::optional<std::size_t> find(std::string_view name) const;

 private:
  struct Row {
    const char* name;
    std::uint64_t begin;
    std::uint64_t bytes;
    std::uint32_t name_length;
    std::uint32_t first_size;
    std::uint32_t file;
    DataType type;
    std::uint8_t rank;
  };
  [[nodiscard]] std::string_view name(std::size_t index) const;
  /// Part of the hash next to the index, so that few names are compared in vain.
  struct Slot {
    std::uint32_t hash;
    std::uint32_t index_plus_one;  ///< 0: empty
  };
  [[nodiscard]] static std::uint32_t hash_of(std::string_view name);
  /// The slot of `name`, or the empty slot for it.
  [[nodiscard]] std::size_t slot_of(std::string_view name, std::uint32_t hash) const;
  void grow_slots(std::size_t least);

  std::vector<Row> rows_;
  std::vector<std::int64_t> sizes_;
  std::vector<Slot> slots_;  ///< a hash table with open addressing
};

}  // namespace headroom::checkpoint
