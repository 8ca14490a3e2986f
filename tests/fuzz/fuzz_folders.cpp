// Arbitrary files of a home folder, as an object of paths and contents: local stores are listed,
// and each folder of a model is analysed and inspected, or refused as input.
#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "command_line.h"
#include "commands.h"
#include "fuzz_target.h"
#include "headroom/model_source.h"
#include "temporary_file.h"

using namespace headroom;

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::size_t kMostFiles = 12;
constexpr std::size_t kLongestPath = 160;

/// Such paths stay in the temporary folder.
bool is_inside(const std::string& path) {
  const fs::path parsed(path);
  return !path.empty() && path.size() < kLongestPath && path.find('\0') == std::string::npos &&
         parsed.is_relative() && parsed.has_filename() &&
         std::ranges::none_of(parsed, [](const fs::path& part) { return part == ".."; });
}

void write_files(const fs::path& home, const json& files) {
  std::error_code ignored;
  std::size_t count = 0;
  for (const auto& [path, content] : files.items()) {
    if (!is_inside(path) || ++count > kMostFiles) continue;
    fs::create_directories((home / path).parent_path(), ignored);
    std::ofstream(home / path, std::ios::binary)
        << (content.is_string() ? content.get<std::string>()
                                : content.dump(-1, ' ', false, json::error_handler_t::replace));
  }
}

void run(const std::vector<std::string>& arguments) {
  try {
    cli::Application application("headroom", "", "");
    cli::add_analyze(application.root());
    int status = 0;
    cli::add_inspect(application.root(), status);
    application.run(arguments);
  } catch (const Error& error) {
    // A folder may name files that are missing.
    if (error.code() != ErrorCode::missing_resource) throw;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  test::move_to_temporary_folder();
  const json files = json::parse(data, data + size, nullptr, false);
  if (!files.is_object()) return 0;
  const fs::path& home = test::temporary_folder();
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(home)) {
    fs::remove_all(entry.path(), ignored);
  }
  write_files(home, files);
  (void)test::accepts([&] { (void)list_local_models(); });
  for (const char* const command : {"analyze", "inspect"}) {
    (void)test::accepts([&] { run({command, "./model", "-f", "json", "--quiet"}); });
  }
  return 0;
}
