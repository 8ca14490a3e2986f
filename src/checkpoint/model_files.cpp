#include "model_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

#include "checkpoint.h"
#include "folder_contents.h"
#include "gguf_metadata.h"
#include "gguf_split.h"
#include "headroom/error.h"
#include "safetensors.h"
#include "safetensors_header.h"
#include "shard_index.h"

namespace headroom::checkpoint {
namespace {

namespace fs = std::filesystem;

/// The file number in a split's name has five digits.
constexpr std::size_t kNumberWidth = 5;

/// Metadata with a number of each layer, in the place of tensors (gguf-py/gguf/constants.py,
/// xIELU).
constexpr std::string_view kListedConstants = "xielu.";
constexpr std::uint64_t kMostLayers = 100'000;  // no published model has as many

bool is_number(std::string_view text) {
  return text.size() == kNumberWidth &&
         std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

/// The file to open at `path`.
fs::path model_listing_at(const fs::path& path) {
  std::error_code failed;
  if (!fs::is_directory(path, failed)) return path;
  if (auto file = safetensors_in(path)) return *std::move(file);
  if (auto file = gguf_in(path)) return std::move(*file);
  const FolderContents contents = folder_contents(path);
  throw Error(ErrorCode::missing_resource,
              fmt::format("contains no weights in a supported format: {}", contents.text()),
              path.string(),
              contents.pickles.empty()
                  ? "add model.safetensors, model.safetensors.index.json or a GGUF file"
                  : pickle_hint());
}

}  // namespace

bool is_gguf_model(std::string_view file) {
  return file.find("mmproj") == std::string_view::npos &&
         file.find("imatrix") == std::string_view::npos;
}

std::optional<fs::path> gguf_in(const fs::path& folder) {
  std::vector<fs::path> found;
  std::error_code failed;
  for (const auto& entry : fs::directory_iterator(folder, failed)) {
    if (entry.path().extension() != ".gguf") continue;
    const std::string name = entry.path().filename().string();
    if (!is_gguf_model(name)) continue;
    const auto part = part_name(name);
    if (!part || part->number == "00001") found.push_back(entry.path());
  }
  if (found.size() > 1) {
    throw Error(ErrorCode::invalid_input, fmt::format("contains {} GGUF models", found.size()),
                folder.string(), "name one file");
  }
  if (found.empty()) return std::nullopt;
  return found.front();
}

std::optional<PartName> part_name(const std::string& file) {
  constexpr std::string_view kOf = "-of-";
  const auto of = file.rfind(kOf);
  if (of == std::string::npos || of < kNumberWidth) return std::nullopt;
  const std::size_t number = of - kNumberWidth;
  if (!is_number(std::string_view(file).substr(number, kNumberWidth)) ||
      !is_number(std::string_view(file).substr(of + kOf.size(), kNumberWidth))) {
    return std::nullopt;
  }
  return PartName{file.substr(0, number), file.substr(number, kNumberWidth), file.substr(of)};
}

ModelFiles::ModelFiles(const fs::path& path) {
  const fs::path listing = model_listing_at(path);
  if (is_gguf(listing)) {
    open_gguf(listing);
  } else if (listing.extension() == ".json") {
    open_shards(listing);
  } else {
    open_safetensors(listing);
    is_part_ = part_name(listing.filename().string()).has_value();
  }
}

void ModelFiles::open_safetensors(const fs::path& file) {
  MappedFile mapped(file);
  const HeaderExtent extent = read_safetensors_header(
      mapped.head(), HeaderLimit::of_the_file, file.string(), paths_.size(), tensors_, texts_);
  mapped.require_unchanged();
  paths_.push_back(file.string());
  data_begins_.push_back(extent.header_bytes);
  longest_header_ = std::max(longest_header_, extent.header_bytes);
  safetensors_.push_back(std::move(mapped));
}

void ModelFiles::open_shards(const fs::path& index) {
  const ShardMap shards = read_shard_index(index);
  std::set<std::string> files;
  for (const auto& [tensor, file] : shards) files.insert(file);
  for (const std::string& name : files) {
    const std::size_t first = tensors_.size();
    open_safetensors(index.parent_path() / name);
    for (std::size_t i = first; i < tensors_.size(); ++i) {
      require_listed(shards, tensors_[i].name, name, paths_.back());
    }
  }
  for (const auto& [tensor, file] : shards) {
    if (tensors_.find(tensor)) continue;
    refuse_shards(tensor_place((index.parent_path() / file).string(), tensor),
                  "the index lists it in this file, which lacks it");
  }
}

void ModelFiles::open_gguf(const fs::path& file) {
  for (GgufFile& part : open_gguf_parts(file)) add_gguf(std::move(part));
}

void ModelFiles::add_listed_constants(const GgufFile& file) {
  constexpr std::array<std::int64_t, 1> kShape{1};
  for (const auto& [key, value] : file.content().metadata) {
    const auto* const list = std::get_if<GgufArray>(&value);
    const bool is_constant = key.starts_with(kListedConstants) && list != nullptr &&
                             list->type == GgufValueType::float32;
    if (!is_constant) continue;
    if (list->count > kMostLayers) {
      throw_damaged_gguf(tensor_place(file.path(), key), "is not a list of layers");
    }
    // From the end of the header, as of all tensors: `data` adds that again.
    const auto first = static_cast<std::uint64_t>(list->data.data() - file.head().bytes.data()) -
                       file.content().data_begin;
    for (std::uint64_t layer = 0; layer < list->count; ++layer) {
      texts_.push_back(fmt::format("blk.{}.{}", layer, key));
      const bool added =
          tensors_.add({texts_.back(), GgmlType::f32, kShape, first + layer * sizeof(float),
                        sizeof(float), paths_.size()});
      if (!added) throw_damaged_gguf(tensor_place(file.path(), key), "is also a tensor");
    }
  }
}

void ModelFiles::add_gguf(GgufFile file) {
  for (const GgufTensor& tensor : file.content().tensors) {
    const bool added = tensors_.add({tensor.name, tensor.type, tensor.shape(),
                                     static_cast<std::uint64_t>(tensor.offset),
                                     static_cast<std::uint64_t>(tensor.bytes), paths_.size()});
    if (!added) {
      refuse_shards(tensor_place(file.path(), tensor.name), "another file of the split has it too");
    }
  }
  add_listed_constants(file);
  paths_.push_back(file.path());
  data_begins_.push_back(file.content().data_begin);
  gguf_.push_back(std::move(file));
}

void ModelFiles::require_unchanged() const {
  for (const MappedFile& file : safetensors_) file.require_unchanged();
  for (const GgufFile& file : gguf_) file.require_unchanged();
}

std::span<const std::byte> ModelFiles::data(const TensorInfo& tensor) const {
  const FileHead content =
      gguf_.empty() ? safetensors_[tensor.file].head() : gguf_[tensor.file].head();
  const std::uint64_t begin = data_begins_[tensor.file] + tensor.begin;
  if (begin + tensor.bytes > content.bytes.size()) refuse_partial(paths_[tensor.file]);
  return content.bytes.subspan(static_cast<std::size_t>(begin),
                               static_cast<std::size_t>(tensor.bytes));
}

}  // namespace headroom::checkpoint
