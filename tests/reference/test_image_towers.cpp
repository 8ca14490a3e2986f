// Image towers: visual tokens by each family's rule, against published figures, and FLOPs against
// those that torch's dispatcher recorded (tests/data/README.md).
#include <doctest/doctest.h>

#include <array>
#include <fstream>

#include "support/data.h"
#include "support/scratch.h"

using namespace headroom;
using namespace headroom::test;

namespace {

ModelSpec tiny(const std::string& name) {
  return spec_of(read_json(data_folder() / "towers/tiny" / (name + ".config.json")), name);
}

/// The recorded run: a prefill of 2 sequences of 27 tokens, with an image of `grid` each.
Counted recorded_run(const ModelSpec& spec, ImageGrid grid) {
  Workload workload;
  workload.batch_size = 2;
  workload.seq_len = 27;
  workload.images.count = 1;
  workload.images.grids = {grid, grid};
  workload.images.totals = image_totals(spec, workload.images.grids, workload.batch_size);
  return count(spec, workload);
}

Integer recorded_flops(const std::string& model) {
  for (const CsvRow& row : read_csv(data_folder() / "towers/flops.csv")) {
    if (row.at("model") == model) return number(row, "total_matmul_flops");
  }
  return 0;
}

Integer counted_flops(const std::string& model, ImageGrid grid) {
  return recorded_run(tiny(model), grid).figures.forward.matrix_flops;
}

/// FLOPs of SigLIP's pooling head for one image of `rows` patches: one query attends to all, then a
/// network. The reference code runs it, although no multimodal family reads its output.
Integer pooling_head_flops(Integer rows, Integer width, Integer inner) {
  const Integer projections = 2 * width * width * (1 + 2 * rows + 1);
  const Integer attention = 2 * 2 * rows * width;
  return projections + attention + 2 * 2 * width * inner;
}

/// The tower of a multimodal config with these sizes of images, as `config` changes it.
ModelSpec with_vision(const std::string& model, const nlohmann::json& vision,
                      const nlohmann::json& outer = nlohmann::json::object()) {
  auto config = read_json(data_folder() / "towers/tiny" / (model + ".config.json"));
  config["vision_config"].update(vision);
  config.update(outer);
  return spec_of(config, model);
}

/// Visual tokens of one image of `size`.
std::int64_t tokens_of(const ModelSpec& spec, ImageSize size) {
  WorkloadRequest request;
  request.images = 1;
  request.image_size = size;
  return resolve(request, spec).images.totals.tokens;
}

}  // namespace

TEST_CASE("FLOPs of towers, projectors and text equal the reference code's") {
  CHECK(counted_flops("llava", {4, 4}) == recorded_flops("llava"));
  CHECK(counted_flops("internvl", {4, 4}) == recorded_flops("internvl"));
  CHECK(counted_flops("idefics3", {4, 4}) == recorded_flops("idefics3"));
}

TEST_CASE("FLOPs of towers with SigLIP's pooling head differ from the reference code's by it") {
  CHECK(counted_flops("paligemma", {4, 4}) + 2 * pooling_head_flops(16, 40, 56) ==
        recorded_flops("paligemma"));
  CHECK(counted_flops("gemma3", {6, 6}) + 2 * pooling_head_flops(36, 40, 56) ==
        recorded_flops("gemma3"));
}

TEST_CASE("images without padding, and attention within each, save the rest of the reference") {
  // The reference code multiplies all 48 × 48 pairs of two images of 24 patches and masks half:
  // 2 GEMMs of 2 FLOP per pair and channel, in 3 layers of width 40.
  const Integer masked = Integer{4} * (48 * 48 - 2 * 24 * 24) * 40 * 3;
  // It also projects the 2 × 12 patches of padding, of 48 values each.
  const Integer padding = Integer{2} * (2 * 12) * 48 * 40;
  CHECK(counted_flops("mistral3", {6, 4}) + masked + padding == recorded_flops("mistral3"));
}

