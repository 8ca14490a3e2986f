// Atomic writing of files, and the folder of the user's own files.
#include <doctest/doctest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <stdexcept>

#include "headroom/error.h"
#include "support/data.h"
#include "user_folder.h"
#include "whole_file.h"

using namespace headroom;
namespace fs = std::filesystem;

namespace {

/// A temporary folder, removed at the end of the test.
class Folder {
 public:
  Folder() : path_(fs::temp_directory_path() / ("headroom-files-" + std::to_string(getpid()))) {
    fs::create_directories(path_);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() { fs::remove_all(path_); }

  [[nodiscard]] const fs::path& path() const { return path_; }
  [[nodiscard]] auto files() const {
    return std::distance(fs::directory_iterator(path_), fs::directory_iterator());
  }

 private:
  fs::path path_;
};

/// Sets an environment variable for its lifetime.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) {
    if (const char* const before = std::getenv(name)) before_ = before;
    setenv(name, value, 1);
  }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;
  ~Variable() {
    if (before_) {
      setenv(name_, before_->c_str(), 1);
    } else {
      unsetenv(name_);
    }
  }

 private:
  const char* name_;
  std::optional<std::string> before_;
};

}  // namespace

TEST_CASE("a written file replaces the old one and leaves no temporary file") {
  const Folder folder;
  const fs::path file = folder.path() / "report.txt";
  detail::write_whole_file(file, "first");
  detail::write_whole_file(file, "second");
  CHECK(test::read_file(file) == "second");
  CHECK(folder.files() == 1);
}

TEST_CASE("a failed write leaves the old file") {
  const Folder folder;
  const fs::path file = folder.path() / "report.txt";
  detail::write_whole_file(file, "before");
  const auto write = [](std::ostream& stream) {
    stream << "half of";
    throw std::runtime_error("interrupted");
  };
  CHECK_THROWS_AS(detail::write_whole_file(file, write), std::runtime_error);
  CHECK(test::read_file(file) == "before");
  CHECK(folder.files() == 1);
}

TEST_CASE("a failed write is an error that names the file") {
  const Folder folder;
  for (const fs::path& file : {folder.path() / "missing" / "report.txt", fs::path("/dev/full")}) {
    CAPTURE(file);
    try {
      detail::write_whole_file(file, "text");
      FAIL("nothing was thrown");
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::missing_resource);
      CHECK(error.where() == file.string());
    }
  }
}

TEST_CASE("the user's folder follows the XDG specification") {
  const Variable home("HOME", "/home/someone");
  {
    const Variable data("XDG_DATA_HOME", "/data");
    CHECK(detail::user_data_folder() == "/data/headroom");
  }
  for (const char* unset : {"", "relative/folder"}) {
    const Variable data("XDG_DATA_HOME", unset);
    CHECK(detail::user_data_folder() == "/home/someone/.local/share/headroom");
    const Variable homeless("HOME", "");
    CHECK(detail::user_data_folder().empty());
  }
}
