// Counts of the measured module (kernels, caches, arena) against counts that the analytic module
// derives from the graph, exactly. The two modules share only the graph.
#include <doctest/doctest.h>

#include "session.h"
#include "support/data.h"

using namespace headroom;
using namespace headroom::measured;

namespace {

struct RunCounts {
  std::int64_t matrix_flops = 0;
  std::int64_t kv_cache_bytes = 0;
  std::int64_t arena_peak_bytes = 0;
  std::int64_t weight_bytes = 0;
  AllocatedMemory allocated;
};

Lengths lengths_of_workload(const Workload& workload) {
  Lengths lengths;
  lengths.batch = workload.batch_size;
  lengths.seq_len = workload.seq_len;
  lengths.enc_seq_len = workload.enc_seq_len;
  lengths.past = workload.past_len;
  lengths.capacity = workload.past_len + workload.seq_len;
  lengths.images = workload.images.totals;
  lengths.audio = workload.audio.totals;
  lengths.global_tokens = workload.global_tokens;
  return lengths;
}

/// Runs the workload on random inputs, and returns `figure` of the program and its cache.
template <class Figure>
auto after_run(const Session& session, const Workload& workload, Figure figure) {
  const ModelInputs inputs = random_inputs(session.spec(), workload, 1);
  const Lengths lengths = lengths_of_workload(workload);
  KvCache cache = session.make_cache(lengths);
  cache.fill(1);
  const auto program = session.program(workload.phase, inputs, lengths, cache);
  program->run();
  return figure(*program, cache);
}

RunCounts count_run(const Session& session, const Workload& workload) {
  return after_run(session, workload, [&](const Program& program, const KvCache& cache) {
    RunCounts run_counts;
    for (const ProgramBlock& block : program.blocks()) {
      for (const StepCount& count : block.counts) run_counts.matrix_flops += count.matrix_flops;
    }
    run_counts.kv_cache_bytes = cache.bytes();
    run_counts.arena_peak_bytes = program.arena_peak_bytes();
    run_counts.weight_bytes = session.weights().bytes();
    run_counts.allocated = program.allocated();
    return run_counts;
  });
}

/// Bytes that the one kernel of attention reads and writes, in all layers.
Integer attention_bytes_of_run(const Session& session, const Workload& workload) {
  return after_run(session, workload, [](const Program& program, const KvCache& /*cache*/) {
    Integer bytes = 0;
    for (const ProgramBlock& block : program.blocks()) {
      for (std::size_t i = 0; i < block.steps.size(); ++i) {
        const bool attends = block.steps[i].node->component.part == Part::attention_core;
        if (attends) bytes += block.counts[i].bytes;
      }
    }
    return bytes;
  });
}

/// The bytes that the graph's formulas count for it.
Integer attention_bytes(const ModelSpec& spec, const Workload& workload) {
  const test::Counted counted = test::count(spec, workload);
  const Bindings values = bindings_of(workload, counted.graph);
  Integer bytes = 0;
  for (const NodeAnalysis& node : counted.analysis.nodes) {
    if (node.component.part != Part::attention_core) continue;
    bytes += (node.cost.forward.bytes_read + node.cost.forward.bytes_written).evaluate(values);
  }
  return bytes;
}

/// The model without the towers that are counted, which a run does not load.
ModelSpec loaded_parts(ModelSpec spec) {
  std::erase_if(spec.counted_only,
                [](const CountedWeight& weight) { return !is_loaded(weight.use); });
  return spec;
}

void check_step(const RunCounts& run, const Figures& counted) {
  CHECK(run.matrix_flops == counted.forward.matrix_flops);
  CHECK(run.kv_cache_bytes == counted.kv_cache_bytes);
  CHECK(run.arena_peak_bytes == counted.peak_activation_bytes);
}

void check_counts(const ModelSpec& spec, std::int64_t images = 0, std::int64_t clips = 0) {
  CAPTURE(spec.name);
  CAPTURE(images);
  CAPTURE(clips);
  for (const auto attention : {AttentionImplementation::eager, AttentionImplementation::fused}) {
    CAPTURE(std::string(name_of(attention)));
    const bool fused = attention == AttentionImplementation::fused;
    // Windows of several sizes have no fused kernel.
    if (fused && spec.main_stack().self_attention.global && !spec.main_stack().variants.empty()) {
      continue;
    }
    const auto source = random_weights(1);
    const Session session(
        spec, *source,
        {Backend::eigen, measured::HeldType::float32, RowRange::both, 18, attention});
    for (const Phase phase : {Phase::prefill, Phase::decode}) {
      const bool reads_tower = images > 0 || clips > 0;
      if (phase == Phase::decode && (!spec.main_stack().causal() || reads_tower)) continue;
      CAPTURE(std::string(name_of(phase)));
      WorkloadRequest request;
      request.phase = phase;
      request.attention = attention;
      request.dtype = DType::float32;
      request.batch_size = 2;
      request.images = images;
      request.audio = clips;
      if (clips > 0) request.audio_seconds = 1;
      const bool has_no_size = images > 0 && spec.tower->embedding.image->image_size == 0;
      if (has_no_size) request.image_size = ImageSize{48, 72};
      const bool has_length = spec.embedding.image || reads_tower;
      if (!has_length && phase == Phase::prefill) request.seq_len = 9;
      if (spec.main_stack().self_attention.global) {
        request.seq_len = 19;  // padded to 24, which every window divides
        request.global_tokens = fused ? 0 : 2;
      }
      if (phase == Phase::decode) request.past_len = 6;
      if (spec.kind == ModelKind::encoder_decoder) request.enc_seq_len = 7;
      const Workload workload = resolve(request, spec);
      const RunCounts run_counts = count_run(session, workload);
      const Figures counted = test::count(spec, workload).figures;
      check_step(run_counts, counted);
      CHECK(run_counts.weight_bytes ==
            test::count(loaded_parts(spec), workload).figures.weight_bytes);
      CHECK(run_counts.allocated.arena_bytes >= run_counts.arena_peak_bytes);
    }
  }
}

}  // namespace

