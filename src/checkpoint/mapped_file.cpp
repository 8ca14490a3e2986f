#include "mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <string>
#include <system_error>

#include "descriptor.h"
#include "headroom/error.h"

namespace headroom::checkpoint {
namespace {

[[noreturn]] void throw_unreadable(const std::filesystem::path& path, int error) {
  throw Error(ErrorCode::missing_resource,
              "cannot be read: " + std::generic_category().message(error), path.string(),
              "check the path and its permissions");
}

int open_for_reading(const std::filesystem::path& path) {
  // Without O_NONBLOCK, opening a pipe would wait for its writer.
  return open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // NOLINT: variadic
}

bool is_same_content(const struct stat& a, const struct stat& b) {
  return a.st_size == b.st_size && a.st_mtim.tv_sec == b.st_mtim.tv_sec &&
         a.st_mtim.tv_nsec == b.st_mtim.tv_nsec;
}

}  // namespace

MappedFile::MappedFile(const std::filesystem::path& path) : path_(path) {
  const headroom::detail::Descriptor file(open_for_reading(path));
  if (!file.is_open() || fstat(file.number(), &opened_) != 0) throw_unreadable(path, errno);
  if (!S_ISREG(opened_.st_mode)) {
    throw Error(ErrorCode::invalid_input, "cannot be read: it is not a regular file", path.string(),
                "weights are mapped: give a file on a disk");
  }
  const auto size = static_cast<std::size_t>(opened_.st_size);
  if (size == 0) return;  // mmap rejects length 0
  void* const pages = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.number(), 0);
  if (pages == MAP_FAILED) {
    throw Error(ErrorCode::missing_resource,
                "cannot be mapped: " + std::generic_category().message(errno), path.string(),
                "check the limits on memory and mappings");
  }
  pages_ = {static_cast<std::byte*>(pages), Unmap{size}};
  guard_.emplace(bytes());
}

void MappedFile::require_unchanged() const {
  struct stat now {};
  const bool is_there = stat(path_.c_str(), &now) == 0 && now.st_dev == opened_.st_dev &&
                        now.st_ino == opened_.st_ino;
  const bool lost = guard_ && guard_->lost_pages();
  if (!lost && (!is_there || is_same_content(now, opened_))) return;
  throw Error(ErrorCode::invalid_input, "was changed while it was read", path_.string(),
              "run again once the file is complete");
}

std::span<const std::byte> MappedFile::bytes() const noexcept {
  if (!pages_) return {};
  return {pages_.get(), pages_.get_deleter().size};
}

FileHead MappedFile::head() const noexcept { return bytes(); }

void release_pages(std::span<const std::byte> bytes) noexcept {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const std::size_t before = (page - reinterpret_cast<std::uintptr_t>(bytes.data()) % page) % page;
  if (before >= bytes.size()) return;
  const std::size_t whole = (bytes.size() - before) / page * page;
  // A private mapping that is never written has no content of its own to lose.
  if (whole > 0) madvise(const_cast<std::byte*>(bytes.data()) + before, whole, MADV_DONTNEED);
}

void MappedFile::Unmap::operator()(std::byte* pages) const noexcept { munmap(pages, size); }

}  // namespace headroom::checkpoint
