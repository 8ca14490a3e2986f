// Reports as HTML pages. tests/page reads whole pages with an XML parser and a browser.
#include <doctest/doctest.h>

#include <map>
#include <regex>

#include "document.h"
#include "headroom/compare.h"
#include "headroom/report.h"
#include "html.h"
#include "picture.h"
#include "picture_frame.h"
#include "pictures.h"

using namespace headroom;
using namespace headroom::detail;

namespace {

const Invocation kInvocation{"1.0", "", {"analyze", "<i>&\"x\""}};

PageContent hostile_content() {
  Document document;
  document.add_subject("<b>", "a & b");
  document.add_line("size", "1 < 2");
  document.add_line("", "\"more\"");
  Table table;
  table.columns = {words_column("name", "Name<"),
                   number_column("size_bytes", "Size", {"[KiB]", 2, 1024})};
  table.rows = {{std::string("</td><script>alert(1)</script>"), Integer{2048}},
                {std::string("none"), Cell{}}};
  table.total_rows = 1;
  document.blocks.emplace_back(table);
  document.blocks.emplace_back(Formula{"x<y", {"a < b"}});
  document.add_verdict("verdict", "PASS & more");
  return {"name", document, Json{{"name", "</script><!-- &"}}, {}, {}};
}

std::size_t count(const std::string& text, const std::string& word) {
  std::size_t found = 0;
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
    ++found;
  }
  return found;
}

/// Area of the boxes of each name in a treemap.
std::map<std::string, double> areas_of(const std::string& svg) {
  const std::regex box(R"re(width="([0-9.]+)" height="([0-9.]+)"[^>]*><title>([^:]*):)re");
  std::map<std::string, double> areas;
  for (std::sregex_iterator i(svg.begin(), svg.end(), box), end; i != end; ++i) {
    areas[(*i)[3]] += std::stod((*i)[1]) * std::stod((*i)[2]);
  }
  return areas;
}

}  // namespace

TEST_CASE("a page escapes every text of a report") {
  const std::string page = to_page(hostile_content(), kInvocation);
  CHECK(page.find("<b>\"") == std::string::npos);
  CHECK(page.find("alert(1)</script>") == std::string::npos);
  CHECK(page.find("&lt;/td&gt;&lt;script&gt;alert(1)&lt;/script&gt;") != std::string::npos);
  CHECK(page.find("<dd>&quot;more&quot;</dd>") != std::string::npos);
  CHECK(page.find("= a &lt; b") != std::string::npos);
  CHECK(page.find("headroom analyze &lt;i&gt;&amp;&quot;x&quot;") != std::string::npos);
}

TEST_CASE("no text of the embedded JSON ends its element, and a program reads it unchanged") {
  const Json json{{"name", "</script><!-- &"}, {"large", json_integer(Integer{1} << 100)}};
  const std::string text = script_json(json);
  CHECK(text.find_first_of("<>&") == std::string::npos);
  CHECK(Json::parse(text)["name"] == "</script><!-- &");
  CHECK(text.find("1267650600228229401496703205376") != std::string::npos);
}

TEST_CASE("a verdict comes before the tables and once") {
  const std::string page = to_page(hostile_content(), kInvocation);
  CHECK(count(page, "PASS &amp; more") == 1);
  CHECK(page.find("PASS &amp; more") < page.find("<table>"));
}

TEST_CASE("cells show the unit of their column and carry the base unit") {
  const std::string page = to_page(hostile_content(), kInvocation);
  CHECK(page.find("<td class=\"number\" data-value=\"2048\">2.00</td>") != std::string::npos);
  CHECK(page.find("<td class=\"number\">–</td>") != std::string::npos);
  CHECK(page.find("data-key=\"size_bytes\">Size <span class=\"unit\">[KiB]</span>") !=
        std::string::npos);
}

TEST_CASE("several pages join to one with an article for each") {
  const std::string page = to_page(hostile_content(), kInvocation);
  const std::vector<std::string> pages(3, page);
  const std::string joined = join_pages(pages);
  CHECK(count(joined, "<article>") == 3);
  CHECK(count(joined, "</html>") == 1);
  CHECK(count(joined, "<h1>") == 1);
  CHECK(join_pages(std::vector<std::string>{page}) == page);
}

TEST_CASE("areas of a treemap are in proportion to sizes") {
  const std::string svg = treemap(
      "Parts", "100",
      {{"a", 60, {}}, {"b", 30, {{"b1", 20, {}}, {"b2", 10, {}}}}, {"c", 10, {}}, {"none", 0, {}}});
  const std::map<std::string, double> areas = areas_of(svg);
  REQUIRE(areas.size() == 4);
  const double whole = areas.at("a") / 0.6;
  CHECK(areas.at("b1") == doctest::Approx(0.2 * whole).epsilon(0.01));
  CHECK(areas.at("b2") == doctest::Approx(0.1 * whole).epsilon(0.01));
  CHECK(areas.at("c") == doctest::Approx(0.1 * whole).epsilon(0.01));
  CHECK(whole == doctest::Approx(kPictureWidth * 300).epsilon(0.01));
}

TEST_CASE("a treemap of nothing and a logarithm of zero draw nothing") {
  CHECK(treemap("Parts", "0", {{"a", 0, {}}}).empty());
  const PlotSeries zero{"zero", Drawn::line, {{0, 1, ""}, {1, 1, ""}}};
  CHECK(plot({"", "", {"", AxisScale::logarithmic}, {""}, {zero}, {}}).empty());
  CHECK_FALSE(plot({"", "", {""}, {""}, {zero}, {}}).empty());
}

TEST_CASE("equal ratios are equally far apart on a logarithmic axis") {
  const PlotSeries series{"s", Drawn::points, {{1, 1, "a"}, {10, 1, "b"}, {100, 1, "c"}}};
  const std::string svg = plot({"", "", {"", AxisScale::logarithmic}, {""}, {series}, {}});
  const std::regex circle(R"re(<circle cx="([0-9.]+)")re");
  std::vector<double> places;
  for (std::sregex_iterator i(svg.begin(), svg.end(), circle), end; i != end; ++i) {
    places.push_back(std::stod((*i)[1]));
  }
  REQUIRE(places.size() == 3);
  CHECK(places[1] - places[0] == doctest::Approx(places[2] - places[1]).epsilon(0.001));
}

TEST_CASE("a row far from its prediction is an arrow, and the others keep their scale") {
  const auto row = [](const char* title, double difference, std::optional<double> tolerance) {
    ComparisonRow one;
    one.title = title;
    one.difference = difference;
    one.tolerance = tolerance;
    return one;
  };
  Comparison comparison;
  comparison.rows = {row("near", 0.01, 0.02), row("nearer", -0.01, 0.02)};
  const auto places = [](const Comparison& of) {
    const std::string svg = pictures_of(of).front();
    const std::regex circle(R"re(<circle cx="([0-9.]+)")re");
    std::vector<std::string> found;
    for (std::sregex_iterator i(svg.begin(), svg.end(), circle), end; i != end; ++i) {
      found.push_back((*i)[1]);
    }
    return found;
  };
  comparison.rows.push_back(row("at half", 0.5, std::nullopt));
  const auto before = places(comparison);
  CHECK(before.size() == 3);
  comparison.rows.push_back(row("far", 60, std::nullopt));
  CHECK(places(comparison) == before);
  const std::string svg = pictures_of(comparison).front();
  CHECK(count(svg, "<title>far: +6000.0 %, skip</title></path>") == 1);
  CHECK(count(svg, ">+6000.0 %</text>") == 1);
}
