#include "session.h"

#include <algorithm>
#include <utility>

#include "headroom/error.h"
#include "headroom/tiled_tower.h"
#include "images.h"
#include "output_collector.h"

namespace headroom::measured {

std::int64_t argmax(const float* logits, std::int64_t vocab_size) {
  return std::max_element(logits, logits + vocab_size) - logits;
}

Session::Session(ModelSpec spec, WeightSource& source, const SessionOptions& options)
    : spec_(std::move(spec)),
      options_(options),
      weights_(spec_, source,
               {options.backend, options.storage, options.rows, options.typical_rows,
                options.activations, options.head_rows, options.rank}) {}

void share_tokens(std::span<std::int64_t> tokens, const RankContext* rank) {
  if (rank != nullptr) rank->replica->broadcast(tokens, rank->choosing_rank());
}

Lengths lengths_of(const ModelInputs& inputs, std::int64_t room) {
  Lengths lengths;
  lengths.batch = inputs.main.batch;
  lengths.seq_len = inputs.main.seq_len;
  lengths.enc_seq_len = inputs.encoder ? inputs.encoder->seq_len : 0;
  lengths.capacity = lengths.seq_len + room;
  lengths.global_tokens = most_global_tokens(inputs.main);
  return lengths;
}

Lengths lengths_of(const ModelSpec& spec, const ModelInputs& inputs, std::int64_t room) {
  Lengths lengths = lengths_of(inputs, room);
  if (inputs.images) lengths.images = images_of(spec, inputs).totals;
  if (inputs.audio) lengths.audio = audio_of(spec, inputs).totals;
  return lengths;
}

WorkloadImages images_of(const ModelSpec& spec, const ModelInputs& inputs) {
  const ImageSpec& image = *spec.tower->embedding.image;
  std::vector<ImageGrid> grids;
  for (const ImageSize& size : inputs.images->sizes) grids.push_back(grid_of(size, image));
  WorkloadImages images;
  const std::int64_t sequences = spec.tower->pooling ? 1 : inputs.main.batch;
  images.count = std::max<std::int64_t>(1, std::ssize(grids) / sequences);
  images.size = inputs.images->sizes.front();
  images.totals = image_totals(spec, grids, inputs.main.batch);
  images.tilings = inputs.images->tilings;
  if (reads_canvases(*spec.tower)) {
    images.count = std::ssize(images.tilings) / inputs.main.batch;
    images.size = {images.tilings.front().tile_rows * images.size.height,
                   images.tilings.front().tile_columns * images.size.width};
  }
  if (!images.tilings.empty()) {
    images.totals.tokens = 0;
    for (const ImageTiling& tiling : images.tilings) {
      images.totals.tokens += packed_tokens(*spec.tower, tiling);
    }
  }
  images.grids = std::move(grids);
  return images;
}

WorkloadAudio audio_of(const ModelSpec& spec, const ModelInputs& inputs) {
  constexpr std::int64_t kFramesPerSecond = 100;  // as of a workload's clips
  WorkloadAudio audio;
  const std::vector<std::int64_t>& clips = inputs.audio->clip_frames;
  audio.totals = audio_totals(spec, clips);
  audio.count = std::max<std::int64_t>(1, std::ssize(clips) / inputs.main.batch);
  audio.seconds = ceil_div(clips.front(), kFramesPerSecond);
  return audio;
}

KvCache Session::make_cache(const Lengths& lengths) const {
  GraphOptions options{Phase::prefill, options_.attention};
  const bool sees = attends_to_images(spec_) && lengths.enc_seq_len > 0;
  if (sees) options.images = ImageInputs::present;
  const Graph graph = graph_of_rank(build_graph(spec_, options), options_.rank);
  return {graph, sizes_at(graph, lengths, options_.rank)};
}

std::unique_ptr<Program> Session::program(Phase phase, const ModelInputs& inputs,
                                          const Lengths& lengths, KvCache& cache,
                                          const Program* arena_of) const {
  const bool sees = attends_to_images(spec_) && inputs.encoder;
  const ImageInputs images = inputs.images || sees ? ImageInputs::present : ImageInputs::absent;
  const auto global = lengths.global_tokens > 0 ? GlobalTokens::present : GlobalTokens::absent;
  const Logits logits = lengths.seq_len > 1 ? options_.logits : Logits::all;
  const GraphOptions options{phase,
                             options_.attention,
                             LatentAttention::absorbed,
                             images,
                             global,
                             logits,
                             inputs.audio ? AudioInputs::present : AudioInputs::absent};
  return std::make_unique<Program>(spec_, build_graph(spec_, options), weights_, cache, inputs,
                                   lengths, options_.rank, arena_of);
}

std::vector<NamedTensor> Session::forward(const ModelInputs& inputs) {
  const Lengths lengths = lengths_of(spec_, inputs);
  KvCache cache = make_cache(lengths);
  const auto prefill = program(Phase::prefill, inputs, lengths, cache);
  OutputCollector collector(spec_, lengths);
  prefill->run([&](const ProgramBlock& block, std::int64_t layer, const float* data) {
    // With sequence parallelism the states between layers are shards of the tokens.
    if (!shards_tokens(options_.rank, Phase::prefill)) collector.observe(block, layer, data);
  });
  return std::move(collector).finish(*prefill);
}

std::optional<std::int64_t> first_long_sequence(const ModelSpec& spec) {
  const RopeSpec& rope = spec.position.rope;
  const bool switches = spec.position.is_rotary() && rope.scaling == RopeScalingKind::longrope;
  if (!switches) return std::nullopt;
  return rope.original_max_position_embeddings + 1;
}

Generation Session::generate(const GeneratePrompt& prompt) {
  if (!spec_.main_stack().causal() || !spec_.head.language_model) {
    throw Error(ErrorCode::invalid_input, "only a decoder with a language-model head can generate",
                spec_.name, "use the prefill phase");
  }
  const std::int64_t vocab = spec_.embedding.vocab_size;
  ModelInputs inputs{prompt.prompt, prompt.encoder};
  inputs.audio_features = prompt.audio_features;
  inputs.images = prompt.images;
  inputs.audio = prompt.audio;
  Lengths lengths = lengths_of(spec_, inputs, prompt.max_new_tokens);
  KvCache cache = make_cache(lengths);
  Generation result{inputs.main.ids, {"generate.logits", {1, prompt.max_new_tokens, vocab}, {}}};
  // Of a pipeline's ranks, those of the last stage have logits.
  const auto choose = [&](const float* logits, std::int64_t token) {
    std::int64_t id = 0;
    if (logits != nullptr) {
      logits += token * vocab;
      id = argmax(logits, vocab);
      result.logits.values.insert(result.logits.values.end(), logits, logits + vocab);
    }
    share_tokens({&id, 1}, options_.rank);
    result.ids.push_back(id);
  };
  auto prefill = program(Phase::prefill, inputs, lengths, cache);
  prefill->run();
  choose(prefill->output("logits"), prefill->logit_tokens() - 1);
  prefill.reset();

  ModelInputs step_inputs{{1, 1, {0}, {}, {}}, prompt.encoder};
  step_inputs.main.position_shifts = shifts_after(spec_, inputs);
  std::int64_t past = lengths.seq_len;
  Lengths whole = lengths;
  lengths.seq_len = 1;
  lengths.images = {};
  lengths.audio = {};
  const auto decode = program(Phase::decode, step_inputs, lengths, cache);
  const std::optional<std::int64_t> first_long = first_long_sequence(spec_);
  for (std::int64_t step = 1; step < prompt.max_new_tokens; ++step) {
    if (past + 1 == first_long) {
      // The cached keys have the short factors, so all are computed anew (Phi-3's
      // prepare_inputs_for_generation in transformers).
      inputs.main.ids = result.ids;
      inputs.main.seq_len = ++past;
      whole.seq_len = past;
      const auto anew = program(Phase::prefill, inputs, whole, cache);
      anew->run();
      choose(anew->output("logits"), anew->logit_tokens() - 1);
      continue;
    }
    step_inputs.main.ids.front() = result.ids.back();
    decode->set_past(past++);
    decode->run();
    choose(decode->output("logits"), 0);
  }
  return result;
}

}  // namespace headroom::measured