TEST_CASE("FLOPs, caches, arena and weights of a run equal the analytic counts") {
  for (const auto& entry :
       std::filesystem::directory_iterator(test::data_folder() / "golden/tiny")) {
    const auto config = test::read_json(entry.path()).at("config");
    check_counts(test::spec_of(config, entry.path().stem().string()));
  }
}

TEST_CASE(
    "a single attention layer with d_k different from d_v has equal counts, softmax or linear") {
  for (const char* const kind : {"softmax", "linear"}) {
    for (const bool causal : {false, true}) {
      check_counts(test::spec_of({{"model_type", "attention"},
                                  {"d_model", 48},
                                  {"num_attention_heads", 4},
                                  {"d_k", 16},
                                  {"d_v", 20},
                                  {"attention_kind", kind},
                                  {"is_causal", causal}}));
    }
  }
}

namespace {

/// Counts of a prefill of 3 sequences of 8 tokens.
RunCounts count_prefill(const ModelSpec& spec, AttentionImplementation attention) {
  WorkloadRequest request;
  request.batch_size = 3;
  request.seq_len = 8;
  request.attention = attention;
  const auto source = random_weights(1);
  const Session session(spec, *source,
                        {Backend::eigen, HeldType::float32, RowRange::both, 24, attention});
  return count_run(session, resolve(request, spec));
}

ModelSpec tiny(const char* name) {
  const auto file = test::data_folder() / "golden/tiny" / (std::string(name) + ".json");
  return test::spec_of(test::read_json(file).at("config"), name);
}

}  // namespace

TEST_CASE("copies of strided rows and scratch of kernels are allocated beside the arena") {
  const AllocatedMemory eager =
      count_prefill(tiny("falcon_mqa"), AttentionImplementation::eager).allocated;
  CHECK(eager.strided_copy_bytes == 0);
  CHECK(eager.kernel_scratch_bytes == 0);
  const AllocatedMemory fused =
      count_prefill(tiny("falcon_mqa"), AttentionImplementation::fused).allocated;
  CHECK(fused.kernel_scratch_bytes > 0);
  // The latent vectors stand before the rotary part of each row: one copy of [3·8, kv_lora_rank]
  // for the dense layers and one for those of experts.
  const ModelSpec latent = tiny("deepseek_v2");
  const std::int64_t copy = 3 * 8 * latent.decoder->self_attention.latent->kv_lora_rank *
                            static_cast<std::int64_t>(sizeof(float));
  const AllocatedMemory strided = count_prefill(latent, AttentionImplementation::eager).allocated;
  CHECK(strided.strided_copy_bytes == 2 * copy);
}

