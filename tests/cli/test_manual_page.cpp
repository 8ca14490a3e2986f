// Manual pages and the reference, of commands that are made up here.
#include <doctest/doctest.h>

#include <string>

#include "manual.h"

using namespace headroom::cli;

namespace {

OptionSummary shared_option() {
  OptionSummary option;
  option.long_names = {"memory"};
  option.short_names = {"m"};
  option.value = "BYTES|all";
  option.group = "Machine";
  option.description = "Memory | of a device, C:\\ on Windows";
  option.has_value = true;
  return option;
}

OptionSummary flag(const std::string& name, const std::string& group) {
  OptionSummary option;
  option.long_names = {name, "no-" + name};
  option.group = group;
  option.description = ".dotted";
  return option;
}

OptionSummary argument(const std::string& name, bool is_required) {
  OptionSummary option;
  option.argument = name;
  option.description = "'Quoted' model";
  option.has_value = true;
  option.is_required = is_required;
  return option;
}

CommandSummary tool_command() {
  CommandSummary list{"list", "List all", "", {flag("long", "Options")}, {}};
  return {"weigh",
          "Weigh models - quickly",
          "A line of its own.\n\nExamples:\n  tool weigh -m 1\n\nExit status: 1 if none.",
          {argument("MODEL", true), argument("MORE", false), shared_option(),
           flag("quiet", "Options"), flag("hidden", "")},
          {list}};
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("a manual page holds arguments, options, commands, examples and references") {
  const std::string page = manual_page(tool_command(), "tool weigh", {"tool", "tool-count"});
  CHECK(page.starts_with(".TH TOOL\\-WEIGH 1 \"\" \"headroom "));
  CHECK(has(page, ".SH NAME\ntool\\-weigh \\- Weigh models \\- quickly\n"));
  CHECK(has(page, ".SH SYNOPSIS\n\\fBtool weigh [OPTIONS] MODEL [MORE] [COMMAND]\\fR\n"));
  CHECK(has(page, ".SH COMMANDS\n.TP\n\\fBlist\\fR\nList all\n"));
  CHECK(has(page, ".SH ARGUMENTS\n.TP\n\\fIMODEL\\fR\n"));
  CHECK(has(page, ".SS Machine\n.TP\n\\fB\\-m\\fR, \\fB\\-\\-memory\\fR \\fIBYTES|\\:all\\fR\n"));
  CHECK(has(page, ".TP\n\\fB\\-\\-quiet\\fR, \\fB\\-\\-no\\-quiet\\fR\n"));
  CHECK_FALSE(has(page, "hidden"));
  CHECK_FALSE(has(page, ".SS Options"));
  CHECK(has(page, ".SS tool weigh list [OPTIONS]\n"));
  CHECK(has(page, ".SH NOTES\n.nf\nA line of its own.\n.fi\n"));
  CHECK(has(page, ".SH EXAMPLES\n.nf\n  tool weigh \\-m 1\n.fi\n"));
  CHECK(page.ends_with(".SH SEE ALSO\n.BR tool (1),\n.BR tool\\-count (1)\n"));
}

TEST_CASE("text of a manual page is no request of roff") {
  const std::string page = manual_page(tool_command(), "tool weigh", {});
  CHECK(has(page, "\n\\&.dotted\n"));
  CHECK(has(page, "\n\\&'Quoted' model\n"));
  CHECK(has(page, "C:\\e on Windows\n"));
  CHECK_FALSE(has(page, "SEE ALSO"));
}

TEST_CASE("the page of the program itself leaves options of its commands to theirs") {
  const CommandSummary program{
      "tool", "Weighs", "", {flag("version", "Options")}, {tool_command()}};
  const std::string page = manual_page(program, "tool", {"tool-weigh"});
  CHECK(has(page, "\\fBtool [OPTIONS] COMMAND\\fR"));
  CHECK(has(page, "\\fBweigh\\fR"));
  CHECK_FALSE(has(page, "ARGUMENTS"));
  CHECK_FALSE(has(page, "memory"));
  CHECK(page.ends_with(".BR tool\\-weigh (1)\n"));
}

TEST_CASE("a table of the reference escapes bars and names the groups") {
  const CommandSummary program{"tool", "Weighs", "", {}, {tool_command()}};
  const std::string text = manual_markdown(program);
  CHECK(has(text, "\n## tool weigh\n\nWeigh models - quickly.\n"));
  CHECK(has(text, "| `MODEL` |  | 'Quoted' model |"));
  CHECK(has(text,
            "| **Machine** |  |  |\n| `--memory`, `-m` | BYTES\\|all | Memory \\| of a device"));
  CHECK(has(text, "\n## tool weigh list\n"));
  CHECK_FALSE(has(text, "hidden"));
}
