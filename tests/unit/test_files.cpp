// Atomic writing of files, and the folder of the user's own files.
#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <stdexcept>

#include "headroom/error.h"
#include "support/data.h"
#include "support/scratch.h"
#include "user_folder.h"
#include "whole_file.h"

using namespace headroom;
namespace fs = std::filesystem;

using headroom::test::ScratchFolder;
using headroom::test::ScratchVariable;

TEST_CASE("a written file replaces the old one and leaves no temporary file") {
  const ScratchFolder folder;
  const fs::path file = folder.path() / "report.txt";
  detail::write_whole_file(file, "first");
  detail::write_whole_file(file, "second");
  CHECK(test::read_file(file) == "second");
  CHECK(folder.files() == 1);
}

TEST_CASE("a failed write leaves the old file") {
  const ScratchFolder folder;
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
  const ScratchFolder folder;
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
  const ScratchVariable home("HOME", "/home/someone");
  {
    const ScratchVariable data("XDG_DATA_HOME", "/data");
    CHECK(detail::user_data_folder() == "/data/headroom");
  }
  for (const char* unset : {"", "relative/folder"}) {
    const ScratchVariable data("XDG_DATA_HOME", unset);
    CHECK(detail::user_data_folder() == "/home/someone/.local/share/headroom");
    const ScratchVariable homeless("HOME", "");
    CHECK(detail::user_data_folder().empty());
  }
}
