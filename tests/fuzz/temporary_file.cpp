#include "temporary_file.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>

namespace headroom::test {
namespace {

namespace fs = std::filesystem;

class Folder {
 public:
  Folder() {
    const fs::path memory = "/dev/shm";
    std::error_code failed;
    const fs::path parent = fs::is_directory(memory, failed) ? memory : fs::temp_directory_path();
    path_ = parent / ("headroom-fuzz-" + std::to_string(getpid()));
    fs::create_directories(path_);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  [[nodiscard]] const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

}  // namespace

const fs::path& temporary_folder() {
  static const Folder folder;
  return folder.path();
}

void move_to_temporary_folder() {
  static const bool kMoved = [] {
    const fs::path& folder = temporary_folder();
    fs::current_path(folder);
    for (const char* const variable :
         {"HOME", "XDG_DATA_HOME", "HF_HOME", "HF_HUB_CACHE", "OLLAMA_MODELS"}) {
      setenv(variable, folder.c_str(), 1);  // NOLINT(concurrency-mt-unsafe): before any thread
    }
    return std::freopen("/dev/null", "r", stdin) != nullptr &&
           std::freopen("/dev/null", "w", stdout) != nullptr;
  }();
  if (!kMoved) std::abort();
}

fs::path temporary_file(const std::uint8_t* data, std::size_t size, const char* name) {
  fs::path file = temporary_folder() / name;
  std::ofstream(file, std::ios::binary)
      .write(reinterpret_cast<const char*>(data), static_cast<std::streamsize>(size));
  return file;
}

}  // namespace headroom::test
