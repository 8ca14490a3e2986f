// Atomic writing of files, and the folder of the user's own files.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <climits>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "descriptor.h"
#include "headroom/error.h"
#include "json_text.h"
#include "output_file.h"
#include "reading_limits.h"
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

template <class Call>
Error error_of_call(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    return error;
  }
  return {ErrorCode::internal, "nothing was thrown"};
}

Error error_of(const fs::path& file) {
  return error_of_call([&] { detail::write_file(file, "text"); });
}

/// Makes `folder` the current folder for its lifetime.
class ScratchCurrentFolder {
 public:
  explicit ScratchCurrentFolder(const fs::path& folder) : before_(fs::current_path()) {
    fs::current_path(folder);
  }
  ScratchCurrentFolder(const ScratchCurrentFolder&) = delete;
  ScratchCurrentFolder& operator=(const ScratchCurrentFolder&) = delete;
  ~ScratchCurrentFolder() { fs::current_path(before_); }

 private:
  fs::path before_;
};

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

TEST_CASE("a name that resembles a temporary file's is the user's") {
  const ScratchFolder folder;
  const std::array names{".headroom-0123456789abcdeg.tmp",    // no hexadecimal digits
                         ".headroom-0123456789abcdef.txt",    // another ending
                         "_headroom-0123456789abcdef.tmp",    // another beginning
                         ".headroom-0123456789abcdef0.tmp"};  // a digit too many
  for (const char* name : names) (void)folder.write(name, "the user's");
  detail::write_file(folder.path() / "report.txt", "text");
  for (const char* name : names) CHECK(fs::exists(folder.path() / name));
}

TEST_CASE("under a temporary name, only the user's own regular files are removed") {
  const ScratchFolder folder;
  const fs::path target = folder.write("target.txt", "precious");
  const fs::path link = folder.path() / ".headroom-0000000000000001.tmp";
  const fs::path inner = folder.path() / ".headroom-0000000000000002.tmp";
  const fs::path pipe = folder.path() / ".headroom-0000000000000003.tmp";
  fs::create_symlink(target, link);
  fs::create_directory(inner);
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  const fs::path other = folder.write(".headroom-0000000000000004.tmp", "another user's");
  const bool has_other_user = geteuid() == 0 && chown(other.c_str(), 1, 1) == 0;
  detail::write_file(folder.path() / "report.txt", "text");
  CHECK(test::read_file(target) == "precious");
  CHECK(fs::is_symlink(link));
  CHECK(fs::is_directory(inner));
  CHECK(fs::is_fifo(pipe));
  CHECK(fs::exists(other) == has_other_user);
}

TEST_CASE("more outputs than a signal removes are written all the same") {
  constexpr std::size_t kOutputs = 6;  // a signal's handler knows four
  const ScratchFolder folder;
  {
    std::vector<detail::OutputFile> outputs;
    for (std::size_t i = 0; i < kOutputs; ++i) {
      outputs.emplace_back(folder.path() / std::to_string(i));
      outputs.back().write(std::to_string(i));
    }
    for (detail::OutputFile& output : outputs) output.commit();
  }
  for (std::size_t i = 0; i < kOutputs; ++i) {
    CHECK(test::read_file(folder.path() / std::to_string(i)) == std::to_string(i));
  }
  CHECK(folder.files() == kOutputs);
}

TEST_CASE("a path that is too long for the system is an error that names it") {
  fs::path file = "/";
  while (file.native().size() < std::size_t{2} * PATH_MAX) file /= std::string(NAME_MAX, 'a');
  const Error error = error_of(file);
  CHECK(error.code() == ErrorCode::missing_resource);
  CHECK(error.where() == file.string());
}

TEST_CASE("a partial output whose name a folder has is an error that names it") {
  const ScratchFolder folder;
  const fs::path partial = folder.path() / "rows.csv.partial";
  fs::create_directory(partial);
  const Error error = error_of_call([&] {
    detail::OutputFile output(folder.path() / "rows.csv");
    output.write("a,b\n");
    output.commit_partial();
  });
  CHECK(error.code() == ErrorCode::missing_resource);
  CHECK(error.where() == partial.string());
  CHECK(folder.files() == 1);
}

TEST_CASE("a pipe is written in place") {
  const ScratchFolder folder;
  const fs::path pipe = folder.path() / "pipe";
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  const detail::Descriptor reader(open(pipe.c_str(), O_RDONLY | O_NONBLOCK));  // NOLINT: variadic
  detail::write_file(pipe, "text");
  std::array<char, 8> read_bytes{};
  const ssize_t count = read(reader.number(), read_bytes.data(), read_bytes.size());
  CHECK(std::string(read_bytes.data(), static_cast<std::size_t>(count)) == "text");
  CHECK(fs::is_fifo(pipe));
}

TEST_CASE("a file name without a folder lies in the current folder") {
  const ScratchFolder folder;
  const ScratchCurrentFolder current(folder.path());
  detail::write_file("report.txt", "text");
  CHECK(test::read_file(folder.path() / "report.txt") == "text");
  CHECK(folder.files() == 1);
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

TEST_CASE("the user's settings lie in the folder of configurations, or nowhere without a home") {
  const ScratchVariable home("HOME", "/home/someone");
  {
    const ScratchVariable folder("XDG_CONFIG_HOME", "/settings");
    CHECK(detail::user_configuration_file() == "/settings/headroom.toml");
  }
  const ScratchVariable unset("XDG_CONFIG_HOME", "");
  CHECK(detail::user_configuration_file() == "/home/someone/.config/headroom.toml");
  const ScratchVariable homeless("HOME", "");
  CHECK(detail::user_configuration_file().empty());
}

TEST_CASE("the JSON files of folders are listed by name, and a missing folder is an error") {
  const ScratchFolder folder;
  const fs::path b = folder.write("b.json", "{}");
  const fs::path a = folder.write("inner/a.json", "{}");
  (void)folder.write("notes.txt", "");
  CHECK(detail::json_files_of({folder.path(), folder.path() / "inner"}) ==
        std::vector<fs::path>{b, a});
  const fs::path missing = folder.path() / "missing";
  const Error error = error_of_call([&] { (void)detail::json_files_of({missing}); });
  CHECK(error.code() == ErrorCode::missing_resource);
  CHECK(error.where() == missing.string());
}

TEST_CASE("a folder, a missing file and a text of over 64 MiB are no text files") {
  const ScratchFolder folder;
  for (const fs::path& path : {folder.path(), folder.path() / "missing"}) {
    const Error error = error_of_call([&] { (void)detail::read_text_file(path.string()); });
    CHECK(error.code() == ErrorCode::missing_resource);
    CHECK(error.where() == path.string());
  }
  const fs::path large = folder.write("large.json", "");
  fs::resize_file(large, detail::kMostTextBytes + 1);  // sparse: takes no space
  const Error error = error_of_call([&] { (void)detail::read_text_file(large.string()); });
  CHECK(error.code() == ErrorCode::invalid_input);
  CHECK(error.where() == large.string());
}