TEST_CASE("state spaces, convolutions, delta layers and recurrences have equal counts") {
  std::size_t models = 0;
  for (const char* const folder : {"state_spaces/configs", "state_spaces/unrecorded"}) {
    for (const auto& entry : std::filesystem::directory_iterator(test::data_folder() / folder)) {
      check_counts(load_model(entry.path().string()).spec);
      ++models;
    }
  }
  CHECK(models == 18);
}

TEST_CASE("reference models have equal counts") {
  for (const auto& folder : test::golden_models()) {
    check_counts(load_model(folder.string()).spec);
  }
}

TEST_CASE("texts that are compared with images have equal counts") {
  for (const char* const name : {"clip", "siglip"}) {
    const auto file = test::data_folder() / "encoders/tiny" / (std::string(name) + ".json");
    for (const std::int64_t images : {0, 1, 3})
      check_counts(load_model(file.string()).spec, images);
  }
}

TEST_CASE("attention in chunks with equal windows has equal counts, eager and fused") {
  auto config = test::read_json(test::data_folder() / "golden/models/longformer/config.json");
  config["attention_window"] = 8;
  check_counts(test::spec_of(config, "longformer of one window"));
}

TEST_CASE("attention residuals and capped gates have equal counts, in blocks of any length") {
  auto config = test::read_json(test::data_folder() / "families/kimi_k3_text/config.json");
  for (const std::int64_t layers : {1, 2, 3, 4, 12}) {
    config["attn_res_block_size"] = layers;
    check_counts(test::spec_of(config, "Kimi K3"));
  }
}

TEST_CASE(
    "block connections, a score beside a language model and an encoder in blocks have equal "
    "counts") {
  for (const char* const name :
       {"solar", "gpt2_double_heads", "openai_gpt_double_heads", "longt5_encoder"}) {
    check_counts(load_model((test::data_folder() / "families" / name).string()).spec);
  }
}

TEST_CASE("a text that skips layers of cross-attention has equal counts") {
  check_counts(load_model((test::data_folder() / "golden/models/mllama_text").string()).spec);
}

TEST_CASE("queries of low rank have equal counts") {
  check_counts(load_model((test::data_folder() / "families/step3_text").string()).spec);
}

TEST_CASE("images that cross-attention reads have equal counts, also in a decode step") {
  auto config = test::read_json(test::data_folder() / "golden/models/mllama_images/config.json");
  for (const std::int64_t layers : {1, 2}) {
    config["vision_config"]["num_global_layers"] = layers;
    const ModelSpec spec = test::spec_of(config, "mllama");
    for (const std::int64_t images : {1, 2}) check_counts(spec, images);
    for (const auto attention : {AttentionImplementation::eager, AttentionImplementation::fused}) {
      WorkloadRequest request;
      request.phase = Phase::decode;
      request.attention = attention;
      request.dtype = DType::float32;
      request.batch_size = 2;
      request.images = 2;
      request.past_len = 6;
      const Workload step = resolve(request, spec);
      const auto source = random_weights(1);
      const Session session(spec, *source,
                            {Backend::eigen, HeldType::float32, RowRange::both, 2, attention});
      const RunCounts run = count_run(session, step);
      const Figures counted = test::count(spec, step).figures;
      check_step(run, counted);
    }
  }
}