namespace {

/// The model and the images of tests/reference/make_wrapped_towers.py.
struct WithImages {
  std::string model;
  std::vector<ImageGrid> grids;
  std::vector<ImageSize> tiled{};  ///< sizes of images whose tiles `grids` lists
};

/// FLOPs that the images add to a prefill of `seq_len` tokens.
Integer added_flops(const WithImages& images, std::int64_t seq_len) {
  const auto folder = data_folder() / "golden/models" / images.model;
  const ModelSpec spec =
      std::filesystem::exists(folder) ? load_model(folder.string()).spec : tiny(images.model);
  Workload text;
  text.batch_size = 1;
  text.seq_len = seq_len;
  Workload workload = text;
  workload.images.count = 2;
  workload.images.grids = images.grids;
  workload.images.totals = image_totals(spec, images.grids, 1);
  if (!images.tiled.empty()) workload.images.totals.tokens = 0;
  for (const ImageSize size : images.tiled) {
    workload.images.tilings.push_back(stated_tiling(*spec.tower, size));
    workload.images.totals.tokens += packed_tokens(*spec.tower, workload.images.tilings.back());
  }
  return count(spec, workload).figures.forward.matrix_flops -
         count(spec, text).figures.forward.matrix_flops;
}

}  // namespace

TEST_CASE("FLOPs that images add to a prefill equal the reference code's") {
  const std::vector<ImageGrid> tiles(6, ImageGrid{4, 4});
  const std::vector<WithImages> all{{"vipllava_images", {{3, 3}, {3, 3}}},
                                    {"video_llama_3_images", {{2, 3}, {4, 1}}},
                                    {"paddleocr_vl_images", {{4, 6}, {4, 4}}},
                                    {"minimax_m3_vl_images", {{4, 6}, {4, 2}}},
                                    {"kimi_vl_images", {{4, 6}, {4, 2}}},
                                    {"glm_ocr_images", {{4, 6}, {4, 4}}},
                                    {"video_llava_images", {{3, 3}, {3, 3}}},
                                    {"phi4_multimodal_images", tiles, {{16, 32}, {32, 16}}},
                                    {"blip2_images", {{4, 4}, {4, 4}}},
                                    {"aria_images", {{4, 4}, {4, 4}}},
                                    {"kimi_k3_images", {{4, 6}, {4, 2}}},
                                    {"cohere_compass_images", {{4, 6}, {4, 4}}},
                                    {"glm5_next_images", {{4, 6}, {4, 4}}},
                                    {"muse_glimmer_images", {{4, 6}, {4, 4}}}};
  const auto rows = read_csv(data_folder() / "towers/image_flops.csv");
  REQUIRE(rows.size() == all.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    CAPTURE(all[i].model);
    REQUIRE(rows[i].at("model") == all[i].model);
    // The reference runs the pooling head of Phi-4's SigLIP on every tile.
    const Integer unread =
        all[i].tiled.empty() ? Integer{0} : std::ssize(tiles) * pooling_head_flops(16, 40, 56);
    CHECK(added_flops(all[i], checked_int64(number(rows[i], "seq_len"))) + unread ==
          number(rows[i], "image_flops"));
  }
}

TEST_CASE("images of Llama 3.2 Vision cost the FLOPs and the cache of the reference code") {
  const auto folder = data_folder() / "golden/models/mllama_images";
  const ModelSpec spec = load_model(folder.string()).spec;
  const nlohmann::json reference = read_json(folder / "reference.json");
  WorkloadRequest request;
  request.batch_size = reference.at("sequences");
  request.seq_len = reference.at("tokens");
  const Figures text = count(spec, resolve(request, spec)).figures;
  CHECK(text.parameters == reference.at("parameters").get<std::int64_t>());
  CHECK(text.forward.matrix_flops == reference.at("flops_of_text").get<std::int64_t>());
  request.images = reference.at("images");
  const Workload prompt = resolve(request, spec);
  const Figures figures = count(spec, prompt).figures;
  // The class multiplies each image's mask of 4 · 16 rows with itself.
  const Integer masks = 4 * Integer{2} * 64 * 64;
  CHECK(figures.forward.matrix_flops + masks == reference.at("flops").get<std::int64_t>());
  const Integer elements = reference.at("cache_elements").get<std::int64_t>();
  CHECK(figures.kv_cache_bytes == elements * bytes_of(prompt.kv_dtype));
  const Figures step = count(spec, decode_step(prompt, 1)).figures;
  CHECK(step.forward.matrix_flops == reference.at("flops_of_step").get<std::int64_t>());
  // A step's cache holds the images' keys and values too, and those of one more token: of 3 layers,
  // 2 sequences, K and V of 2 heads of 8.
  CHECK(step.kv_cache_bytes - figures.kv_cache_bytes ==
        Integer{3} * 2 * 2 * 2 * 8 * bytes_of(prompt.kv_dtype));
  request.phase = Phase::decode;
  request.past_len = request.seq_len;
  request.seq_len = 1;
  CHECK(count(spec, resolve(request, spec)).figures.kv_cache_bytes == step.kv_cache_bytes);
}

