// Texts and images as one vector each: pooling, lengths and logits against their definitions. Runs
// against the reference: test_golden_outputs.cpp, on tests/data/golden/models/clip_* and siglip_*.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "kernels/normalize.h"
#include "kernels/patches.h"
#include "kernels/pooling.h"
#include "session.h"
#include "support/data.h"

using namespace headroom;
using namespace headroom::measured;

namespace {

std::array<float, 2> pooled(const PoolingArguments& args, TokenPooling pooling) {
  std::array<float, 2> out{};
  pool_tokens(args, pooling, out.data());
  return out;
}

std::vector<float> output_of(const std::vector<NamedTensor>& outputs, const std::string& name) {
  const auto found = std::ranges::find(outputs, name, &NamedTensor::name);
  REQUIRE(found != outputs.end());
  return found->values;
}

}  // namespace

TEST_CASE("a text is its last token, the first or last of an id, or the first of the greatest id") {
  const std::array<float, 8> x{1, 2, 3, 4, 5, 6, 7, 8};  // 2 sequences of 4 tokens of 1 channel
  const std::array<std::int64_t, 8> ids{4, 9, 6, 9, 6, 5, 7, 6};
  PoolingArguments args{2, 4, 1, x.data()};
  args.ids = ids.data();
  args.token_id = 6;
  CHECK(pooled(args, TokenPooling::last) == std::array<float, 2>{4, 8});
  CHECK(pooled(args, TokenPooling::first_of_id) == std::array<float, 2>{3, 5});
  CHECK(pooled(args, TokenPooling::greatest_id) == std::array<float, 2>{2, 7});
  CHECK(pooled(args, TokenPooling::last_of_id) == std::array<float, 2>{3, 8});
  CHECK(pooled(args, TokenPooling::last_of_other_id) == std::array<float, 2>{4, 7});
  args.token_id = 3;  // absent, as in a truncated text
  CHECK(pooled(args, TokenPooling::first_of_id) == std::array<float, 2>{1, 5});
}

TEST_CASE("class tokens of images of different sizes are kept, and every row gets length 1") {
  // A class token and 2 patches, then a class token and 1 patch, of 2 channels.
  const std::array<float, 10> rows{3, 4, 9, 9, 9, 9, 0, -5, 9, 9};
  std::array<float, 4> kept{};
  keep_class_tokens({{1, 2}, {1, 1}}, 1, 2, rows.data(), kept.data());
  CHECK(kept == std::array<float, 4>{3, 4, 0, -5});
  unit_length(2, 2, kept.data());
  const std::array<double, 4> expected{0.6, 0.8, 0, -1};
  for (std::size_t i = 0; i < kept.size(); ++i) {
    CHECK(static_cast<double>(kept[i]) == doctest::Approx(expected[i]));
  }
}

TEST_CASE("logits are the scaled and biased products of vectors of length 1") {
  for (const char* const name : {"clip", "siglip"}) {
    CAPTURE(std::string(name));
    const auto file = test::data_folder() / "encoders/tiny" / (std::string(name) + ".json");
    const ModelSpec spec = load_model(file.string()).spec;
    const auto source = random_weights(1);
    Session session(spec, *source, {});
    WorkloadRequest request;
    request.batch_size = 3;
    request.images = 2;
    const auto outputs = session.forward(random_inputs(spec, resolve(request, spec), 1));
    const std::vector<float> texts = output_of(outputs, "text_embeds");
    const std::vector<float> images = output_of(outputs, "image_embeds");
    const std::vector<float> logits = output_of(outputs, "logits_per_text");
    const std::vector<float> transposed = output_of(outputs, "logits_per_image");
    const float scale = *session.weights().values("head.logit_scale", 0);
    const bool biased = spec.head.similarity->logit_bias;
    const float bias = biased ? *session.weights().values("head.logit_bias", 0) : 0.0F;
    const auto width = static_cast<std::size_t>(spec.head.similarity->projection_dim);
    REQUIRE(logits.size() == 6);
    for (std::size_t text = 0; text < 3; ++text) {
      for (std::size_t image = 0; image < 2; ++image) {
        double product = 0;
        double length = 0;
        for (std::size_t i = 0; i < width; ++i) {
          product += static_cast<double>(texts[text * width + i] * images[image * width + i]);
          length += static_cast<double>(texts[text * width + i] * texts[text * width + i]);
        }
        CHECK(length == doctest::Approx(1.0));
        const double expected =
            product * std::exp(static_cast<double>(scale)) + static_cast<double>(bias);
        CHECK(static_cast<double>(logits[text * 2 + image]) == doctest::Approx(expected));
        CHECK(transposed[image * 3 + text] == logits[text * 2 + image]);
      }
    }
  }
}

TEST_CASE("texts alone become the vectors that they are beside images") {
  const auto file = test::data_folder() / "encoders/tiny/clip.json";
  const ModelSpec spec = load_model(file.string()).spec;
  const auto source = random_weights(1);
  Session session(spec, *source, {});
  WorkloadRequest request;
  request.images = 1;
  ModelInputs inputs = random_inputs(spec, resolve(request, spec), 1);
  const std::vector<float> beside = output_of(session.forward(inputs), "text_embeds");
  inputs.images.reset();
  const auto outputs = session.forward(inputs);
  CHECK(output_of(outputs, "text_embeds") == beside);
  CHECK(std::ranges::find(outputs, "logits_per_text", &NamedTensor::name) == outputs.end());
}
