// Report -> one HTML file that needs no network, no script and no other file. Internal to
// src/report.
//
// A page is also well-formed XML, so that any parser reads it. Order: the title, the verdict, the
// subject, pictures, tables and formulas, and the JSON report for programs.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "document.h"
#include "headroom/report.h"

namespace headroom::detail {

/// A page has at most 400 kB.
inline constexpr std::size_t kMostPageBytes = 400'000;
/// Of the embedded report: tables and formulas need the rest.
inline constexpr std::size_t kMostReportBytes = 250'000;

/// A report before it is a page.
struct PageContent {
  std::string name;  ///< the title of a report without a subject
  Document document;
  std::string report;                  ///< JSON text, embedded
  std::vector<std::string> pictures;   ///< HTML, before the first table
  std::vector<std::string> exercises;  ///< HTML after the document: formulas to try
  /// A longer report is not embedded.
  std::size_t most_report_bytes = kMostReportBytes;
};

/// Text for HTML content and quoted attributes. Bytes that are not printable UTF-8 are written
/// `\x1b`.
[[nodiscard]] std::string html_escaped(std::string_view text);

/// JSON text for a <script>: "<", ">" and "&" are escapes, so that no text ends the element.
[[nodiscard]] std::string script_json(std::string_view json);

/// The first line with the subject's role; null if there is none.
[[nodiscard]] const Line* subject_of(const Document& document);

/// The content of a report's <article>.
[[nodiscard]] std::string to_html(const PageContent& content);

/// A whole page with one article.
[[nodiscard]] std::string to_page(const PageContent& content, const Invocation& invocation);

/// src/page/page.css and src/page/page.js, which CMake compiles in.
[[nodiscard]] std::string_view page_style() noexcept;
[[nodiscard]] std::string_view page_script() noexcept;

}  // namespace headroom::detail