TEST_CASE("Llama 3.2 Vision's images of any size become 4 tiles, as many as they fill of them") {
  // get_optimal_tiled_canvas of transformers' models/mllama with tiles of 560 pixels (11B and 90B).
  auto config = read_json(data_folder() / "golden/models/mllama_images/config.json");
  config["vision_config"]["image_size"] = 560;
  config["vision_config"]["patch_size"] = 14;
  const ModelSpec spec = spec_of(config);
  struct Canvas {
    ImageSize size;
    std::int64_t rows;
    std::int64_t columns;
  };
  for (const Canvas& canvas : {Canvas{{100, 200}, 1, 1},
                               {{560, 560}, 1, 1},
                               {{561, 560}, 2, 1},
                               {{480, 640}, 1, 2},
                               {{1000, 300}, 2, 1},
                               {{3000, 4000}, 2, 2},
                               {{2000, 400}, 4, 1},
                               {{300, 1500}, 1, 3}}) {
    CAPTURE(canvas.size.height);
    CAPTURE(canvas.size.width);
    WorkloadRequest request;
    request.images = 1;
    request.image_size = canvas.size;
    const Workload workload = resolve(request, spec);
    REQUIRE(workload.images.tilings.size() == 1);
    CHECK(workload.images.tilings.front().tile_rows == canvas.rows);
    CHECK(workload.images.tilings.front().tile_columns == canvas.columns);
    CHECK(workload.images.totals.images == 4);
    CHECK(workload.images.totals.tokens == 1);
    CHECK(workload.enc_seq_len == 4 * 1601);  // 40 · 40 patches and a class token each
  }
}

TEST_CASE("an image of Kimi K3 has at most 65,536 patches") {
  // kimi_k3_vision_processing.py with its in_patch_limit: 216 × 286 patches, 258 × 258 of a larger
  // image.
  const ModelSpec spec = spec_of(read_json(data_folder() / "wild/kimi-k3.config.json"));
  CHECK(tokens_of(spec, {3000, 4000}) == 15444);
  CHECK(tokens_of(spec, {8000, 8000}) == 129 * 129);
}

TEST_CASE("Phi's images become the visual tokens of their preprocessors' tiles") {
  // image_processing_phi3_v.py with 16 crops: of 336 pixels, in 12 × 12 blocks of patches.
  const ModelSpec phi3 = tiny("phi3_v");
  CHECK(tokens_of(phi3, {480, 640}) == 1921);  // 3 × 4 tiles
  CHECK(tokens_of(phi3, {640, 480}) == 1933);
  CHECK(tokens_of(phi3, {336, 336}) == 2509);
  CHECK(tokens_of(phi3, {300, 1000}) == 1909);
  // image_processing_phi4_multimodal.py: tiles of 448 pixels, in 16 × 16 blocks of patches.
  const ModelSpec phi4 =
      with_vision("phi4_multimodal", {{"image_size", 448}, {"crop_size", 448}, {"patch_size", 14}});
  CHECK(tokens_of(phi4, {448, 448}) == 545);
  CHECK(tokens_of(phi4, {480, 640}) == 1065);  // 2 × 2 tiles, without the rows of padding
  CHECK(tokens_of(phi4, {1000, 300}) == 1041);
  CHECK(tokens_of(phi4, {3000, 4000}) == 3393);  // of more than 36 tiles, 3 × 4
  CHECK(tokens_of(phi4, {700, 2000}) == 2541);
}

TEST_CASE("an image becomes the published number of visual tokens") {
  // LLaVA 1.5 (arXiv 2310.03744): 336 pixels in patches of 14.
  CHECK(tokens_of(with_vision("llava", {{"image_size", 336}, {"patch_size", 14}}), {480, 640}) ==
        576);
  // PaliGemma (arXiv 2407.07726, section 3.1): 256 tokens at 224 pixels, 1024 at 448.
  CHECK(tokens_of(with_vision("paligemma", {{"image_size", 224}, {"patch_size", 14}}), {1, 1}) ==
        256);
  CHECK(tokens_of(with_vision("paligemma", {{"image_size", 448}, {"patch_size", 14}}), {1, 1}) ==
        1024);
  // Gemma 3 (arXiv 2503.19786, section 2): 896 pixels become 256 tokens.
  const ModelSpec gemma = with_vision("gemma3", {{"image_size", 896}, {"patch_size", 14}},
                                      {{"mm_tokens_per_image", 256}});
  CHECK(tokens_of(gemma, {1200, 800}) == 256);
}

