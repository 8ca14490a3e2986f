#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "fuzz_target.h"
#include "headroom/model_source.h"
#include "headroom/report.h"

namespace headroom::test {
namespace {

namespace fs = std::filesystem;

/// A temporary folder, in memory if possible, deleted when the process ends.
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

void inspect_bytes(const std::uint8_t* data, std::size_t size) {
  static const Folder folder;
  const fs::path file = folder.path() / "input";
  std::ofstream(file, std::ios::binary)
      .write(reinterpret_cast<const char*>(data), static_cast<std::streamsize>(size));
  (void)accepts([&] {
    const Inspection inspection = inspect(file.string());
    (void)render(inspection, {});
    (void)render(inspection, {Format::json, Detail::summary, 0, Colour::off});
  });
}

}  // namespace headroom::test
