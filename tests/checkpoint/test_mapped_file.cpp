// Mapped files that another program changes.
#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <utility>
#include <vector>

#include "checkpoint/weight_files.h"
#include "mapped_file.h"

using namespace headroom;
using namespace headroom::checkpoint;
using namespace headroom::test;

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kBytes = 1 << 20;

std::size_t ones_in(const MappedFile& file) {
  return static_cast<std::size_t>(std::ranges::count(file.bytes(), std::byte{'1'}));
}

}  // namespace

TEST_CASE("pages that are released read the same again") {
  const TempFolder folder;
  std::string text(100'000, 'a');
  for (std::size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>(i * 31 % 127);
  write_file(folder / "file", text);
  const MappedFile file(folder / "file");
  const std::vector<std::byte> before(file.bytes().begin(), file.bytes().end());
  for (std::size_t begin = 0; begin < text.size(); begin += 4097) {
    release_pages(file.bytes().subspan(begin));
  }
  release_pages(file.bytes().first(0));
  CHECK(std::ranges::equal(file.bytes(), before));
  CHECK_NOTHROW(file.require_unchanged());
}

TEST_CASE("a file that is truncated while it is mapped reads as zeros, and is an error") {
  const TempFolder folder;
  write_file(folder / "w", std::string(kBytes, '1'));
  const MappedFile file(folder / "w");
  CHECK_NOTHROW(file.require_unchanged());
  fs::resize_file(folder / "w", 4096);
  CHECK(ones_in(file) == 4096);
  const Error error = input_error_of([&] { file.require_unchanged(); });
  CHECK(error.where() == (folder / "w").string());
}

TEST_CASE("a lost page is an error even if the file was removed after") {
  const TempFolder folder;
  write_file(folder / "w", std::string(kBytes, '1'));
  const MappedFile file(folder / "w");
  fs::resize_file(folder / "w", 4096);
  fs::remove(folder / "w");
  CHECK(ones_in(file) == 4096);
  CHECK(input_error_of([&] { file.require_unchanged(); }).where() == (folder / "w").string());
}

TEST_CASE("a file that is removed or replaced under its name stays whole") {
  const TempFolder folder;
  write_file(folder / "w", std::string(kBytes, '1'));
  const MappedFile file(folder / "w");
  write_file(folder / "other", "2");
  fs::rename(folder / "other", folder / "w");
  CHECK(ones_in(file) == kBytes);
  CHECK_NOTHROW(file.require_unchanged());
  fs::remove(folder / "w");
  CHECK_NOTHROW(file.require_unchanged());
}

TEST_CASE("a file that is written while it is mapped is an error") {
  const TempFolder folder;
  write_file(folder / "w", std::string(kBytes, '1'));
  const MappedFile file(folder / "w");
  write_file(folder / "w", std::string(kBytes + 1, '2'));
  CHECK(input_error_of([&] { file.require_unchanged(); }).where() == (folder / "w").string());
}

TEST_CASE("guards move with their files, and end with them") {
  const TempFolder folder;
  std::vector<MappedFile> files;
  for (const char* name : {"a", "b", "c"}) {
    write_file(folder / name, std::string(kBytes, '1'));
    files.emplace_back(folder / name);
  }
  fs::resize_file(folder / "b", 4096);
  std::swap(files[0], files[1]);
  CHECK(ones_in(files[0]) == 4096);
  CHECK(ones_in(files[1]) == kBytes);
  CHECK_THROWS_AS(files[0].require_unchanged(), Error);
  CHECK_NOTHROW(files[1].require_unchanged());
  files.erase(files.begin());
  CHECK(ones_in(files[0]) == kBytes);
  CHECK_NOTHROW(files[0].require_unchanged());
}

TEST_CASE("a file of the same size that was written later is an error, to the nanosecond") {
  const TempFolder folder;
  for (const auto later : {std::chrono::nanoseconds(1), std::chrono::nanoseconds(2'000'000'000)}) {
    CAPTURE(later.count());
    write_file(folder / "w", "1");
    const fs::file_time_type second =
        std::chrono::floor<std::chrono::seconds>(fs::last_write_time(folder / "w"));
    fs::last_write_time(folder / "w", second);
    const MappedFile file(folder / "w");
    CHECK_NOTHROW(file.require_unchanged());
    fs::last_write_time(folder / "w", second + later);
    CHECK_THROWS_AS(file.require_unchanged(), Error);
  }
}

TEST_CASE("a link that leads to another device later leaves the mapped file whole") {
  const TempFolder folder;
  write_file(folder / "w", std::string(kBytes, '1'));
  fs::create_symlink(folder / "w", folder / "link");
  const MappedFile file(folder / "link");
  fs::remove(folder / "link");
  fs::create_symlink("/dev/null", folder / "link");
  CHECK_NOTHROW(file.require_unchanged());
  CHECK(ones_in(file) == kBytes);
}

TEST_CASE("only a regular file is mapped, and an empty one has no bytes") {
  const TempFolder folder;
  for (const fs::path& path : {folder.path(), fs::path("/dev/null"), folder / "absent"}) {
    CAPTURE(path);
    CHECK(input_error_of([&] { const MappedFile file(path); }).where() == path.string());
  }
  write_file(folder / "empty", "");
  const MappedFile empty(folder / "empty");
  CHECK(empty.bytes().empty());
  CHECK_NOTHROW(empty.require_unchanged());
}

TEST_CASE("more files than guards are mapped all the same") {
  constexpr std::size_t kFiles = 4100;  // mapping_guard.cpp has 4,096 guards
  const TempFolder folder;
  write_file(folder / "w", "1");
  std::vector<MappedFile> files;
  for (std::size_t i = 0; i < kFiles; ++i) files.emplace_back(folder / "w");
  CHECK(ones_in(files.back()) == 1);
  CHECK_NOTHROW(files.back().require_unchanged());
}