TEST_CASE("tiles of InternVL are those nearest the aspect ratio, and the whole image") {
  // 448 pixels in patches of 14, merged by 2 × 2: 256 tokens a tile (arXiv 2404.16821).
  const ModelSpec spec = with_vision("internvl", {{"image_size", 448}, {"patch_size", 14}});
  CHECK(tokens_of(spec, {448, 448}) == 256);               // one tile, which is the whole
  CHECK(tokens_of(spec, {448, 896}) == 256 * (2 + 1));     // 1 × 2
  CHECK(tokens_of(spec, {1344, 1792}) == 256 * (12 + 1));  // 3 × 4
}

TEST_CASE("tiles of Idefics3 are four along the longer side") {
  // 364 pixels in patches of 14, merged by 2 × 2: 169 tokens a tile (arXiv 2408.12637,
  // section 3.1).
  const ModelSpec spec = with_vision("idefics3", {{"image_size", 364}, {"patch_size", 14}});
  CHECK(tokens_of(spec, {364, 364}) == 169 * (4 * 4 + 1));
  CHECK(tokens_of(spec, {728, 1456}) == 169 * (2 * 4 + 1));
}

TEST_CASE("images of Pixtral keep their size up to the longest side") {
  const ModelSpec spec = with_vision("mistral3", {{"image_size", 1540}, {"patch_size", 14}});
  CHECK(tokens_of(spec, {28, 56}) == 2);
  CHECK(tokens_of(spec, {29, 57}) == 2 * 3);  // completed to whole blocks of 28 pixels
  CHECK(tokens_of(spec, {1540, 1540}) == 55 * 55);
  CHECK(tokens_of(spec, {3080, 1540}) == 55 * 28);  // halved: 1540 × 770
}

TEST_CASE("images of Qwen2.5-VL have a token for every 28 × 28 pixels") {
  // arXiv 2502.13923, section 2.1.1: patches of 14, merged by 2 × 2.
  const ModelSpec spec = with_vision("qwen2_5_vl", {{"patch_size", 14}, {"window_size", 112}});
  CHECK(tokens_of(spec, {1092, 1092}) == 39 * 39);
  CHECK(tokens_of(spec, {30, 69}) == 2);  // rounded to 28 × 56
}

TEST_CASE("a tower whose config states no size of images asks for one, and notes the rule") {
  WorkloadRequest request;
  request.images = 1;
  const ModelSpec spec = tiny("qwen2_5_vl");
  CHECK(refusal_of([&] { (void)resolve(request, spec); }).find("no size of images") !=
        std::string::npos);
  request.image_size = ImageSize{56, 56};
  const std::string note = note_on_images(resolve(request, spec), spec);
  CHECK(note.find("preprocessor") != std::string::npos);
}

TEST_CASE("packed tiles follow one token of text, not one for each tile") {
  WorkloadRequest request;
  request.images = 1;
  request.image_size = ImageSize{56, 56};
  const ModelSpec spec = tiny("llava_next");
  const WorkloadImages images = resolve(request, spec).images;
  REQUIRE(images.grids.size() > 2);
  request.seq_len = images.totals.tokens + 1;
  CHECK(resolve(request, spec).seq_len == *request.seq_len);
  request.seq_len = images.totals.tokens;
  CHECK(!refusal_of([&] { (void)resolve(request, spec); }).empty());
}

TEST_CASE("images whose sums exceed 63 bits are errors, not the largest number") {
  WorkloadRequest request;
  request.images = 1;
  request.image_size = ImageSize{std::int64_t{1} << 31U, std::int64_t{1} << 31U};
  CHECK_THROWS_WITH((void)resolve(request, tiny("qwen2_vl")),
                    doctest::Contains("larger than 2^63"));
  ModelSpec enlarged = tiny("qwen2_vl");
  enlarged.tower->pixel_limits = PixelLimits{std::int64_t{1} << 62U, INT64_MAX};
  request.image_size = ImageSize{64, 64};
  CHECK_THROWS_AS((void)resolve(request, enlarged), Error);
}

