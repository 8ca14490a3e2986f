#include "mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <system_error>

#include "headroom/error.h"

namespace headroom::checkpoint {
namespace {

std::string reason_of(int error) { return std::generic_category().message(error); }

[[noreturn]] void throw_unreadable(const std::filesystem::path& path, const std::string& reason) {
  throw Error(ErrorCode::invalid_input, "cannot be read: " + reason, path.string(),
              "check the path and its permissions");
}

/// An open file descriptor. Mappings outlive it.
class Descriptor {
 public:
  explicit Descriptor(const std::filesystem::path& path)
      // Without O_NONBLOCK, opening a pipe would wait for its writer.
      : number_(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {  // NOLINT
    if (number_ < 0) throw_unreadable(path, reason_of(errno));
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() { close(number_); }

  [[nodiscard]] int number() const noexcept { return number_; }

 private:
  int number_;
};

std::size_t size_of_regular_file(const Descriptor& file, const std::filesystem::path& path) {
  struct stat status {};
  if (fstat(file.number(), &status) != 0) throw_unreadable(path, reason_of(errno));
  if (!S_ISREG(status.st_mode)) throw_unreadable(path, "it is not a regular file");
  return static_cast<std::size_t>(status.st_size);
}

}  // namespace

MappedFile::MappedFile(const std::filesystem::path& path) {
  const Descriptor file(path);
  const std::size_t size = size_of_regular_file(file, path);
  if (size == 0) return;  // mmap rejects length 0
  void* const pages = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.number(), 0);
  if (pages == MAP_FAILED) {
    throw Error(ErrorCode::missing_resource, "cannot be mapped: " + reason_of(errno), path.string(),
                "check the limits on memory and mappings");
  }
  pages_ = {static_cast<std::byte*>(pages), Unmap{size}};
}

std::span<const std::byte> MappedFile::bytes() const noexcept {
  if (!pages_) return {};
  return {pages_.get(), pages_.get_deleter().size};
}

void MappedFile::Unmap::operator()(std::byte* pages) const noexcept { munmap(pages, size); }

}  // namespace headroom::checkpoint
