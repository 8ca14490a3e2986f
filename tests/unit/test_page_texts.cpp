// Pages of reports that have other pictures than most: what they draw, and what they leave out.
#include <doctest/doctest.h>

#include "headroom/machine_profile.h"
#include "headroom/report.h"
#include "support/data.h"
#include "unit/report_text.h"

using namespace headroom;
using namespace headroom::test;

namespace {

const RenderOptions kPage{.format = Format::html};

AnalyzeReport counted(const std::string& model, const WorkloadRequest& request = {},
                      Convention convention = Convention::headroom) {
  return make_analyze_report(load_model(model), request, convention);
}

std::string diff_page(AnalyzeReport a, AnalyzeReport b) {
  return render(DiffReport{std::move(a), std::move(b)}, kPage);
}

std::string sweep_page(const std::string& model, SweepGrid grid,
                       const std::optional<std::string>& machine = std::nullopt) {
  SweepReport report{load_model(model).spec, std::move(grid), machine.value_or(""), {}};
  std::optional<MachineProfile> profile;
  if (machine) profile = find_machine(*machine);
  sweep(report.spec, report.grid, profile, [&](const SweepRow& row) {
    report.rows.push_back(row);
    return true;
  });
  return render_page(report, kPage);
}

}  // namespace

TEST_CASE("a model beside itself has two equal bars a figure, and no differences to draw") {
  const std::string page = diff_page(counted("gpt2"), counted("gpt2"));
  CHECK(prints(page, "Figures of gpt2 and gpt2 (second)"));
  CHECK(prints(page, "gpt2 (second), parameters: 124,439,808"));
  CHECK_FALSE(prints(page, "by component: "));
}

TEST_CASE("figures that one model lacks are a dash, and those that both lack have no bars") {
  const std::string page = diff_page(counted("layer-ffn"), counted("layer-rnn"));
  CHECK(prints(page, "<title>layer-ffn, KV-cache: –</title>"));
  CHECK(prints(page, "<title>layer-rnn, KV-cache: 2.00 KiB</title>"));
  CHECK(prints(page, "<title>mlp.up: −1,050,624</title>"));
  const std::string layers = diff_page(counted("layer-ffn"), counted("layer-conv"));
  CHECK_FALSE(prints(layers, "layer-ffn, KV-cache:"));
}

TEST_CASE("components that differ by as much up as down sum to zero") {
  WorkloadRequest longer;
  longer.seq_len = 64;
  const std::string page = diff_page(counted("gpt2"), counted("gpt2", longer));
  CHECK_FALSE(prints(page, "Parameters by component"));
  CHECK(prints(page, "Matrix FLOPs by component: gpt2 less gpt2"));
  CHECK(prints(page, "All together −"));
}

TEST_CASE("a count in multiply–adds has its unit on the page") {
  const std::string page = render(counted("gpt2", {}, Convention::fvcore), kPage);
  CHECK(prints(page, "GMAC"));
  CHECK_FALSE(prints(page, " GFLOP<"));
}

TEST_CASE("a page with images has no fields for other lengths, which would need other images") {
  WorkloadRequest request;
  const std::string plain = render(counted("qwen3-vl-2b", request), kPage);
  request.images = 1;
  const std::string with_images = render(counted("qwen3-vl-2b", request), kPage);
  CHECK_FALSE(prints(plain, "are not polynomials; run headroom again"));
  CHECK(prints(with_images, "are not polynomials; run headroom again"));
}

TEST_CASE("one axis of words is bars, of numbers a curve, and equal figures are said once") {
  const std::string words =
      sweep_page("gpt2", {.weights = {WeightType::bfloat16, WeightType::int4}});
  CHECK(prints(words, "<title>int4: 158,698,496 B</title>"));
  CHECK(prints(words, "32.23 GFLOP in all rows"));
  const std::string numbers = sweep_page("t5-small", {.enc_seq_len = {128, 256}});
  CHECK(prints(numbers, "<title>enc-seq 256: 22,531,801,088 FLOP</title>"));
  CHECK_FALSE(prints(numbers, " · enc-seq 128 ·"));
}

TEST_CASE("settings that a sweep keeps are stated in words") {
  CHECK(prints(sweep_page("t5-small", {.batch_size = {1, 2}}), "past 0 · enc-seq 128 · "));
  CHECK(prints(sweep_page("gpt2", {.phase = Phase::train, .batch_size = {1, 2}}),
               "eager attention · recompute none"));
  const std::string images = sweep_page("qwen3-vl-2b", {.images = {0, 1}});
  CHECK(prints(images, "prefill · batch 1 · past 0 · stored weights"));
}

TEST_CASE("two axes are a heat map, and a third a map for each of its values") {
  const std::string page =
      sweep_page("gpt2",
                 {.attention = {AttentionImplementation::eager, AttentionImplementation::fused},
                  .seq_len = {32, 64},
                  .batch_size = {1, 2}},
                 "h100-80gb");
  CHECK(prints(page, "attention eager"));
  CHECK(prints(page, "attention fused"));
  CHECK(prints(page, "Predicted time on h100-80gb"));
}

TEST_CASE("a sweep of hours has its times in seconds, and one of nothing no page") {
  const std::string slow =
      sweep_page("llama-3-8b", {.seq_len = {8192, 16384}, .batch_size = {64}}, "t4");
  CHECK(prints(slow, "Predicted time on t4 [s]"));
  const SweepReport empty{load_model("gpt2").spec, {}, "", {}};
  CHECK(refusal_of([&] { (void)render_page(empty, kPage); }).find("a page needs a row") !=
        std::string::npos);
}
