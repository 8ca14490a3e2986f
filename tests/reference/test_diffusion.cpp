// Diffusion transformers against diffusers' classes and torch's counter of FLOPs. Source:
// tests/reference/make_diffusion.py.
#include <doctest/doctest.h>

#include <filesystem>

#include "headroom/report.h"
#include "op_cost.h"
#include "support/data.h"

using namespace headroom;
using namespace headroom::test;

namespace {

std::vector<std::filesystem::path> recordings() {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(data_folder() / "diffusion")) {
    files.push_back(entry.path());
  }
  return files;
}

WorkloadRequest request_of(const nlohmann::json& run, const ModelSpec& spec) {
  WorkloadRequest request;
  request.batch_size = run.at("batch");
  request.image_size = ImageSize{run.at("height"), run.at("width")};
  if (spec.denoiser->latent.is_video()) request.frames = run.at("frames").get<std::int64_t>();
  request.enc_seq_len = run.at("text").get<std::int64_t>();
  return request;
}

std::string peak_of(const Counted& counted) {
  return counted.analysis.live.at(counted.figures.peak_index).path;
}

Workload fused_step(const ModelSpec& spec) {
  WorkloadRequest request;
  request.attention = AttentionImplementation::fused;
  return resolve(request, spec);
}

std::string refusal(const char* preset, const WorkloadRequest& request) {
  const ModelSpec spec = load_model(preset).spec;
  return refusal_of([&] { (void)resolve(request, spec); });
}

}  // namespace

TEST_CASE("parameters of diffusion transformers equal those of diffusers' classes") {
  std::size_t models = 0;
  for (const auto& file : recordings()) {
    CAPTURE(file.string());
    const auto recorded = read_json(file);
    const Graph graph = build_graph(spec_of(recorded.at("config")), {});
    CHECK(parameters_on(graph) == Integer{recorded.at("parameters").get<std::int64_t>()});
    ++models;
  }
  CHECK(models == 20);
}

TEST_CASE("parameters and buffers equal the tensors that diffusers stores") {
  for (const auto& file : recordings()) {
    CAPTURE(file.string());
    const auto recorded = read_json(file);
    if (!recorded.contains("tensors")) continue;
    Integer stored = 0;
    for (const auto& [name, shape] : recorded.at("tensors").items()) {
      Integer elements = 1;
      for (const std::int64_t size : shape) elements *= size;
      stored += elements;
    }
    Model model;
    model.spec = spec_of(recorded.at("config"));
    CHECK(make_analyze_report(std::move(model), {}).figures.weight_bytes == 4 * stored);
  }
}

TEST_CASE("matrix FLOPs of a denoising step equal those that torch counts") {
  std::size_t runs = 0;
  for (const auto& file : recordings()) {
    CAPTURE(file.string());
    const auto recorded = read_json(file);
    const ModelSpec spec = spec_of(recorded.at("config"));
    for (const auto& run : recorded.at("runs")) {
      CAPTURE(run.dump());
      for (const auto attention :
           {AttentionImplementation::eager, AttentionImplementation::fused}) {
        WorkloadRequest request = request_of(run, spec);
        request.attention = attention;
        CHECK(count(spec, resolve(request, spec)).figures.forward.matrix_flops ==
              Integer{run.at("matrix_flops").get<std::int64_t>()});
      }
      ++runs;
    }
  }
  CHECK(runs == 29);
}

TEST_CASE("the presets of diffusion transformers are the recorded models") {
  for (const char* const name :
       {"flux.1-dev", "flux.1-schnell", "stable-diffusion-3-medium", "stable-diffusion-3.5-medium",
        "stable-diffusion-3.5-large", "pixart-sigma-xl", "wan2.1-t2v-1.3b", "wan2.1-t2v-14b"}) {
    CAPTURE(name);
    const ModelSpec spec = load_model(name).spec;
    const auto recorded = read_json(data_folder() / "diffusion" / (std::string(name) + ".json"));
    CHECK(parameters_on(build_graph(spec, {})) ==
          Integer{recorded.at("parameters").get<std::int64_t>()});
    for (const auto& run : recorded.at("runs")) {
      CHECK(count(spec, resolve(request_of(run, spec), spec)).figures.forward.matrix_flops ==
            Integer{run.at("matrix_flops").get<std::int64_t>()});
    }
  }
}

TEST_CASE("latent and text tokens are by default those of the model's pipeline") {
  const auto tokens = [](const char* name) {
    const Workload workload = resolve({}, load_model(name).spec);
    return std::pair{workload.seq_len, workload.enc_seq_len};
  };
  // 1024 pixels: 128 latent positions, 64 patches a side. Text: 77 of CLIP and 256 of T5.
  CHECK(tokens("stable-diffusion-3-medium") == std::pair<std::int64_t, std::int64_t>{4096, 333});
  CHECK(tokens("flux.1-dev") == std::pair<std::int64_t, std::int64_t>{4096, 512});
  CHECK(tokens("pixart-sigma-xl") == std::pair<std::int64_t, std::int64_t>{4096, 300});
  // 81 frames of 480 × 832: 21 × 30 × 52 patches.
  CHECK(tokens("wan2.1-t2v-1.3b") == std::pair<std::int64_t, std::int64_t>{32760, 512});
}

