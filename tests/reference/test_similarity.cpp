// Models that compare texts with images: parameters and FLOPs of the reference classes, published
// totals, and which images a workload has. Sources: tests/data/README.md, and as named.
#include <doctest/doctest.h>

#include "support/data.h"

using namespace headroom;
using namespace headroom::test;

namespace {

nlohmann::json compared_config(const std::string& model) {
  return read_json(data_folder() / "encoders/tiny" / (model + ".json"));
}

Integer parameters_of_pair(const ModelSpec& spec) {
  const Graph graph = build_graph(spec, {});
  return count_parameters(graph).total.evaluate(graph.sizes);
}

Figures figures_of_pair(const ModelSpec& spec, std::int64_t texts, std::int64_t seq_len,
                        std::int64_t images) {
  WorkloadRequest request;
  request.batch_size = texts;
  request.seq_len = seq_len;
  request.images = images;
  return count(spec, resolve(request, spec)).figures;
}

/// FLOPs of `images` images besides those of the texts.
Integer image_flops(const ModelSpec& spec, std::int64_t texts, std::int64_t images) {
  return figures_of_pair(spec, texts, 8, images).forward.matrix_flops -
         figures_of_pair(spec, texts, 8, 0).forward.matrix_flops;
}

}  // namespace

TEST_CASE("models that compare texts with images have the reference's parameters and FLOPs") {
  for (const CsvRow& row : read_csv(data_folder() / "encoders/compared.csv")) {
    CAPTURE(row.at("model"));
    const ModelSpec spec = spec_of(compared_config(row.at("model")));
    CHECK(parameters_of_pair(spec) == number(row, "params"));
    const Figures figures =
        figures_of_pair(spec, number(row, "texts"), number(row, "seq"), number(row, "images"));
    CHECK(figures.forward.matrix_flops == number(row, "total_matmul_flops"));
  }
}

// openai/clip-vit-base-patch32: 151,277,313. Text: 49408·512 words, 77·512 positions, 12 layers of
// 4·(512² + 512) + 2·512·2048 + 2560 + 4·512, norm 2·512; image: class token 768, 3072·768 patches,
// 50·768 positions, norms 2·2·768, 12 layers of 4·(768² + 768) + 2·768·3072 + 3840 + 4·768;
// projections 512² and 512·768; scale 1. These are the sizes that a config may omit.
TEST_CASE("CLIP ViT-B/32 has its published parameters without a stated size") {
  CHECK(parameters_of_pair(spec_of({{"model_type", "clip"}, {"architectures", {"CLIPModel"}}})) ==
        151277313);
}

// google/siglip-base-patch16-224: 203,155,970. Text: 32000·768 words, 64·768 positions; image:
// 768·768 + 768 patches, 196·768 positions; each 12 layers of 4·(768² + 768) + 2·768·3072 + 3840 +
// 4·768, norm 2·768; head 768² + 768; pooling head 768 + 4·(768² + 768) + 2·768·3072 + 3840 +
// 2·768; scale and bias 2.
TEST_CASE("SigLIP base has its published parameters without a stated size") {
  CHECK(parameters_of_pair(
            spec_of({{"model_type", "siglip"}, {"architectures", {"SiglipModel"}}})) == 203155970);
}

TEST_CASE("tensors saved for training equal the recorded ones but for views, ids and scalars") {
  for (const CsvRow& row : read_csv(data_folder() / "encoders/compared.csv")) {
    CAPTURE(row.at("model"));
    const ModelSpec spec = spec_of(compared_config(row.at("model")));
    const Integer texts = number(row, "texts");
    const Integer images = number(row, "images");
    WorkloadRequest request;
    request.phase = Phase::train;
    request.batch_size = number(row, "texts");
    request.seq_len = number(row, "seq");
    request.images = number(row, "images");
    const Workload workload = resolve(request, spec);
    Integer expected = count(spec, workload).figures.saved_activation_bytes;
    expected -= 8 * workload.seq_len;  // ids of positions are a buffer of the reference
    expected += 4;                     // e^scale
    if (spec.head.similarity->pooling == TokenPooling::last) {
      // A view of the last token holds the whole hidden states.
      expected += 4 * texts * (workload.seq_len - 1) * spec.hidden_size;
    } else {
      expected += 4 * images * (spec.tower->embedding.image->num_tokens() - 1) *
                  spec.tower->hidden_size;  // a view of the class token, likewise
      expected += 2 * 8 * texts;            // rows and columns of the ends of texts
      expected += 4 * (texts + images);     // squares of both lengths beside their roots
    }
    CHECK(expected == number(row, "saved_bytes"));
  }
}

