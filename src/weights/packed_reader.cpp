// Reads quantised safetensors: packed weights under the names and shapes that they unpack to.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "error_place.h"
#include "headroom/error.h"
#include "packed_pieces.h"
#include "weight_reader.h"

namespace headroom::detail {
namespace {

using checkpoint::Checkpoint;
using checkpoint::GroupedWeights;
using checkpoint::StoredTensor;
using checkpoint::StoredType;

/// Folder of `files`, a file or a folder.
std::filesystem::path folder_of(const std::filesystem::path& files) {
  return std::filesystem::is_directory(files) ? files : files.parent_path();
}

bool has_16_bits(StoredType type) {
  return type == StoredType::float16 || type == StoredType::bfloat16;
}

bool has_values(std::span<const std::int64_t> shape) {
  return !shape.empty() && std::ranges::all_of(shape, [](std::int64_t size) { return size > 0; });
}

class PackedReader final : public WeightReader {
 public:
  explicit PackedReader(const std::filesystem::path& path)
      : checkpoint_(path), settings_(packed_settings(folder_of(path))) {
    const checkpoint::ModelFiles files(path);
    for (PackedWeight& weight : find_packed_weights(files)) {
      for (const std::size_t piece : weight.pieces) {
        pieces_.insert(std::string(files.tensors()[piece].name));
      }
      std::string name = weight.name;
      packed_.emplace(std::move(name), std::move(weight));
    }
    plain_ = read_checkpoint(Checkpoint(path));
  }

  [[nodiscard]] std::optional<std::vector<std::int64_t>> shape(
      const std::string& name) const override {
    if (const PackedWeight* const weight = find(name)) return weight->shape;
    return plain_->shape(name);
  }

  [[nodiscard]] std::vector<std::string> names() const override {
    std::vector<std::string> all;
    for (std::string& name : plain_->names()) {
      if (!pieces_.contains(name)) all.push_back(std::move(name));
    }
    for (const auto& [name, weight] : packed_) all.push_back(name);
    std::ranges::sort(all);
    return all;
  }

  [[nodiscard]] const std::string& location(const std::string& name) const override {
    const PackedWeight* const weight = find(name);
    if (weight == nullptr || checkpoint_.find(name) != nullptr) return plain_->location(name);
    return plain_->location(*pieces_.lower_bound(weight->base));
  }

  void read(const std::string& name, std::optional<std::int64_t> expert,
            std::span<float> out) const override {
    const PackedWeight* const weight = find(name);
    if (weight == nullptr) return plain_->read(name, expert, out);
    const GroupedWeights groups = read_groups(name, expert);
    if (std::ssize(out) != groups.columns * groups.rows) {
      throw Error(ErrorCode::internal, "the output does not have the tensor's size");
    }
    dequantise(groups, groups_are(name), out);
  }

  /// Keeps the last weight, so that parts of its rows do not unpack it again and again.
  void read_part(const std::string& name, std::optional<std::int64_t> expert, std::int64_t first,
                 std::span<float> out) const override {
    if (find(name) == nullptr) return plain_->read_part(name, expert, first, out);
    const Last& last = last_of(name, expert);
    const std::int64_t end = first + std::ssize(out);
    if (first < 0 || end > last.groups.rows * last.groups.columns) {
      throw Error(ErrorCode::internal, "reading beyond the end of a tensor");
    }
    if (!last.transposed.empty()) {
      std::copy_n(last.transposed.begin() + first, out.size(), out.begin());
      return;
    }
    const std::int64_t columns = last.groups.columns;
    std::vector<float> row(static_cast<std::size_t>(columns));
    for (std::int64_t at = first; at < end;) {
      dequantise_row(last.groups, at / columns, row);
      const std::int64_t count = std::min(end - at, columns - at % columns);
      std::copy_n(row.begin() + at % columns, count, out.begin() + (at - first));
      at += count;
    }
  }

  [[nodiscard]] std::optional<std::string> group_format(const std::string& name) const override {
    if (const PackedWeight* const weight = find(name)) {
      if (!has_values(weight->shape)) return std::nullopt;
      return weight->type;
    }
    const StoredTensor* const tensor = checkpoint_.find(name);
    const bool is_matrix =
        tensor != nullptr && tensor->shape.size() == 2 && has_values(tensor->shape);
    if (!is_matrix || !has_16_bits(tensor->type)) return std::nullopt;
    return std::string(checkpoint::stored_name(tensor->type));
  }

  [[nodiscard]] StoredOrder groups_are(const std::string& name) const override {
    const PackedWeight* const weight = find(name);
    const bool transposed = weight != nullptr && weight->packing == Packing::mxfp4;
    return transposed ? StoredOrder::transposed : StoredOrder::as_is;
  }

  [[nodiscard]] GroupedWeights read_groups(const std::string& name,
                                           std::optional<std::int64_t> expert) const override {
    const PackedWeight* const weight = find(name);
    const std::string place = checkpoint::tensor_place(location(name), name);
    if (const auto sizes = shape(name); sizes && !has_values(*sizes)) {
      throw Error(ErrorCode::invalid_input, "the weight has no values", place,
                  "download or convert the weights again");
    }
    GroupedWeights groups;
    if (weight != nullptr) {
      const PackedPieces pieces(checkpoint_, *weight, settings_);
      groups = at_place(place, [&] { return unpack(pieces, expert); });
      require_words(pieces, groups);
    } else if (const StoredTensor* const tensor = checkpoint_.find(name)) {
      groups = plain_16bit(*tensor);
    } else {
      throw Error(ErrorCode::internal, "reading a missing tensor");
    }
    require_finite(groups, place);
    return groups;
  }