TEST_CASE("a request may give latent tokens instead of pixels") {
  const ModelSpec spec = load_model("flux.1-dev").spec;
  WorkloadRequest request;
  request.seq_len = 1024;
  request.enc_seq_len = 64;
  const Workload workload = resolve(request, spec);
  CHECK(workload.seq_len == 1024);
  CHECK(workload.enc_seq_len == 64);
  CHECK_FALSE(workload.sample.has_value());
}

TEST_CASE("requests that a denoising step cannot run are refused with a remedy") {
  WorkloadRequest decode;
  decode.phase = Phase::decode;
  CHECK(refusal("flux.1-dev", decode).find("no KV-cache and no decode phase") != std::string::npos);
  WorkloadRequest both;
  both.seq_len = 64;
  both.image_size = ImageSize{512, 512};
  CHECK(refusal("flux.1-dev", both).find("which `image_size` gives too") != std::string::npos);
  WorkloadRequest ragged;
  ragged.image_size = ImageSize{1000, 1024};
  CHECK(refusal("flux.1-dev", ragged).find("it must be a multiple of 16") != std::string::npos);
  WorkloadRequest video;
  video.frames = 5;
  CHECK(refusal("flux.1-dev", video).find("makes no video") != std::string::npos);
  CHECK(refusal("bert-base", video).find("makes no video") != std::string::npos);
  WorkloadRequest frames;
  frames.frames = 80;
  CHECK(refusal("wan2.1-t2v-1.3b", frames).find("1 more than a multiple of 4") !=
        std::string::npos);
  WorkloadRequest images;
  images.images = 1;
  CHECK_FALSE(refusal("flux.1-dev", images).empty());
}

TEST_CASE("peak activations of FLUX.1 are those of a single layer's joined branches") {
  // Live in the output of attention and network, of d and 4·d, which the output projection reads
  // joined: the residual stream, both and their copy, for all t tokens: (1 + 5 + 5)·t·d. Beside
  // them the conditioning, and its shift, scale and gate: 4·d.
  const ModelSpec spec = load_model("flux.1-dev").spec;
  const Counted counted = count(spec, fused_step(spec));
  const Integer tokens = 4096 + 512;
  CHECK(counted.figures.peak_activation_bytes == (11 * tokens + 4) * 3072 * 2);
  CHECK(peak_of(counted) == "single_layers.mlp.join");
}

TEST_CASE("peak activations of PixArt-Sigma are those of the inner network") {
  // Live: the residual stream, the norm's output and 4·d features of the network for s image
  // tokens; n text tokens; conditioning d, the shared vectors 6·d and the layer's 6·d.
  const ModelSpec spec = load_model("pixart-sigma-xl").spec;
  const Counted counted = count(spec, fused_step(spec));
  CHECK(counted.figures.peak_activation_bytes == ((1 + 1 + 4) * 4096 + 300 + 13) * 1152 * 4);
  CHECK(peak_of(counted) == "layers.mlp.up");
}

TEST_CASE("element-wise FLOPs of modulation are those of its loops") {
  constexpr std::int64_t kBatch = 2;
  constexpr std::int64_t kTokens = 3;
  constexpr std::int64_t kWidth = 5;
  Integer shifted = 0;
  Integer gated = 0;
  for (std::int64_t sequence = 0; sequence < kBatch; ++sequence) {
    for (std::int64_t channel = 0; channel < kWidth; ++channel) {
      shifted += 1;  // 1 + scale
      for (std::int64_t token = 0; token < kTokens; ++token) {
        shifted += 2;  // multiplication and sum
        gated += 1;
      }
    }
  }
  Modulation op{Modulation::Kind::scale_and_shift, Integer{kBatch}, Integer{kTokens},
                Integer{kWidth}};
  CHECK(detail::elementwise_flops(op).forward == Expr(shifted));
  op.kind = Modulation::Kind::gate;
  CHECK(detail::elementwise_flops(op).forward == Expr(gated));
  // A product, a cosine and a sine per frequency and sequence.
  CHECK(detail::elementwise_flops(TimestepFeatures{Integer{2}, Integer{4}}).forward ==
        Expr(Integer{2 * 4 * 3}));
  CHECK(detail::elementwise_flops(TrainedShift{Integer{2}, Integer{6}}).forward ==
        Expr(Integer{12}));
}

TEST_CASE("configs of other diffusion models are refused by what they are") {
  const auto refusal_of_config = [](nlohmann::json config) {
    return refusal_of([&] { (void)spec_of(config); });
  };
  CHECK(refusal_of_config({{"_class_name", "UNet2DConditionModel"}})
            .find("\"UNet2DConditionModel\" is unknown") != std::string::npos);
  CHECK(refusal_of_config({{"_class_name", "WanTransformer3DModel"}, {"image_dim", 1280}})
            .find("added_kv_proj_dim") != std::string::npos);
  CHECK(refusal_of_config({{"_class_name", "SD3Transformer2DModel"}, {"qk_norm", "layer_norm"}})
            .find("\"layer_norm\" is not supported") != std::string::npos);
  CHECK(refusal_of_config({{"_class_name", "FluxTransformer2DModel"}, {"num_widgets", 3}})
            .find("num_widgets") != std::string::npos);
}
