#include "tensor_table.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <limits>
#include <utility>

#include "headroom/error.h"

namespace headroom::checkpoint {
namespace {

constexpr std::size_t kLeastSlots = 64;

/// No format allows more dimensions, and no published model has more than five.
constexpr std::size_t kMostDimensions = 64;

}  // namespace

std::string_view name_of(DataType type) {
  if (const auto* const stored = std::get_if<StoredType>(&type)) return stored_name(*stored);
  return info(std::get<GgmlType>(type)).name;
}

std::int64_t TensorInfo::elements() const {
  std::int64_t product = 1;
  for (const std::int64_t size : shape) product *= size;  // fits: checked on reading
  return product;
}

void TensorTable::reserve(std::size_t tensors) {
  rows_.reserve(tensors);
  sizes_.reserve(2 * tensors);
  grow_slots(2 * tensors);
}

std::string_view TensorTable::name(std::size_t index) const {
  return {rows_[index].name, rows_[index].name_length};
}

std::uint32_t TensorTable::hash_of(std::string_view wanted) {
  return static_cast<std::uint32_t>(std::hash<std::string_view>{}(wanted));
}

std::size_t TensorTable::slot_of(std::string_view wanted, std::uint32_t hash) const {
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t at = hash & mask;; at = (at + 1) & mask) {
    const Slot& slot = slots_[at];
    if (slot.index_plus_one == 0) return at;
    if (slot.hash == hash && name(slot.index_plus_one - 1) == wanted) return at;
  }
}

void TensorTable::grow_slots(std::size_t least) {
  const std::size_t size = std::bit_ceil(std::max(least, kLeastSlots));
  if (size <= slots_.size()) return;
  std::vector<Slot> grown(size);
  const std::size_t mask = size - 1;
  for (const Slot& slot : slots_) {
    if (slot.index_plus_one == 0) continue;
    std::size_t at = slot.hash & mask;
    while (grown[at].index_plus_one != 0) at = (at + 1) & mask;
    grown[at] = slot;
  }
  slots_ = std::move(grown);
}

bool TensorTable::add(const TensorInfo& tensor) {
  constexpr std::size_t kMost = std::numeric_limits<std::uint32_t>::max() / 2;
  if (rows_.size() >= kMost || sizes_.size() >= kMost || tensor.name.size() >= kMost ||
      tensor.shape.size() > kMostDimensions) {
    throw Error(ErrorCode::invalid_input, "more tensors or dimensions than the table can list",
                std::string(tensor.name.substr(0, kMostDimensions)), "list fewer files at once");
  }
  grow_slots(2 * (rows_.size() + 1));
  const std::uint32_t hash = hash_of(tensor.name);
  Slot& slot = slots_[slot_of(tensor.name, hash)];
  if (slot.index_plus_one != 0) return false;
  rows_.push_back({tensor.name.data(), tensor.begin, tensor.bytes,
                   static_cast<std::uint32_t>(tensor.name.size()),
                   static_cast<std::uint32_t>(sizes_.size()),
                   static_cast<std::uint32_t>(tensor.file), tensor.type,
                   static_cast<std::uint8_t>(tensor.shape.size())});
  sizes_.insert(sizes_.end(), tensor.shape.begin(), tensor.shape.end());
  slot = {hash, static_cast<std::uint32_t>(rows_.size())};
  return true;
}

TensorInfo TensorTable::operator[](std::size_t index) const {
  const Row& row = rows_[index];
  return {name(index), row.type,  std::span(sizes_).subspan(row.first_size, row.rank),
          row.begin,   row.bytes, row.file};
}

std::optional<std::size_t> TensorTable::find(std::string_view wanted) const {
  if (slots_.empty()) return std::nullopt;
  const std::uint32_t found = slots_[slot_of(wanted, hash_of(wanted))].index_plus_one;
  if (found == 0) return std::nullopt;
  return found - 1;
}

}  // namespace headroom::checkpoint
