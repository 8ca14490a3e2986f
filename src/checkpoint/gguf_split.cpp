#include "gguf_split.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <system_error>
#include <utility>

#include "gguf_metadata.h"
#include "headroom/error.h"
#include "model_files.h"
#include "safetensors.h"

namespace headroom::checkpoint {
namespace {

namespace fs = std::filesystem;

/// The file number in a split's name has five digits.
constexpr std::uint64_t kMostFiles = 99'999;

/// A count of the split's files or a file's number from 0; empty if absent.
std::optional<std::uint64_t> split_number(const GgufFile& file, std::string_view key) {
  const GgufValue* const value = file.find(key);
  if (value == nullptr) return std::nullopt;
  const auto* const natural = std::get_if<std::uint64_t>(value);
  const auto* const whole = std::get_if<std::int64_t>(value);
  const std::uint64_t number = natural != nullptr ? *natural
                               : whole != nullptr && *whole >= 0
                                   ? static_cast<std::uint64_t>(*whole)
                                   : kMostFiles + 1;
  if (number <= kMostFiles) return number;
  throw_damaged_gguf(tensor_place(file.path(), key), "is not a number of files");
}

/// The parts of one split by the name of any of them.
class Split {
 public:
  Split(const fs::path& file, PartName name, std::uint64_t count)
      : file_(file), name_(std::move(name)), count_(count) {}

  [[nodiscard]] std::vector<GgufFile> open() const {
    std::vector<GgufFile> parts;
    for (std::uint64_t number = 1; number <= count_; ++number) {
      const fs::path part = part_at(number);
      require_present(part);
      parts.emplace_back(part);
      require_number(parts.back(), number);
    }
    return parts;
  }

 private:
  [[nodiscard]] fs::path part_at(std::uint64_t number) const {
    return file_.parent_path() / fmt::format("{}{:05}{}", name_.before, number, name_.after);
  }

  void require_present(const fs::path& part) const {
    std::error_code failed;
    if (fs::exists(part, failed)) return;
    throw Error(ErrorCode::invalid_input,
                fmt::format("this is part {} of {}: {} is missing", std::stoull(name_.number),
                            count_, part.filename().string()),
                file_.string(), "put all parts of the model into its folder");
  }

  static void require_number(const GgufFile& part, std::uint64_t number) {
    const auto stated = split_number(part, "split.no");
    if (!stated || *stated + 1 == number) return;
    throw Error(ErrorCode::invalid_input,
                fmt::format("its name says part {}, its split.no part {}", number, *stated + 1),
                part.path(), "give the parts of the model the names that they were written with");
  }

  fs::path file_;
  PartName name_;
  std::uint64_t count_;
};

}  // namespace

std::vector<GgufFile> open_gguf_parts(const fs::path& file) {
  GgufFile opened(file);
  const std::uint64_t count = split_number(opened, "split.count").value_or(1);
  if (count <= 1) {
    std::vector<GgufFile> alone;
    alone.push_back(std::move(opened));
    return alone;
  }
  auto name = part_name(file.filename().string());
  if (!name) {
    throw Error(ErrorCode::invalid_input,
                fmt::format("is one of {} files, but its name does not give the others'", count),
                file.string(), "rename it to NAME-00001-of-0000N.gguf");
  }
  return Split(file, *std::move(name), count).open();
}

}  // namespace headroom::checkpoint
