#include "output.h"

#include <fmt/format.h>

#include <cstdlib>

#include "commit.h"
#include "help_text.h"
#include "setting_options.h"
#include "standard_streams.h"
#include "user_settings.h"
#include "utf8.h"
#include "version.h"

namespace headroom::cli {
namespace {

bool is_terminal(const OutputOptions& options) {
  return options.file.empty() && is_output_terminal();
}

}  // namespace

namespace {

Invocation& invocation() {
  thread_local Invocation current;  // programs call commands from several threads
  return current;
}

}  // namespace

void set_invocation(const std::vector<std::string>& arguments) {
  invocation() = {kVersion, kCommit, arguments, {}, {}};
}

Invocation current_invocation() {
  Invocation current = invocation();
  current.settings = settings_taken();
  current.left_out = options_left_out();
  for (const UserSetting& setting : current.settings) std::erase(current.left_out, setting.name);
  return current;
}

Format format_of(const OutputOptions& options) {
  if (options.json) return Format::json;
  return options.format ? *options.format : format_or(Format::table);
}

RenderOptions render_options(const OutputOptions& options, Detail detail) {
  RenderOptions render{format_of(options), detail, 0, Colour::off, current_invocation()};
  if (!is_terminal(options)) return render;
  render.width = terminal_width();
  // https://no-color.org: no colour if set and not empty.
  const char* const no_color = std::getenv("NO_COLOR");  // NOLINT(concurrency-mt-unsafe)
  const bool plain = no_color != nullptr && *no_color != '\0';
  render.colour = plain ? Colour::off : Colour::on;
  return render;
}

ReportOutput::ReportOutput(const OutputOptions& options) : quiet_(options.quiet) {
  if (!options.file.empty()) file_.emplace(options.file);
}

void ReportOutput::write(const std::string& text, const std::vector<std::string>& notes) {
  if (file_) {
    file_->write(text);
    file_->commit();
  } else {
    write_standard_output(text);
  }
  if (!quiet_) write_notes(notes);
}

void write_output(const std::string& text, const std::vector<std::string>& notes,
                  const OutputOptions& options) {
  ReportOutput(options).write(text, notes);
}

std::string interruption_note() { return "interrupted: reports the runs completed before"; }

namespace {

std::string shortened(std::string text) {
  constexpr std::size_t kMost = 8192;
  if (text.size() <= kMost) return text;
  const auto continues = [&](std::size_t at) { return (text[at] & '\xC0') == '\x80'; };  // UTF-8
  std::size_t end = kMost;
  while (end > 0 && continues(end)) --end;
  return text.substr(0, end) + "…";
}

}  // namespace

void write_labelled(const std::string& label, const std::string& whole) {
  constexpr std::size_t kLeast = 20;
  const std::string text = shortened(whole);
  const std::size_t width = error_terminal_width();
  if (width < label.size() + kLeast) {
    write_standard_error(label + text + "\n");
    return;
  }
  std::string start = label;
  for (const std::string& line : wrapped_words(text, width - label.size())) {
    write_standard_error(fmt::format("{}{}\n", start, line));
    start.assign(label.size(), ' ');
  }
}

void write_notes(const std::vector<std::string>& notes) {
  for (const std::string& note : notes) {
    write_labelled("note: ", detail::printable(with_options(note)));
  }
}

}  // namespace headroom::cli