TEST_CASE("images that a workload cannot have are refused") {
  WorkloadRequest request;
  request.images = 1;
  CHECK(refusal_of([&] {
          (void)resolve(request, load_model("gpt2").spec);
        }).find("no image tower") != std::string::npos);
  request.phase = Phase::decode;
  CHECK(refusal_of([&] { (void)resolve(request, tiny("llava")); }).find("KV-cache") !=
        std::string::npos);
  request.phase = Phase::prefill;
  request.seq_len = 16;  // 16 visual tokens and one of text
  CHECK(!refusal_of([&] { (void)resolve(request, tiny("llava")); }).empty());
  request.seq_len = 17;
  CHECK(resolve(request, tiny("llava")).seq_len == 17);
  request.images = 0;
  request.image_size = ImageSize{24, 24};
  CHECK(!refusal_of([&] { (void)resolve(request, tiny("llava")); }).empty());
}

TEST_CASE("tower and projector are components with FLOPs; without images only with parameters") {
  const ModelSpec spec = tiny("llava");
  const auto flops_of = [](const Counted& counted, Part part) {
    Integer flops = 0;
    for (std::size_t i = 0; i < counted.analysis.components.size(); ++i) {
      if (counted.analysis.components[i].component.part != part) continue;
      flops += counted.figures.components[i].forward.matrix_flops;
    }
    return flops;
  };
  const Counted images = recorded_run(spec, {4, 4});
  // Patches of 108 values; 3 layers of 17 rows, width 40 and FFN 56; per image.
  const Integer layer = 2 * 17 * (4 * 40 * 40 + 2 * 40 * 56) + 4 * 17 * 17 * 40;
  CHECK(flops_of(images, Part::vision_tower) == 2 * (2 * 16 * 108 * 40 + 3 * layer));
  CHECK(flops_of(images, Part::projector) == 2 * 2 * 16 * (40 * 48 + 48 * 48));
  const Counted text = count(spec, {});
  CHECK(flops_of(text, Part::vision_tower) == 0);
  CHECK(text.figures.parameters == images.figures.parameters);
}

TEST_CASE("images before a narrow embedding of learned positions add no parameters") {
  auto config = read_json(data_folder() / "golden/models/blip2_images/config.json");
  config["text_config"]["word_embed_proj_dim"] = 24;
  const ModelSpec spec = spec_of(config, "blip2");
  CHECK(recorded_run(spec, {4, 4}).figures.parameters == count(spec, {}).figures.parameters);
}

namespace {

/// A published model's sizes of tiles or patches in a tiny config.
ModelSpec published_tiles(const std::string& rule) {
  const auto golden = [](const std::string& name) {
    return read_json(data_folder() / "golden/models" / name / "config.json");
  };
  nlohmann::json config;
  if (rule == "llama4") config = golden("llama4_images");
  if (rule == "kimi_k25") config = golden("kimi_k25_images");
  if (rule == "muse_glimmer") config = golden("muse_glimmer_images");
  if (rule == "glm5_next") config = golden("glm5_next_images");
  if (rule == "llava_next") config = golden("llava_next_tiles");
  if (rule == "llava_onevision") config = golden("llava_onevision_tiles");
  if (rule == "lfm2_vl") config = golden("lfm2_vl_images");
  if (rule == "cohere2_vision") config = golden("cohere2_vision_images");
  if (rule.starts_with("qwen2_vl"))
    config = read_json(data_folder() / "towers/tiny/qwen2_vl.config.json");
  nlohmann::json& vision = config["vision_config"];
  const bool wide = rule == "lfm2_vl" || rule == "cohere2_vision";
  vision["patch_size"] = wide ? 16 : 14;
  if (vision.contains("image_size")) vision["image_size"] = rule == "llava_onevision" ? 384 : 336;
  if (rule == "cohere2_vision") vision["image_size"] = 512;
  if (rule == "llava_next") {
    config["image_grid_pinpoints"] = {{336, 672}, {672, 336}, {672, 672}, {1008, 336}, {336, 1008}};
  }
  if (rule == "llava_onevision") {
    config["vision_aspect_ratio"] = "anyres_max_9";
    config["image_grid_pinpoints"] = nlohmann::json::array();
    for (int i = 0; i < 36; ++i) {
      config["image_grid_pinpoints"].push_back({384 * (1 + i / 6), 384 * (1 + i % 6)});
    }
  }
  ModelSpec spec = spec_of(config, rule);
  if (rule == "qwen2_vl_limits") {
    spec.tower->pixel_limits = PixelLimits{256 * 28 * 28, 1280 * 28 * 28};
  }
  return spec;
}

}  // namespace

