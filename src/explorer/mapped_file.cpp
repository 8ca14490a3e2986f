// Files of a browser's page: their beginning in memory, since a mapping would be a copy of all.
#include "mapped_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "descriptor.h"
#include "headroom/error.h"

namespace headroom::checkpoint {
namespace {

/// Headers of published models have a few MB: a vocabulary, and the names of thousands of tensors.
constexpr std::uint64_t kLongestHead = std::uint64_t{64} << 20U;

[[noreturn]] void throw_unreadable(const std::filesystem::path& path) {
  throw Error(ErrorCode::missing_resource,
              "cannot be read: " + std::generic_category().message(errno), path.string(),
              "choose the file again");
}

/// Returns the number of bytes that were read: fewer than asked for at the end of what is there.
std::size_t read_head(const headroom::detail::Descriptor& file, std::byte* target, std::size_t size,
                      const std::filesystem::path& path) {
  std::size_t done = 0;
  while (done < size) {
    const ssize_t got = read(file.number(), target + done, size - done);
    if (got < 0) throw_unreadable(path);
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  return done;
}

}  // namespace

MappedFile::MappedFile(const std::filesystem::path& path) : path_(path) {
  const headroom::detail::Descriptor file(open(path.c_str(), O_RDONLY));
  if (!file.is_open() || fstat(file.number(), &opened_) != 0) throw_unreadable(path);
  const auto size =
      static_cast<std::size_t>(std::min(static_cast<std::uint64_t>(opened_.st_size), kLongestHead));
  if (size == 0) return;
  pages_ = {new std::byte[size], Unmap{size}};
  pages_.get_deleter().size = read_head(file, pages_.get(), size, path);
}

void MappedFile::require_unchanged() const {}

FileHead MappedFile::head() const noexcept {
  return {bytes(), static_cast<std::uint64_t>(opened_.st_size)};
}

std::span<const std::byte> MappedFile::bytes() const noexcept {
  if (!pages_) return {};
  return {pages_.get(), pages_.get_deleter().size};
}

void release_pages(std::span<const std::byte> /*bytes*/) noexcept {}

void MappedFile::Unmap::operator()(std::byte* pages) const noexcept { delete[] pages; }

}  // namespace headroom::checkpoint
