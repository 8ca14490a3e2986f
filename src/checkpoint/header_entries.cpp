#include "header_entries.h"

#include <fmt/format.h>

#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "headroom/error.h"
#include "safetensors.h"
#include "shard_index.h"

namespace headroom::checkpoint {
namespace {

/// Reads entries one after another and reuses its buffers.
class EntryReader {
 public:
  EntryReader(HeaderScanner& header, std::uint64_t data_size, std::size_t file)
      : header_(header), data_size_(data_size), file_(file) {}

  /// Reads the tensor `name`; its shape is valid until the next call.
  TensorInfo read(std::string_view name) {
    name_ = name;
    type_.reset();
    has_shape_ = false;
    offsets_.clear();
    read_keys();
    require_keys();
    return checked();
  }

 private:
  [[nodiscard]] std::string place() const { return tensor_place(header_.file(), name_); }

  void read_keys() {
    if (!header_.accept('{')) {
      // A value of another type is an error of this tensor; anything else is an error of the
      // header.
      if (std::string_view("\"[-0123456789tfn").find(header_.peek()) != std::string_view::npos) {
        throw_damaged(place(), "its description is not a JSON object");
      }
      header_.fail("a value is missing");
    }
    if (header_.accept('}')) return;
    do {
      read_key(header_.text());
    } while (header_.accept(','));
    header_.expect('}');
  }

  void read_key(std::string_view key) {
    header_.expect(':');
    if (key == "dtype" && !type_) {
      read_type();
    } else if (key == "shape" && !has_shape_) {
      read_list(key, shape_);
      has_shape_ = true;
    } else if (key == "data_offsets" && offsets_.empty()) {
      read_list(key, offsets_);
      if (offsets_.size() != 2)
        throw_damaged(place(), "\"data_offsets\" does not have two numbers");
    } else {
      throw_damaged(place(), "it has a key other than dtype, shape and data_offsets, or one twice");
    }
  }

  void read_type() {
    if (header_.peek() != '"') throw_damaged(place(), "\"dtype\" is not a string");
    const std::string_view word = header_.text();
    type_ = stored_type(word);
    if (type_) return;
    throw Error(ErrorCode::invalid_input, fmt::format("the data type \"{}\" is unknown", word),
                place(), "convert the weights to F32, F16 or BF16");
  }

  /// Reads sizes or offsets: integers from 0 to 2^63 - 1.
  void read_list(std::string_view key, std::vector<std::int64_t>& list) {
    list.clear();
    bool valid = header_.accept('[');
    if (valid && header_.accept(']')) return;
    while (valid) {
      const auto number = header_.natural();
      if (number) list.push_back(*number);
      valid = number && header_.peek() == ',';
      if (valid) header_.expect(',');
    }
    if (header_.accept(']')) return;
    throw_damaged(place(), fmt::format("\"{}\" is not a list of integers from 0 to 2^63 - 1", key));
  }

  void require_keys() const {
    if (!type_) throw_damaged(place(), "it has no \"dtype\"");
    if (!has_shape_) throw_damaged(place(), "it has no \"shape\"");
    if (offsets_.empty()) throw_damaged(place(), "it has no \"data_offsets\"");
  }

  /// Returns the tensor if its data lie inside the file and match its shape.
  [[nodiscard]] TensorInfo checked() const {
    const auto begin = static_cast<std::uint64_t>(offsets_[0]);
    const auto end = static_cast<std::uint64_t>(offsets_[1]);
    if (begin > end) {
      throw_damaged(place(), fmt::format("its data end at {}, before {}", end, begin));
    }
    if (end > data_size_) {
      throw_damaged(place(), fmt::format("its data end at {} of {} bytes", end, data_size_));
    }
    const auto bytes = stored_bytes(*type_, shape_);
    if (!bytes) throw_damaged(place(), "its shape exceeds any file or ends inside a byte");
    if (*bytes != end - begin) {
      throw_damaged(place(), fmt::format("its shape needs {} bytes and its data have {}", *bytes,
                                         end - begin));
    }
    return {name_, *type_, shape_, begin, end - begin, file_};
  }

  HeaderScanner& header_;
  std::uint64_t data_size_;
  std::size_t file_;
  std::string_view name_;
  std::optional<StoredType> type_;
  bool has_shape_ = false;
  std::vector<std::int64_t> shape_;
  std::vector<std::int64_t> offsets_;
};

/// "__metadata__": an object of strings.
void skip_metadata(HeaderScanner& header) {
  const std::string place = tensor_place(header.file(), "__metadata__");
  if (!header.accept('{')) throw_damaged(place, "is not an object of strings");
  if (header.accept('}')) return;
  std::set<std::string_view> keys;
  do {
    if (!keys.insert(header.text()).second) header.fail("a key is listed twice");
    header.expect(':');
    if (header.peek() != '"') throw_damaged(place, "is not an object of strings");
    (void)header.text();
  } while (header.accept(','));
  header.expect('}');
}

/// Refuses a tensor that `table` has from this file, which is damaged, or from another one.
[[noreturn]] void refuse_second(const HeaderScanner& header, std::string_view name,
                                std::size_t file, const TensorTable& table) {
  const auto first = table.find(name);
  const bool in_this_file = !first || table[*first].file == file;
  if (in_this_file) header.fail(fmt::format("the key \"{}\" is listed twice", name));
  refuse_shards(tensor_place(header.file(), name), "another file of the index has it, too");
}

}  // namespace

void read_entries(HeaderScanner& header, std::uint64_t data_size, std::size_t file,
                  TensorTable& table) {
  EntryReader entries(header, data_size, file);
  bool has_metadata = false;
  header.expect('{');
  if (!header.accept('}')) {
    do {
      const std::string_view name = header.text();
      header.expect(':');
      bool is_new = true;
      if (name == "__metadata__") {
        is_new = !std::exchange(has_metadata, true);
        skip_metadata(header);
      } else {
        is_new = table.add(entries.read(name));
      }
      if (!is_new) refuse_second(header, name, file, table);
    } while (header.accept(','));
    header.expect('}');
  }
  header.expect_end();
}

void throw_damaged(const std::string& place, const std::string& message) {
  throw Error(ErrorCode::invalid_input, message, place,
              "download or save the file again: it is damaged, truncated or not safetensors");
}

}  // namespace headroom::checkpoint
