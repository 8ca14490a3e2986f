// Audio towers: audio tokens by each family's own rule, against published figures, and FLOPs
// against those that torch counted (tests/data/README.md).
#include <doctest/doctest.h>

#include "support/data.h"

using namespace headroom;
using namespace headroom::test;

namespace {

ModelSpec tiny(const std::string& name) {
  return spec_of(read_json(data_folder() / "towers/tiny" / (name + ".config.json")), name);
}

/// A tiny model whose audio tower has the published sizes of its segments.
ModelSpec with_audio(const std::string& name, const nlohmann::json& audio) {
  auto config = read_json(data_folder() / "towers/tiny" / (name + ".config.json"));
  config["audio_config"].update(audio);
  return spec_of(config, name);
}

WorkloadRequest clips(std::int64_t count, std::optional<std::int64_t> seconds = {}) {
  WorkloadRequest request;
  request.audio = count;
  request.audio_seconds = seconds;
  return request;
}

std::int64_t tokens_of(const ModelSpec& spec, std::optional<std::int64_t> seconds = {}) {
  return resolve(clips(1, seconds), spec).audio.totals.tokens;
}

/// Parameters of the tiny model without its audio tower and projector.
Integer tiny_text_parameters(const std::string& name) {
  auto config = read_json(data_folder() / "towers/tiny" / (name + ".config.json"));
  config["audio_config"] = nullptr;
  return count(spec_of(config, name), Workload{}).figures.parameters;
}

/// A prefill of `sequences` of `tokens` with a clip of so many frames each.
Counted prefill(const ModelSpec& spec, std::int64_t sequences, std::int64_t tokens,
                std::int64_t frames) {
  Workload workload;
  workload.batch_size = sequences;
  workload.seq_len = tokens;
  workload.audio.count = 1;
  workload.audio.totals =
      audio_totals(spec, std::vector<std::int64_t>(static_cast<std::size_t>(sequences), frames));
  return count(spec, workload);
}

Integer recorded_flops(const std::string& model) {
  for (const CsvRow& row : read_csv(data_folder() / "towers/flops.csv")) {
    if (row.at("model") == model) return number(row, "total_matmul_flops");
  }
  return 0;
}

Integer flops_of(const Counted& counted, Part part) {
  Integer flops = 0;
  for (std::size_t i = 0; i < counted.analysis.components.size(); ++i) {
    if (counted.analysis.components[i].component.part != part) continue;
    flops += counted.figures.components[i].forward.matrix_flops;
  }
  return flops;
}

bool is_refused(const WorkloadRequest& request, const ModelSpec& spec, const std::string& words) {
  return refusal_of([&] { (void)resolve(request, spec); }).find(words) != std::string::npos;
}

}  // namespace

TEST_CASE("FLOPs of audio towers, projectors and text equal the reference code's") {
  // 2 sequences of 27 tokens with a clip each: one segment of 40 positions, or two of 10.
  CHECK(prefill(tiny("voxtral"), 2, 27, 80).figures.forward.matrix_flops ==
        recorded_flops("voxtral"));
  CHECK(prefill(tiny("qwen2_5_omni_thinker"), 2, 27, 40).figures.forward.matrix_flops ==
        recorded_flops("qwen2_5_omni_thinker"));
  const auto folder = data_folder() / "golden/models/qwen3_omni_moe_thinker";
  CHECK(prefill(load_model(folder.string()).spec, 2, 27, 100).figures.forward.matrix_flops ==
        recorded_flops("qwen3_omni_moe_thinker"));
}

TEST_CASE("FLOPs of towers whose clips are masked, or in windows, equal the reference code's") {
  const auto flops = [](const std::string& folder, std::int64_t tokens, std::int64_t frames) {
    const auto path = data_folder() / "golden/models" / folder;
    return prefill(load_model(path.string()).spec, 2, tokens, frames).figures.forward.matrix_flops;
  };
  CHECK(flops("qwen3_asr_clips", 40, 200) == recorded_flops("qwen3_asr"));
  CHECK(flops("audioflamingo3_clips", 27, 20) == recorded_flops("audioflamingo3"));
  CHECK(flops("glmasr_clips", 27, 40) == recorded_flops("glmasr"));
  // A clip of 14 frames, completed to 20: the projector's rows of silence are dropped.
  CHECK(flops("qwen2_audio_clips", 27, 14) == recorded_flops("qwen2_audio_shorter"));
}