  [[nodiscard]] std::optional<Integer> file_bytes(const std::string& name) const override {
    if (const PackedWeight* const weight = find(name)) return weight->bytes;
    const StoredTensor* const tensor = checkpoint_.find(name);
    if (tensor == nullptr) return std::nullopt;
    return static_cast<Integer>(tensor->data.size());
  }

  [[nodiscard]] std::string type_name(const std::string& name) const override {
    if (const PackedWeight* const weight = find(name)) return weight->type;
    const StoredTensor* const tensor = checkpoint_.find(name);
    return tensor == nullptr ? "" : std::string(checkpoint::stored_name(tensor->type));
  }

  void require_unchanged() const override {
    checkpoint_.require_unchanged();
    plain_->require_unchanged();
  }
  [[nodiscard]] NameTable name_table(const ModelSpec& spec) const override {
    return plain_->name_table(spec);
  }

 private:
  /// The weight that read_part read last.
  struct Last {
    std::string name;
    std::optional<std::int64_t> expert;
    GroupedWeights groups;
    std::vector<float> transposed;  ///< its values, if `read` returns them as [in, out]
  };

  /// Writes the values of `groups`, [rows, columns] or transposed.
  static void dequantise(const GroupedWeights& groups, StoredOrder order, std::span<float> out) {
    const auto rows = static_cast<std::size_t>(groups.rows);
    const auto columns = static_cast<std::size_t>(groups.columns);
    std::vector<float> values(columns);
    for (std::size_t row = 0; row < rows; ++row) {
      const auto index = static_cast<std::int64_t>(row);
      if (order == StoredOrder::as_is) {
        dequantise_row(groups, index, out.subspan(row * columns, columns));
        continue;
      }
      dequantise_row(groups, index, values);
      for (std::size_t column = 0; column < columns; ++column) {
        out[column * rows + row] = values[column];
      }
    }
  }

  [[nodiscard]] const Last& last_of(const std::string& name,
                                    std::optional<std::int64_t> expert) const {
    if (last_ && last_->name == name && last_->expert == expert) return *last_;
    last_.reset();
    Last last{name, expert, read_groups(name, expert), {}};
    if (groups_are(name) == StoredOrder::transposed) {
      last.transposed.resize(static_cast<std::size_t>(last.groups.rows * last.groups.columns));
      dequantise(last.groups, StoredOrder::transposed, last.transposed);
      last.groups.codes.clear();
    }
    return last_.emplace(std::move(last));
  }

  [[nodiscard]] const PackedWeight* find(const std::string& name) const {
    const auto found = packed_.find(name);
    return found == packed_.end() ? nullptr : &found->second;
  }

  /// Kernels read eight nibbles at once.
  static void require_words(const PackedPieces& pieces, const GroupedWeights& groups) {
    constexpr std::int64_t kWord = 8;
    const bool is_whole =
        groups.columns % kWord == 0 && (groups.groups() == 1 || groups.group % kWord == 0);
    if (groups.kind != checkpoint::CodeKind::nibble || is_whole) return;
    pieces.refuse(fmt::format("no kernel runs groups of {} of {} inputs in 4 bits", groups.group,
                              groups.columns));
  }

  static GroupedWeights unpack(const PackedPieces& pieces, std::optional<std::int64_t> expert) {
    switch (pieces.weight().packing) {
      case Packing::gptq_or_awq:
        return unpack_gptq_or_awq(pieces);
      case Packing::compressed_tensors:
        return unpack_compressed_tensors(pieces);
      case Packing::bitsandbytes_4bit:
        return unpack_bitsandbytes_4bit(pieces);
      case Packing::bitsandbytes_8bit:
        return unpack_bitsandbytes_8bit(pieces);
      case Packing::scaled:
        return unpack_scaled(pieces);
      case Packing::mxfp4:
        return unpack_mxfp4(pieces, expert);
      case Packing::mlx:
      case Packing::torchao:
      case Packing::hqq:
      case Packing::split_latent:
        break;
    }
    pieces.refuse(fmt::format("no kernel runs {} weights", pieces.weight().type));
  }

  Checkpoint checkpoint_;
  PackedSettings settings_;
  std::map<std::string, PackedWeight> packed_;
  std::set<std::string> pieces_;  ///< names of all packed tensors
  std::unique_ptr<WeightReader> plain_;
  mutable std::optional<Last> last_;
};

}  // namespace

namespace {

/// True for damaged ones, too: reading them says what is wrong.
bool has_packed(const checkpoint::ModelFiles& files) {
  try {
    return !find_packed_weights(files).empty();
  } catch (const Error&) {
    return true;
  }
}

}  // namespace

bool has_packed_weights(const std::filesystem::path& files) {
  try {
    return has_packed(checkpoint::ModelFiles(files));
  } catch (const Error&) {
    return false;  // reading the weights says why
  }
}

std::unique_ptr<WeightReader> read_packed(const std::filesystem::path& files) {
  return std::make_unique<PackedReader>(files);
}

}  // namespace headroom::detail