TEST_CASE("decode steps that complete a compressed key have equal counts, and so have the others") {
  auto pools = test::read_json(test::data_folder() / "families/glm5_next_text/config.json");
  // So small that the pooled keys are part of the peak.
  pools.update({{"hidden_size", 8}, {"index_head_dim", 32}, {"intermediate_size", 8}});
  const auto windows = test::read_json(test::data_folder() / "families/deepseek_v4/config.json");
  for (const auto& config : {pools, windows}) {
    const ModelSpec spec = test::spec_of(config, "compressed");
    const auto source = random_weights(1);
    const Session session(
        spec, *source,
        {Backend::eigen, HeldType::float32, RowRange::both, 1, AttentionImplementation::eager});
    for (const std::int64_t past : {5, 6, 7, 8, 9}) {
      CAPTURE(past);
      WorkloadRequest request;
      request.phase = Phase::decode;
      request.dtype = DType::float32;
      request.past_len = past;
      const Workload step = resolve(request, spec);
      const RunCounts run = count_run(session, step);
      const Figures counted = test::count(spec, step).figures;
      check_step(run, counted);
    }
  }
}

TEST_CASE("image towers have equal counts") {
  for (const char* const name :
       {"llava", "paligemma", "gemma3", "internvl", "idefics3", "mistral3", "qwen2_vl",
        "qwen2_5_vl", "qwen3_vl", "qwen3_vl_moe", "qwen3_5_vl", "glm4v", "gemma4"}) {
    const auto file = test::data_folder() / "towers/tiny" / (std::string(name) + ".config.json");
    for (const std::int64_t images : {1, 2}) check_counts(load_model(file.string()).spec, images);
  }
}

TEST_CASE("audio towers have equal counts, with and without images") {
  for (const char* const name :
       {"voxtral", "qwen2_5_omni_thinker", "qwen2_5_omni", "qwen3_omni_moe_thinker"}) {
    const auto file = test::data_folder() / "towers/tiny" / (std::string(name) + ".config.json");
    const ModelSpec spec = load_model(file.string()).spec;
    for (const std::int64_t clips : {1, 2}) {
      check_counts(spec, 0, clips);
      if (spec.tower) check_counts(spec, 1, clips);
    }
  }
}

TEST_CASE("audio towers whose clips end in silence, or in part of a window, have equal counts") {
  for (const char* const name :
       {"qwen2_audio_clips", "audioflamingo3_clips", "qwen3_asr_clips", "glmasr_clips"}) {
    auto config = test::read_json(test::data_folder() / "golden/models" / name / "config.json");
    auto& audio = config["audio_config"];
    // Segments of 120 frames; clips of a second have 100.
    for (const char* const key : {"max_source_positions", "max_position_embeddings"}) {
      if (audio.contains(key)) audio[key] = 60;
    }
    const ModelSpec spec = test::spec_of(config, name);
    for (const std::int64_t clips : {1, 2}) check_counts(spec, 0, clips);
  }
}

TEST_CASE("Conformers of clips have equal counts, with and without bounds of their layers") {
  for (const char* const name : {"gemma4_clips", "gemma4_unclipped", "gemma3n_padded"}) {
    auto config = test::read_json(test::data_folder() / "golden/models" / name / "config.json");
    // 7 tokens of a second of sound, and padding.
    if (config.contains("audio_soft_tokens_per_image")) config["audio_soft_tokens_per_image"] = 9;
    const ModelSpec spec = test::spec_of(config, name);
    for (const std::int64_t clips : {1, 2}) check_counts(spec, 0, clips);
  }
}

TEST_CASE("image towers of tiles, queries and other positions have equal counts") {
  for (const char* const name :
       {"gemma4_standardised", "internvl_second_last_layer", "kimi_k25_images", "llama4_images",
        "llava_next_tiles", "llava_onevision_tiles", "blip2_images", "aria_images",
        "video_llava_images", "phi4_multimodal_images", "kimi_k3_images"}) {
    const auto folder = test::data_folder() / "golden/models" / name;
    for (const std::int64_t images : {1, 2}) check_counts(load_model(folder.string()).spec, images);
  }
}

