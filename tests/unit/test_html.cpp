// Reports as HTML pages. tests/page reads whole pages with an XML parser and a browser.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <regex>

#include "document.h"
#include "headroom/compare.h"
#include "headroom/report.h"
#include "html.h"
#include "json_writer.h"
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
  return {"name", document, R"({"name":"</script><!-- &"})", {}, {}};
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
  const std::string text = script_json(to_compact_json_text(json));
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

namespace {

/// Contrast of two colours "#rrggbb" by the formula of WCAG 2.2, with its lookup by powers.
double contrast(std::string_view one, std::string_view other) {
  const auto luminance = [](std::string_view colour) {
    double sum = 0;
    for (const auto& [at, weight] : {std::pair(std::size_t{1}, 0.2126), {3, 0.7152}, {5, 0.0722}}) {
      const double part = std::stoi(std::string(colour.substr(at, 2)), nullptr, 16) / 255.0;
      sum += weight * (part <= 0.04045 ? part / 12.92 : std::pow((part + 0.055) / 1.055, 2.4));
    }
    return sum + 0.05;
  };
  const double a = luminance(one);
  const double b = luminance(other);
  return std::max(a, b) / std::min(a, b);
}

HeatMap map_of_values(const std::vector<double>& values) {
  HeatMap map{"Map", "of values", "ms", "x", "y", {}, {"one"}, {}};
  for (const double value : values) {
    map.columns.push_back(std::to_string(value));
    map.cells.push_back(HeatCell{value, "text", "name"});
  }
  return map;
}

/// Fills of the cells of a map, in order.
std::vector<std::string> cell_colours(const std::string& svg) {
  const std::regex cell(R"re(z" fill="(#[0-9a-f]{6})"><title>)re");
  std::vector<std::string> colours;
  for (std::sregex_iterator i(svg.begin(), svg.end(), cell), end; i != end; ++i) {
    colours.push_back((*i)[1]);
  }
  return colours;
}

}  // namespace

TEST_CASE("colours of a heat map darken with the value, and text on each can be read") {
  double last = 100;
  for (int i = 0; i <= 64; ++i) {
    const std::string colour = heat_colour(i / 64.0);
    const double to_black = contrast(colour, "#000000");
    CHECK(to_black < last);
    last = to_black;
    CHECK(contrast(colour, text_colour_on(colour)) >= 4.5);
  }
  CHECK(contrast(heat_colour(0), heat_colour(1)) > 10);
}

TEST_CASE("a heat map over more than a decade is logarithmic, and a shorter one linear") {
  const auto decades = cell_colours(heat_map(map_of_values({1, 10, 100})));
  CHECK(decades == std::vector<std::string>{heat_colour(0), heat_colour(0.5), heat_colour(1)});
  const auto short_range = cell_colours(heat_map(map_of_values({2, 3, 4})));
  CHECK(short_range == decades);
  const auto with_zero = cell_colours(heat_map(map_of_values({0, 50, 100})));
  CHECK(with_zero == decades);
}

TEST_CASE("cells of a heat map have text if all have room, and a tooltip in any case") {
  const std::string wide = heat_map(map_of_values({1, 2, 3}));
  CHECK(count(wide, ">text</text>") == 3);
  const std::string narrow = heat_map(map_of_values(std::vector<double>(60, 1)));
  CHECK(count(narrow, ">text</text>") == 0);
  CHECK(count(narrow, "<title>name</title>") == 60);
  HeatMap hole = map_of_values({1, 2, 3});
  hole.cells[1].reset();
  CHECK(count(heat_map(hole), "<title>name</title>") == 2);
  hole.cells.assign(3, std::nullopt);
  CHECK(heat_map(hole).empty());
}

TEST_CASE("parts of a bar follow each other on their side of zero, in proportion to their sizes") {
  const std::string svg =
      bars({"Bars", "", {"B"}, {{"one", {{"a", 3, "a"}, {"b", 1, "b"}, {"c", -2, "c"}}, ""}}, {}});
  const std::regex box(R"re(x="([0-9.]+)" y="[0-9.]+" width="([0-9.]+)"[^>]*><title>(.))re");
  std::map<std::string, std::pair<double, double>> places;
  for (std::sregex_iterator i(svg.begin(), svg.end(), box), end; i != end; ++i) {
    places[(*i)[3]] = {std::stod((*i)[1]), std::stod((*i)[2])};
  }
  REQUIRE(places.size() == 3);
  const auto [a, a_width] = places.at("a");
  const auto [b, b_width] = places.at("b");
  const auto [c, c_width] = places.at("c");
  CHECK(a_width == doctest::Approx(3 * b_width).epsilon(0.01));
  CHECK(c_width == doctest::Approx(2 * b_width).epsilon(0.01));
  CHECK(a + a_width == doctest::Approx(b).epsilon(0.01));
  CHECK(c + c_width == doctest::Approx(a).epsilon(0.01));
  CHECK(bars({"", "", {""}, {{"none", {}, ""}}, {}}).empty());
}
