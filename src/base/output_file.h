// Files that are written whole or not at all, and opened before the work whose result they hold.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace headroom::detail {

/// The new content of a file, in a temporary file beside it until `commit`. The temporary file has
/// a random name, follows no link, is locked, and is removed by the destructor and by signals; one
/// that a killed program left is removed by the next OutputFile in that folder. A link is replaced,
/// not followed. Devices, pipes and files in /dev and /proc are written directly.
class OutputFile {
 public:
  /// Throws Error{missing_resource} if `file` could not be written.
  explicit OutputFile(const std::filesystem::path& file);
  OutputFile(OutputFile&&) noexcept;
  OutputFile& operator=(OutputFile&&) noexcept;
  ~OutputFile();

  /// Appends. Throws Error{missing_resource}.
  void write(std::string_view text);
  void write(std::span<const std::byte> bytes);

  /// Syncs the content to the disk and gives it the file's name; an old file's mode is kept. Throws
  /// Error{missing_resource}.
  void commit();
  /// As `commit`, under `partial_name`: the file itself stays as it was.
  void commit_partial();
  /// The file that is to be written.
  [[nodiscard]] const std::filesystem::path& path() const;
  /// "FILE.partial"
  [[nodiscard]] static std::filesystem::path partial_name(const std::filesystem::path& file);

 private:
  class Target;
  std::unique_ptr<Target> target_;
};

/// Writes `text` through an OutputFile. Throws Error{missing_resource}.
void write_file(const std::filesystem::path& file, std::string_view text);

/// Throws Error{missing_resource} for an unwritable `file`.
[[noreturn]] void throw_unwritable(const std::string& file, const std::string& reason);

}  // namespace headroom::detail
