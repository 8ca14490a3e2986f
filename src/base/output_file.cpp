#include "output_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <optional>
#include <system_error>
#include <utility>

#include "descriptor.h"
#include "headroom/error.h"
#include "interruption.h"

namespace headroom::detail {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = ".headroom-";
constexpr std::string_view kSuffix = ".tmp";
constexpr std::size_t kDigits = 16;
constexpr mode_t kPermissions = 0777;

std::string reason_of(int error) { return std::generic_category().message(error); }

[[noreturn]] void fail(const fs::path& file, int error) {
  throw_unwritable(file.string(), reason_of(error));
}

fs::path folder_of(const fs::path& file) {
  return file.has_parent_path() ? file.parent_path() : fs::path(".");
}

std::string random_name() {
  // Unlike std::random_device, whose archive needs glibc 2.36.
  std::uint64_t number = 0;
  if (getentropy(&number, sizeof number) != 0) {
    throw_unwritable("a temporary file", std::generic_category().message(errno));
  }
  return fmt::format("{}{:016x}{}", kPrefix, number, kSuffix);
}

bool is_temporary_name(std::string_view name) {
  if (name.size() != kPrefix.size() + kDigits + kSuffix.size()) return false;
  if (!name.starts_with(kPrefix) || !name.ends_with(kSuffix)) return false;
  const std::string_view digits = name.substr(kPrefix.size(), kDigits);
  return digits.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

int open_file(const fs::path& path, int flags, mode_t mode = 0) {
  return open(path.c_str(), flags | O_CLOEXEC, mode);  // NOLINT: variadic
}

/// Removes the file if it is ours and no living program has locked it.
void remove_if_abandoned(const fs::path& path) {
  const Descriptor file(open_file(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK));
  struct stat status {};
  if (!file.is_open() || fstat(file.number(), &status) != 0) return;
  if (!S_ISREG(status.st_mode) || status.st_uid != geteuid()) return;
  if (flock(file.number(), LOCK_EX | LOCK_NB) == 0) unlink(path.c_str());
}

void remove_abandoned(const fs::path& folder) {
  std::error_code failed;
  for (fs::directory_iterator entry(folder, failed), end; !failed && entry != end;
       entry.increment(failed)) {
    if (is_temporary_name(entry->path().filename().native())) remove_if_abandoned(entry->path());
  }
}

/// Returns whether `file` is written in place: renaming would replace a device, or a link to a
/// descriptor such as /dev/stdout, by a file.
bool is_written_directly(const fs::path& file) {
  const fs::path start = file.lexically_normal();
  for (const char* folder : {"/dev", "/proc"}) {
    if (start.native().starts_with(std::string(folder) + "/")) return true;
  }
  struct stat status {};
  return stat(file.c_str(), &status) == 0 && !S_ISREG(status.st_mode);
}

/// Permissions of the regular file that is replaced; empty if there is none.
std::optional<mode_t> permissions_of(const fs::path& file) {
  struct stat status {};
  if (lstat(file.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return std::nullopt;
  return status.st_mode & kPermissions;
}

}  // namespace

class OutputFile::Target {
 public:
  explicit Target(const fs::path& file)
      : file_(file),
        mode_(permissions_of(file)),
        temporary_(is_written_directly(file) ? fs::path() : folder_of(file) / random_name()),
        removal_(temporary_.string()),
        descriptor_(open_target()) {
    if (!descriptor_.is_open()) fail(file_, errno);
    if (!temporary_.empty()) lock();
  }
  Target(const Target&) = delete;
  Target& operator=(const Target&) = delete;
  ~Target() {
    if (!temporary_.empty()) unlink(temporary_.c_str());
  }

  void write(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const ssize_t written = ::write(descriptor_.number(), bytes.data(), bytes.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) fail(file_, errno);
      bytes = bytes.subspan(static_cast<std::size_t>(written));
    }
  }

  void commit(const fs::path& name) {
    if (temporary_.empty()) {
      if (!descriptor_.close_now()) fail(file_, errno);
      return;
    }
    if (mode_ && fchmod(descriptor_.number(), *mode_) != 0) fail(file_, errno);
    if (fsync(descriptor_.number()) != 0) fail(file_, errno);
    if (rename(temporary_.c_str(), name.c_str()) != 0) fail(name, errno);
    temporary_.clear();
    // The content is safe. A folder that cannot be synced may lose the new name in a power cut.
    const Descriptor folder(open_file(folder_of(name), O_RDONLY | O_DIRECTORY));
    if (folder.is_open()) (void)fsync(folder.number());
  }

  [[nodiscard]] const fs::path& file() const { return file_; }

 private:
  [[nodiscard]] int open_target() const {
    // As standard output that appends to a file, /dev/stdout must.
    if (temporary_.empty()) return open_file(file_, O_WRONLY | O_APPEND);
    // Nobody else reads the new content before it has the old file's mode.
    const mode_t mode = mode_ ? 0600 : 0666;
    return open_file(temporary_, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, mode);
  }

  /// Holds a lock for as long as the file is open, which tells others that it is not abandoned, and
  /// removes those that are.
  void lock() {
    if (flock(descriptor_.number(), LOCK_EX | LOCK_NB) != 0) return;
    remove_abandoned(folder_of(file_));
    struct stat status {};
    // Another program may have taken the file for abandoned before it was locked.
    const bool removed = fstat(descriptor_.number(), &status) == 0 && status.st_nlink == 0;
    if (removed) throw_unwritable(file_.string(), "its temporary file was removed; try again");
  }

  fs::path file_;
  std::optional<mode_t> mode_;
  fs::path temporary_;  ///< empty if written directly, or once committed
  RemovedOnSignal removal_;
  Descriptor descriptor_;
};

OutputFile::OutputFile(const fs::path& file) : target_(std::make_unique<Target>(file)) {}
OutputFile::OutputFile(OutputFile&&) noexcept = default;
OutputFile& OutputFile::operator=(OutputFile&&) noexcept = default;
OutputFile::~OutputFile() = default;

void OutputFile::write(std::string_view text) { write(std::as_bytes(std::span(text))); }

void OutputFile::write(std::span<const std::byte> bytes) { target_->write(bytes); }

void OutputFile::commit() { target_->commit(target_->file()); }

void OutputFile::commit_partial() { target_->commit(partial_name(target_->file())); }

const fs::path& OutputFile::path() const { return target_->file(); }

fs::path OutputFile::partial_name(const fs::path& file) { return file.string() + ".partial"; }

void write_file(const fs::path& file, std::string_view text) {
  OutputFile output(file);
  output.write(text);
  output.commit();
}

void throw_unwritable(const std::string& file, const std::string& reason) {
  throw Error(ErrorCode::missing_resource, "cannot be written: " + reason, file,
              "check the folder, its permissions and the free space");
}

}  // namespace headroom::detail