TEST_CASE("images are counted in all, whatever the number of texts") {
  for (const char* const model : {"clip", "siglip"}) {
    CAPTURE(std::string(model));
    const ModelSpec spec = spec_of(compared_config(model));
    const Integer width = spec.head.similarity->projection_dim;
    // An image costs its encoder once, and a product with each text.
    const Integer one = image_flops(spec, 1, 1) - 2 * width;
    CHECK(image_flops(spec, 5, 1) == one + 5 * 2 * width);
    CHECK(image_flops(spec, 5, 3) == 3 * one + 5 * 3 * 2 * width);
  }
}

TEST_CASE("images take no tokens of the text, and without them a note says that it runs alone") {
  const ModelSpec spec = spec_of(compared_config("clip"));
  WorkloadRequest request;
  CHECK(note_on_images(resolve(request, spec), spec).starts_with("text only"));
  request.images = 2;
  const Workload workload = resolve(request, spec);
  CHECK(workload.seq_len == 32);  // max_position_embeddings
  CHECK(workload.images.totals.images == 2);
  CHECK(workload.images.totals.tokens == 0);
  CHECK(note_on_images(workload, spec).empty());
}

// get_image_size_for_max_num_patches, transformers 5.24, models/siglip2: patches of images of these
// sizes with patches of 16 × 16 pixels, 256 at most.
TEST_CASE("SigLIP 2 scales an image to as many patches as its table has, in its own shape") {
  const ModelSpec spec = spec_of({{"model_type", "siglip2"}, {"architectures", {"Siglip2Model"}}});
  const auto grid = [&](std::int64_t height, std::int64_t width) {
    return grids_of_image(*spec.tower, {height, width}).front();
  };
  const std::vector<std::array<std::int64_t, 4>> cases{
      {{480, 640, 14, 18}, {1000, 100, 50, 5}, {224, 224, 16, 16}, {3000, 2000, 19, 13}}};
  for (const auto& one : cases) {
    CAPTURE(one[0]);
    const ImageGrid scaled = grid(one[0], one[1]);
    CHECK(scaled.rows == one[2]);
    CHECK(scaled.columns == one[3]);
  }
  WorkloadRequest request;
  request.images = 1;
  CHECK(resolve(request, spec).images.grids.front().patches() == 256);
}

TEST_CASE("the end of a text is the stated id, or the greatest one in configs that state 2") {
  nlohmann::json config = compared_config("clip");
  const auto head = [&](const nlohmann::json& id) {
    config["text_config"]["eos_token_id"] = id;
    return *spec_of(config).head.similarity;
  };
  CHECK(head(100).pooling == TokenPooling::first_of_id);
  CHECK(head(100).token_id == 100);
  CHECK(head(2).pooling == TokenPooling::greatest_id);
  config["text_config"].erase("eos_token_id");
  CHECK(spec_of(config).head.similarity->token_id == 49407);  // CLIPTextConfig
  CHECK(spec_of(compared_config("siglip")).head.similarity->pooling == TokenPooling::last);
}

TEST_CASE("a SigLIP whose sides cannot be compared is refused") {
  nlohmann::json config = compared_config("siglip");
  config["text_config"]["projection_size"] = 12;
  CHECK_THROWS_AS((void)spec_of(config), Error);
  config = compared_config("siglip");
  config["vision_config"]["vision_use_head"] = false;
  CHECK_THROWS_AS((void)spec_of(config), Error);
}