TEST_CASE("FLOPs of a Conformer's clips equal the reference code's") {
  // Two clips of 32 frames in one sequence: whole chunks of 4 rows.
  const auto folder = data_folder() / "golden/models/gemma4_unclipped";
  const nlohmann::json reference = read_json(folder / "reference.json");
  const ModelSpec spec = load_model(folder.string()).spec;
  const auto clips_of = reference.at("clips").get<std::size_t>();
  Workload workload;
  workload.seq_len = reference.at("tokens").get<std::int64_t>();
  const Counted text = count(spec, workload);
  CHECK(text.figures.parameters == reference.at("parameters").get<std::int64_t>());
  CHECK(text.figures.forward.matrix_flops ==
        reference.at("flops_without_sound").get<std::int64_t>());
  workload.audio.count = static_cast<std::int64_t>(clips_of);
  workload.audio.totals = audio_totals(
      spec, std::vector<std::int64_t>(clips_of, reference.at("frames").get<std::int64_t>()));
  CHECK(count(spec, workload).figures.forward.matrix_flops ==
        reference.at("flops").get<std::int64_t>());
}

// transformers 5.24.0 on torch 2.15.0: parameters of Gemma4AudioModel with its default sizes, and
// FLOPs of 3,000 frames by FlopCounterMode, on the meta device.
TEST_CASE("Gemma 4's published Conformer has the class's counts, without rows behind a clip") {
  const ModelSpec spec = with_audio("gemma4_audio", {{"hidden_size", 1024},
                                                     {"num_attention_heads", 8},
                                                     {"num_hidden_layers", 12},
                                                     {"subsampling_conv_channels", {128, 32}},
                                                     {"conv_kernel_size", 5},
                                                     {"output_proj_dims", 1536}});
  const Counted sound = prefill(spec, 1, 800, 3000);
  const Integer tower = flops_of(sound, Part::audio_tower);
  const Integer projector = flops_of(sound, Part::projector);
  // The class completes 750 rows to 63 chunks of 12, each with 24 keys and values and 13 positions.
  const Integer padding = Integer{12} * 6 * 2 * 1024 * (2 * 24 + 13);
  const Integer linear = Integer{2} * 750 * 1536 * 32;  // to the text model's width
  CHECK(tower + projector == Integer{441'585'942'528} - padding + linear);
  CHECK(sound.figures.parameters - tiny_text_parameters("gemma4_audio") == 304'824'608 + 1536 * 32);
}

// The class computes rows that complete chunks of 5, and embeds all tokens as hard ones too; the
// padding, once.
TEST_CASE("FLOPs of Gemma 3n's clips equal the reference code's, but for what the class drops") {
  const auto folder = data_folder() / "golden/models/gemma3n_whole";
  const nlohmann::json reference = read_json(folder / "reference.json");
  const auto number_of = [&](const char* key) { return reference.at(key).get<std::int64_t>(); };
  const ModelSpec spec = load_model(folder.string()).spec;
  Workload workload;
  workload.seq_len = number_of("tokens");
  const Counted text = count(spec, workload);
  constexpr Integer kVisionTower = 294'126'912;  // which the data's model lacks
  CHECK(text.figures.parameters == kVisionTower + number_of("parameters"));
  CHECK(text.figures.forward.matrix_flops ==
        number_of("flops_without_sound") - number_of("flops_of_hard_tokens"));
  workload.audio.count = 2;
  workload.audio.totals = audio_totals(spec, std::vector<std::int64_t>(2, number_of("frames")));
  // 17 rows of 16 values of each clip are completed to 20, with 7 keys and values and 3 positions.
  const Integer padding = Integer{2} * 3 * 2 * 16 * (2 * 7 + 3) + 2 * 16 * 32;
  CHECK(count(spec, workload).figures.forward.matrix_flops ==
        number_of("flops") - number_of("flops_of_hard_tokens") - padding);
}

// transformers 5.24.0 on torch 2.15.0: parameters of Gemma3nAudioEncoder with its default sizes,
// and FLOPs of 3,000 frames by FlopCounterMode, on the meta device.
TEST_CASE("Gemma 3n's published Conformer has the class's counts, without rows behind a clip") {
  auto config = read_json(data_folder() / "golden/models/gemma3n_whole/config.json");
  config["audio_config"] = nlohmann::json::object();
  config["audio_soft_tokens_per_image"] = 188;
  const ModelSpec spec = spec_of(config, "gemma3n");
  const Counted sound = prefill(spec, 1, 300, 3000);
  // The class completes 750 rows to 63 chunks of 12, each with 24 keys and values and 13 positions.
  const Integer padding = Integer{12} * 6 * 2 * 1536 * (2 * 24 + 13);
  CHECK(flops_of(sound, Part::audio_tower) == Integer{983'672'856'576} - padding);
  CHECK(flops_of(sound, Part::projector) == Integer{2} * 188 * 1536 * 32);
  // The tiny tower has 6,844; both embedders, a table, two norms and a projection to 32.
  const auto embedder = [](std::int64_t ids, std::int64_t width) { return (ids + 2 + 32) * width; };
  const Integer tiny_parameters =
      count(load_model((data_folder() / "golden/models/gemma3n_whole").string()).spec, Workload{})
          .figures.parameters;
  CHECK(sound.figures.parameters - tiny_parameters ==
        681'348'640 - 6844 + embedder(128, 1536) - embedder(8, 16));
}

TEST_CASE("every 16th frame of Gemma 3n's sound becomes a token, with padding to 188") {
  auto config = read_json(data_folder() / "golden/models/gemma3n_whole/config.json");
  config["audio_config"] = nlohmann::json::object();
  config["audio_soft_tokens_per_image"] = 188;
  const ModelSpec spec = spec_of(config, "gemma3n");
  // transformers, Gemma3nProcessor: 188 tokens for clips of at most 30 s.
  CHECK(tokens_of(spec) == 188);
  CHECK(tokens_of(spec, 10) == 63);
  CHECK(spec.audio_tower->placeholders_of_clip(1000) == 188);
  CHECK(is_refused(clips(1, 31), spec, "188"));
}

TEST_CASE("four frames of Gemma 4's sound become a token") {
  const ModelSpec spec = tiny("gemma4_audio");
  // transformers, Gemma4Processor: 40 ms a token, and 750 in 30 s.
  CHECK(tokens_of(spec) == 750);
  CHECK(tokens_of(spec, 1) == 25);
  CHECK(spec.audio_tower->tokens_of_clip(22) == 6);
}

TEST_CASE("tower and projector are components, with their share of the prefill") {
  // Voxtral's tiny tower: 40 positions of width 32, an FFN of 128, 16 mel bins and two layers; its
  // projector maps rows of 128 to 48 and these to 48.
  const Counted counted = prefill(tiny("voxtral"), 1, 27, 80);
  const Integer convolutions = 2 * 3 * (80 * 16 * 32 + 40 * 32 * 32);
  const Integer layer = 2 * 40 * 32 * (4 * 32 + 2 * 128) + 2 * 2 * 40 * 40 * 32;
  CHECK(flops_of(counted, Part::audio_tower) == convolutions + 2 * layer);
  CHECK(flops_of(counted, Part::projector) == 2 * 10 * 48 * (128 + 48));
  Workload text;
  text.seq_len = 27;
  const Counted alone = count(tiny("voxtral"), text);
  CHECK(flops_of(alone, Part::audio_tower) == 0);
  CHECK(alone.figures.parameters == counted.figures.parameters);
  CHECK(counted.figures.forward.matrix_flops - alone.figures.forward.matrix_flops ==
        convolutions + 2 * layer + 2 * 10 * 48 * (128 + 48));
}

TEST_CASE("a clip becomes the published number of audio tokens") {
  // Voxtral (arXiv 2507.13264, section 2): clips are completed to 30 s; 12.5 tokens a second.
  const ModelSpec voxtral = with_audio("voxtral", {{"max_source_positions", 1500}});
  CHECK(tokens_of(voxtral) == 375);
  CHECK(tokens_of(voxtral, 1) == 375);
  CHECK(tokens_of(voxtral, 31) == 750);
  // Qwen2.5-Omni (arXiv 2503.20215, section 2.2): a token for 40 ms, in blocks of 2 s.
  const ModelSpec omni =
      with_audio("qwen2_5_omni_thinker", {{"max_source_positions", 1500}, {"n_window", 100}});
  CHECK(tokens_of(omni) == 750);
  CHECK(tokens_of(omni, 2) == 50);
  CHECK(tokens_of(omni, 3) == 75);  // in a block and a half
  // Qwen3-Omni (arXiv 2509.17765, section 2.2): 8 times fewer than frames, each second by itself.
  const ModelSpec omni3 =
      with_audio("qwen3_omni_moe_thinker", {{"max_source_positions", 1500}, {"n_window", 50}});
  CHECK(tokens_of(omni3) == 30 * 13);
}

TEST_CASE("silence behind a clip becomes no tokens where the class masks it") {
  // Qwen2-Audio (arXiv 2407.10759, section 2): a row of its encoder stands for about 40 ms.
  const auto folder = data_folder() / "golden/models/qwen2_audio_clips";
  auto config = read_json(folder / "config.json");
  config["audio_config"]["max_source_positions"] = 1500;
  const ModelSpec qwen2_audio = spec_of(config, "qwen2_audio");
  CHECK(tokens_of(qwen2_audio) == 750);
  CHECK(tokens_of(qwen2_audio, 5) == 125);
  CHECK(tokens_of(qwen2_audio, 31) == 775);
  // Its tower and projector compute whole segments all the same.
  const Counted five = prefill(qwen2_audio, 1, 200, 500);
  const Counted thirty = prefill(qwen2_audio, 1, 200, 3000);
  CHECK(flops_of(five, Part::audio_tower) == flops_of(thirty, Part::audio_tower));
  CHECK(flops_of(five, Part::projector) == flops_of(thirty, Part::projector));
}

TEST_CASE("segments of Qwen3-Omni see those of their window of 8 seconds") {
  const ModelSpec spec =
      with_audio("qwen3_omni_moe_thinker", {{"max_source_positions", 1500}, {"n_window", 50}});
  CHECK(attended_rows(*spec.audio_tower, 3000) == std::vector<std::int64_t>{104, 104, 104, 78});
  const std::vector<std::int64_t> clips{800, 300};
  CHECK(audio_totals(spec, clips).pairs == 104 * 104 + 39 * 39);
  // The last 0.3 s become 4 rows.
  CHECK(attended_rows(*spec.audio_tower, 930) == std::vector<std::int64_t>{104, 17});
}

TEST_CASE("a shorter last segment costs its rows, behind whole convolutions") {
  // Clips of 50 and 350 frames: segments of 20 frames and 10 rows, and one of 10 frames and 5 rows;
  // segments of 100 frames and 13 rows, and one of 50 frames and 7 rows.
  CHECK(prefill(tiny("qwen2_5_omni_thinker"), 2, 27, 50).figures.forward.matrix_flops ==
        recorded_flops("qwen2_5_omni_thinker_shorter"));
  const auto folder = data_folder() / "golden/models/qwen3_omni_moe_thinker";
  CHECK(prefill(load_model(folder.string()).spec, 2, 52, 350).figures.forward.matrix_flops ==
        recorded_flops("qwen3_omni_moe_thinker_shorter"));
}

TEST_CASE("audio tokens of all clips are part of every sequence") {
  const ModelSpec spec = with_audio("voxtral", {{"max_source_positions", 1500}});
  WorkloadRequest request = clips(2, 40);
  request.batch_size = 3;
  const Workload workload = resolve(request, spec);
  CHECK(workload.audio.totals.segments == 2 * 2 * 3);
  CHECK(workload.audio.totals.tokens == 2 * 2 * 3 * 375);
  CHECK(workload.seq_len == 64 + 2 * 2 * 375);  // the tiny text model has 64 positions
  request.seq_len = 1502;                       // a token of text before each clip
  CHECK(resolve(request, spec).seq_len == 1502);
  request.seq_len = 1501;
  CHECK(is_refused(request, spec, "audio tokens"));
}

TEST_CASE("without clips a model with an audio tower says that it runs none") {
  const ModelSpec spec = tiny("voxtral");
  CHECK(note_on_audio(resolve({}, spec), spec).find("no sound") != std::string::npos);
  CHECK(note_on_audio(resolve(clips(1), spec), spec).empty());
  CHECK(note_on_audio(resolve({}, load_model("gpt2").spec), load_model("gpt2").spec).empty());
}

TEST_CASE("clips that a workload cannot have are refused") {
  const ModelSpec voxtral = tiny("voxtral");
  CHECK(is_refused(clips(1), load_model("gpt2").spec, "no audio tower"));
  CHECK(is_refused(clips(1), tiny("llava"), "no audio tower"));
  CHECK(is_refused(clips(1), tiny("granite_speech"), "no audio tower"));
  CHECK(is_refused(clips(1), load_model("whisper-tiny").spec, "no audio tower"));
  CHECK(is_refused(clips(0, 30), voxtral, "requires"));
  CHECK(is_refused(clips(-1), voxtral, "at least 0"));
  CHECK(is_refused(clips(1, 0), voxtral, "at least 1"));
  CHECK(is_refused(clips(INT64_MAX), voxtral, "limited"));
  CHECK(is_refused(clips(1, INT64_MAX), voxtral, "limited"));
  WorkloadRequest decode = clips(1);
  decode.phase = Phase::decode;
  CHECK(is_refused(decode, voxtral, "KV-cache"));
}

TEST_CASE("sizes of an audio tower that do not fit each other are refused") {
  CHECK_THROWS_AS((void)with_audio("voxtral", {{"intermediate_size", 100}}), Error);
  CHECK_THROWS_AS((void)with_audio("voxtral", {{"max_source_positions", 41}}), Error);
  CHECK_THROWS_AS((void)with_audio("qwen2_5_omni_thinker", {{"n_window", 9}}), Error);
  CHECK_THROWS_AS((void)with_audio("qwen2_5_omni_thinker", {{"n_window", 60}}), Error);
  CHECK_THROWS_AS((void)with_audio("qwen3_omni_moe_thinker", {{"n_window_infer", 10}}), Error);
}
