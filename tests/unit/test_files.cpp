// Atomic writing of files, and the folder of the user's own files.
#include <doctest/doctest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>

#include "headroom/error.h"
#include "output_file.h"
#include "support/data.h"
#include "support/scratch.h"
#include "user_folder.h"

using namespace headroom;
namespace fs = std::filesystem;

using headroom::test::ScratchFolder;
using headroom::test::ScratchVariable;

namespace {

mode_t mode_of(const fs::path& file) {
  struct stat status {};
  REQUIRE(stat(file.c_str(), &status) == 0);
  return status.st_mode & 0777U;
}

Error error_of(const fs::path& file) {
  try {
    detail::write_file(file, "text");
  } catch (const Error& error) {
    return error;
  }
  return {ErrorCode::internal, "nothing was thrown"};
}

}  // namespace

TEST_CASE("a written file replaces the old one and leaves no temporary file") {
  const ScratchFolder folder;
  const fs::path file = folder.path() / "report.txt";
  detail::write_file(file, "first");
  detail::write_file(file, "second");
  CHECK(test::read_file(file) == "second");
  CHECK(folder.files() == 1);
}

TEST_CASE("an output that is not committed leaves the old file") {
  const ScratchFolder folder;
  const fs::path file = folder.write("report.txt", "before");
  {
    detail::OutputFile output(file);
    output.write("half of");
    CHECK(folder.files() == 2);
  }
  CHECK(test::read_file(file) == "before");
  CHECK(folder.files() == 1);
}

TEST_CASE("a partial output has a name of its own") {
  const ScratchFolder folder;
  const fs::path file = folder.write("rows.csv", "before");
  detail::OutputFile output(file);
  output.write("a,b\n");
  output.commit_partial();
  CHECK(test::read_file(file) == "before");
  CHECK(test::read_file(folder.path() / "rows.csv.partial") == "a,b\n");
  CHECK(folder.files() == 2);
}

TEST_CASE("an unwritable output is an error that names the file, before anything is written") {
  const ScratchFolder folder;
  for (const fs::path& file :
       {folder.path() / "missing" / "report.txt", fs::path("/dev/full"), folder.path()}) {
    CAPTURE(file);
    const Error error = error_of(file);
    CHECK(error.code() == ErrorCode::missing_resource);
    CHECK(error.where() == file.string());
  }
  CHECK_THROWS_AS(detail::OutputFile(folder.path() / "missing" / "report.txt"), Error);
}

TEST_CASE("a file's mode is kept, and a new file's follows the umask") {
  const ScratchFolder folder;
  const fs::path secret = folder.write("secret.txt", "before");
  REQUIRE(chmod(secret.c_str(), 0600) == 0);
  detail::write_file(secret, "after");
  CHECK(mode_of(secret) == 0600);
  const mode_t mask = umask(0027);
  detail::write_file(folder.path() / "new.txt", "text");
  umask(mask);
  CHECK(mode_of(folder.path() / "new.txt") == 0640);
}

TEST_CASE("a link is replaced, and the file behind it stays as it was") {
  const ScratchFolder folder;
  const fs::path target = folder.write("target.txt", "precious");
  fs::create_symlink(target, folder.path() / "link.txt");
  detail::write_file(folder.path() / "link.txt", "report");
  CHECK(test::read_file(target) == "precious");
  CHECK(test::read_file(folder.path() / "link.txt") == "report");
}

TEST_CASE("a temporary file that a killed program left is removed, one in use is not") {
  const ScratchFolder folder;
  const fs::path abandoned = folder.write(".headroom-0123456789abcdef.tmp", "half");
  const fs::path other = folder.write(".headroom-notes.tmp", "the user's");
  detail::OutputFile in_use(folder.path() / "a.txt");
  in_use.write("a");
  detail::write_file(folder.path() / "b.txt", "b");
  CHECK_FALSE(fs::exists(abandoned));
  CHECK(fs::exists(other));
  in_use.commit();
  CHECK(test::read_file(folder.path() / "a.txt") == "a");
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
