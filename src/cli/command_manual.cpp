// headroom manual [FOLDER]: docs/reference.md, or the manual pages. Hidden, since packages install
// what it writes.
#include <filesystem>
#include <memory>

#include "commands.h"
#include "manual.h"
#include "options.h"
#include "output_file.h"

namespace headroom::cli {
namespace {

void write_pages(const CommandSummary& program, const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  std::vector<std::string> pages;
  for (const CommandSummary& command : program.subcommands) {
    pages.push_back(program.name + "-" + command.name);
    detail::write_file(folder / (pages.back() + ".1"),
                       manual_page(command, program.name + " " + command.name, {program.name}));
  }
  detail::write_file(folder / (program.name + ".1"), manual_page(program, program.name, pages));
}

void run_manual(const CommandSummary& program, const std::string& folder) {
  if (folder.empty()) {
    write_output(manual_markdown(program), {}, {});
  } else {
    write_pages(program, folder);
  }
}

}  // namespace

void add_manual(Command root) {
  auto folder = std::make_shared<std::string>();
  Command command = root.add_command("manual", "Write the reference of all options as Markdown");
  command.hide();
  command.add_optional_argument("folder", "FOLDER", *folder,
                                "Write manual pages to this folder instead");
  command.on_run([folder, root] { run_manual(root.summary(), *folder); });
}

}  // namespace headroom::cli
