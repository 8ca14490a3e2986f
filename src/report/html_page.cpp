// The page around reports: its head, style, script, and the JSON of each report.
#include <fmt/format.h>

#include "html.h"
#include "utf8.h"

namespace headroom {
namespace detail {
namespace {

constexpr std::string_view kArticle = "<article>\n";
constexpr std::string_view kArticleEnd = "</article>\n";

/// No page loads anything: a browser refuses what the policy does not name.
constexpr std::string_view kPolicy =
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:";

std::string page_title(const PageContent& content, const Invocation& invocation) {
  const Line* const line = subject_of(content.document);
  const std::string command = invocation.arguments.empty() ? "" : invocation.arguments.front();
  return "headroom: " + (line == nullptr ? command : line->label + " · " + command);
}

std::string command_text(const Invocation& invocation) {
  std::string text = "headroom " + invocation.version;
  if (invocation.arguments.empty()) return text;
  text += ": headroom";
  for (const std::string& argument : invocation.arguments) text += " " + argument;
  return text;
}

std::string page_head(const std::string& title) {
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/>\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"{}\"/>\n"
      "<title>{}</title>\n<style>{}</style></head>\n<body>\n<main>\n<h1>{}</h1>\n",
      kPolicy, html_escaped(title), page_style(), html_escaped(title));
}

/// XML would read "<" and "&" of a program; HTML ignores the marks around it.
std::string page_end(const Invocation& invocation) {
  return fmt::format(
      "</main>\n<footer><p>{}</p></footer>\n<script>/*<![CDATA[*/{}/*]]>*/</script>\n"
      "</body></html>\n",
      html_escaped(command_text(invocation)), page_script());
}

/// The JSON report for programs, unless it is larger than a page may be.
std::string embedded_report(const PageContent& content) {
  const std::string text = script_json(content.report);
  if (text.size() <= content.most_report_bytes) {
    return fmt::format("<script type=\"application/json\" class=\"report\">{}</script>\n", text);
  }
  return fmt::format("<p>The JSON report is {} kB, too large to include in this page.</p>\n",
                     text.size() / 1000);
}

std::string_view articles_of(std::string_view page) {
  const std::size_t begin = page.find(kArticle);
  const std::size_t end = page.rfind(kArticleEnd);
  return page.substr(begin, end + kArticleEnd.size() - begin);
}

}  // namespace

std::string html_escaped(std::string_view text) {
  std::string result;
  for (const char c : printable(text)) {
    switch (c) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      default:
        result += c;
    }
  }
  return result;
}

std::string script_json(std::string_view json) {
  std::string result;
  for (const char c : json) {
    const bool is_markup = c == '<' || c == '>' || c == '&';
    result += is_markup ? fmt::format("\\u{:04x}", static_cast<unsigned>(c)) : std::string(1, c);
  }
  return result;
}

std::string to_page(const PageContent& content, const Invocation& invocation) {
  return page_head(page_title(content, invocation)) + std::string(kArticle) + to_html(content) +
         embedded_report(content) + std::string(kArticleEnd) + page_end(invocation);
}

}  // namespace detail

std::string join_pages(std::span<const std::string> pages) {
  // All text is escaped, so the marks are those of the pages themselves.
  if (pages.empty()) return {};
  const std::string_view first = pages.front();
  const std::string_view own = detail::articles_of(first);
  const auto before = static_cast<std::size_t>(own.data() - first.data());
  std::string result(first.substr(0, before));
  for (const std::string& page : pages) result += detail::articles_of(page);
  return result + std::string(first.substr(before + own.size()));
}

}  // namespace headroom