TEST_CASE("an image becomes as many visual tokens as the reference's functions give") {
  std::size_t checked = 0;
  for (const CsvRow& row : read_csv(data_folder() / "towers/visual_tokens.csv")) {
    CAPTURE(row.at("rule"));
    const ImageSize size{number(row, "height"), number(row, "width")};
    CAPTURE(size.height);
    CAPTURE(size.width);
    CHECK(tokens_of(published_tiles(row.at("rule")), size) == number(row, "tokens"));
    ++checked;
  }
  CHECK(checked == 102);
}

TEST_CASE("limits of visual tokens beside the config bound those of an image") {
  for (const char* const model : {"glm5_next", "muse_glimmer"}) {
    CAPTURE(model);
    const ScratchFolder folder;
    const auto config = data_folder() / "towers/tiny" / (std::string(model) + ".config.json");
    std::filesystem::copy_file(config, folder.path() / "config.json");
    const auto tokens = [&] {
      return tokens_of(load_model(folder.path().string()).spec, {160, 160});
    };
    CHECK(tokens() == 400);  // blocks of 8 × 8 pixels
    std::ofstream(folder.path() / "preprocessor_config.json") << R"({"max_image_tokens": 100})";
    CHECK(tokens() == 100);
    std::ofstream(folder.path() / "preprocessor_config.json")
        << R"({"min_image_tokens": 900, "max_image_tokens": 1000})";
    CHECK(tokens() == (model == std::string("glm5_next") ? 900 : 400));
    std::ofstream(folder.path() / "preprocessor_config.json")
        << R"({"min_image_tokens": 4, "max_image_tokens": 3})";
    if (model == std::string("glm5_next")) CHECK_THROWS_AS((void)tokens(), Error);
  }
}

TEST_CASE("the pairs of an image's windows are the sum over its windows") {
  for (const char* const model : {"muse_glimmer", "qwen2_5_vl", "glm4v"}) {
    CAPTURE(model);
    const ModelSpec spec = tiny(model);
    const ImageSpec& image = *spec.tower->embedding.image;
    for (std::int64_t rows = 2; rows < 30; rows += 4) {
      for (std::int64_t columns = 2; columns < 30; columns += 2) {
        const std::array<ImageGrid, 1> grid{ImageGrid{rows, columns}};
        Integer pairs = 0;
        for (const std::int64_t in_window : window_rows(image, grid.front())) {
          pairs += Integer{in_window} * in_window;
        }
        CHECK(image_totals(spec, grid, 1).window_pairs == pairs);
      }
    }
  }
}

TEST_CASE("limits of a preprocessor beside the config bound an image's visual tokens") {
  const ScratchFolder folder;
  const auto config = data_folder() / "towers/tiny/qwen2_vl.config.json";
  std::filesystem::copy_file(config, folder.path() / "config.json");
  // Blocks of 2 × 2 patches of 4 × 4 pixels: 64 pixels become a token.
  const auto tokens = [&] {
    return tokens_of(load_model(folder.path().string()).spec, {160, 160});
  };
  CHECK(tokens() == 400);
  folder.write("preprocessor_config.json",
               R"({"size": {"shortest_edge": 64, "longest_edge": 6400}})");
  CHECK(tokens() == 100);
  folder.write("preprocessor_config.json",
               R"({"min_pixels": 40000, "max_pixels": 90000, "size": {"longest_edge": 64}})");
  CHECK(tokens() == 625);
  folder.write("preprocessor_config.json", R"({"min_pixels": 9, "max_pixels": 8})");
  CHECK_THROWS_WITH(static_cast<void>(tokens()),
                    doctest::Contains("max_pixels: is less than min_pixels"));
}

TEST_CASE("towers with heads or images too small for their positions are refused") {
  const auto refusal = [](const char* file, const char* key, std::int64_t value) {
    nlohmann::json config = read_json(data_folder() / file);
    config["vision_config"][key] = value;
    return refusal_of([&] { static_cast<void>(spec_of(config)); });
  };
  const char* const paddle = "towers/tiny/paddleocr_vl.config.json";
  CHECK(refusal(paddle, "image_size", 2).find("image_size") != std::string::npos);
  CHECK(refusal(paddle, "patch_size", std::int64_t{1} << 40).find("patch_size") !=
        std::string::npos);
  const char* const minimax = "golden/models/minimax_m3_vl_images/config.json";
  const nlohmann::json vision = read_json(data_folder() / minimax).at("vision_config");
  const auto heads = vision.at("hidden_size").get<std::int64_t>() / 2;
  CHECK(refusal(minimax, "num_attention_heads", heads).find("too small for RoPE") !=
        std::string::npos);
}