TEST_CASE("a prompt and an image are seen beyond a window, with equal counts") {
  auto config = test::read_json(test::data_folder() / "towers/tiny/paligemma.config.json");
  config["text_config"].update({{"model_type", "gemma2"}, {"sliding_window", 5}});
  check_counts(test::spec_of(config, "paligemma of Gemma 2"), 1);
  config = test::read_json(test::data_folder() / "towers/tiny/gemma3.config.json");
  config["text_config"]["sliding_window"] = 3;  // an image has 4 tokens
  check_counts(test::spec_of(config, "gemma3 of a short window"), 2);
}

TEST_CASE("several layers of a tower, side by side, have equal counts") {
  auto config = test::read_json(test::data_folder() / "towers/tiny/llava.config.json");
  config["vision_feature_layer"] = {-2, -3, 1};
  config["vision_feature_select_strategy"] = "full";
  check_counts(test::spec_of(config, "llava of three layers"), 2);
}

TEST_CASE("every preset of a single layer has equal counts") {
  std::size_t layers = 0;
  for (const Preset& preset : list_presets()) {
    if (!preset.name.starts_with("layer-")) continue;
    check_counts(read_preset(preset).spec);
    ++layers;
  }
  CHECK(layers == 15);
}

TEST_CASE("layers with odd sizes have equal counts") {
  for (const std::int64_t layers : {1, 3}) {
    for (const char* const cell : {"rnn", "lstm", "gru"}) {
      check_counts(test::spec_of({{"model_type", cell},
                                  {"hidden_size", 21},
                                  {"num_layers", layers},
                                  {"bias", layers == 1}}));
    }
    for (const std::int64_t kernel : {1, 2, 5}) {
      for (const bool causal : {false, true}) {
        check_counts(test::spec_of({{"model_type", "convolution"},
                                    {"hidden_size", 21},
                                    {"num_layers", layers},
                                    {"kernel_size", kernel},
                                    {"dilation_base", 3},
                                    {"is_causal", causal},
                                    {"hidden_act", "gelu"},
                                    {"bias", layers == 1}}));
      }
    }
  }
  for (const bool causal : {false, true}) {
    check_counts(test::spec_of({{"model_type", "attention"},
                                {"hidden_size", 24},
                                {"num_attention_heads", 3},
                                {"head_dim", 8},
                                {"sliding_window", 5},
                                {"is_causal", causal}}));
    for (const char* const map : {"relu", "exp", "softmax"}) {
      check_counts(test::spec_of({{"model_type", "attention"},
                                  {"hidden_size", 24},
                                  {"num_attention_heads", 3},
                                  {"head_dim", 5},
                                  {"value_head_dim", 7},
                                  {"attention_kind", "linear"},
                                  {"feature_map", map},
                                  {"output_projection", causal},
                                  {"is_causal", causal}}));
    }
  }
  for (const char* const type : {"attention", "cross_attention"}) {
    check_counts(test::spec_of({{"model_type", type},
                                {"hidden_size", 24},
                                {"num_attention_heads", 3},
                                {"head_dim", 5},
                                {"value_head_dim", 7},
                                {"attention_scale", "inverse_sqrt_hidden_size"},
                                {"output_projection", false}}));
  }
}

TEST_CASE("small presets have equal counts") {
  for (const char* const name : {"bert-tiny", "bert-mini", "vit-tiny-patch16-224"}) {
    check_counts(load_model(name).spec);
  }
}

// Steps within the first chunk of 8, at its end, at the start of the second one and within it.
TEST_CASE("fused chunked attention reads as many bytes as its formula counts") {
  const auto config = test::read_json(test::data_folder() / "golden/tiny/llama4_text.json");
  const ModelSpec spec = test::spec_of(config.at("config"));
  const auto source = random_weights(1);
  const Session session(spec, *source,
                        {Backend::eigen, measured::HeldType::float32, RowRange::both, 18,
                         AttentionImplementation::fused});
  for (const std::int64_t past : {3, 7, 8, 13, 21}) {
    CAPTURE(past);
    WorkloadRequest request;
    request.phase = Phase::decode;
    request.attention = AttentionImplementation::fused;
    request.dtype = DType::float32;
    request.batch_size = 2;
    request.past_len = past;
    const Workload workload = resolve(request, spec);
    CHECK(attention_bytes_of_run(session, workload) == attention_bytes(spec, workload));
  }
}
