// Figures that only the text of `analyze` has, against sums by hand.
#include <doctest/doctest.h>

#include <numeric>
#include <sstream>

#include "headroom/report.h"
#include "support/data.h"

using namespace headroom;
using namespace headroom::test;

namespace {

std::string text_of(const AnalyzeReport& report) {
  return render(report, {Format::table, Detail::summary, 0, Colour::off});
}

/// The first number behind the word that starts each line of `rows`.
std::vector<double> times_in(const std::string& rows) {
  std::vector<double> times;
  std::istringstream lines(rows);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string name;
    double time = 0;
    if (words >> name >> time) times.push_back(time);
  }
  return times;
}

}  // namespace

TEST_CASE("weights of 16 bits have 16 bits per weight where stored positions are no parameters") {
  const std::string text =
      text_of(make_analyze_report(load_model("stable-diffusion-3-medium"), {}));
  CHECK(text.find("16.00 bits per weight") != std::string::npos);
}

TEST_CASE("one new token is singular, and few bits have no article") {
  WorkloadRequest request;
  request.seq_len = 1;
  AnalyzeReport one = make_analyze_report(load_model("gpt2"), request);
  add_generation(one, {}, 1);
  CHECK(text_of(one).find(" after 1 new token\n") != std::string::npos);
  KvCacheRequest few_bits;
  set_type(few_bits, KvType::int4);
  const AnalyzeReport report =
      make_analyze_report(load_model("gpt2"), {}, Convention::headroom, few_bits);
  CHECK(report.notes.back() == "traffic and time assume a KV-cache in int8 without scales");
}

TEST_CASE("the check quotes no half of a derivation") {
  const std::string text = text_of(make_analyze_report(load_model("bert-tiny"), {}));
  CHECK(text.find("computed from the config by hand\n") != std::string::npos);
  CHECK(text.find("embeddings (30522") == std::string::npos);
}

TEST_CASE("the times of operators sum to the total, with a row for those below 1 %") {
  WorkloadRequest request;
  request.attention = AttentionImplementation::fused;
  AnalyzeReport report = make_analyze_report(load_model("llama-3-8b"), request);
  add_prediction(report, find_machine("h100-80gb"), {});
  const std::string text = text_of(report);
  const std::size_t begin = text.find("\n", text.find("---", text.find("Operator  ")));
  REQUIRE(begin != std::string::npos);
  CHECK(text.find("\nothers ", begin) != std::string::npos);
  std::vector<double> times = times_in(text.substr(begin, text.find("\n\n", begin) - begin));
  REQUIRE(times.size() > 3);
  const double total = times.back();
  times.pop_back();
  // Each cell is rounded to a microsecond.
  const double sum = std::accumulate(times.begin(), times.end(), 0.0);
  CHECK(sum == doctest::Approx(total).epsilon(0.0005));
}
