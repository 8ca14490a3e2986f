// Session: a model with its weights, ready for forward passes and generation.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "headroom/model_spec.h"
#include "headroom/workload.h"
#include "inputs.h"
#include "program.h"
#include "weights.h"

namespace headroom::measured {

/// Output tensor under Hugging Face's name.
struct NamedTensor {
  std::string name;
  std::vector<std::int64_t> shape;
  std::vector<float> values;
  std::size_t batch_dimension = 0;  ///< of the sequences: after the streams of AltUp
};

/// Greedy generation: prompt and new tokens, and the logits that chose each new token.
struct Generation {
  std::vector<std::int64_t> ids;
  NamedTensor logits;  ///< [1, new tokens, vocab]
};

struct SessionOptions {
  Backend backend = Backend::eigen;
  HeldType storage = HeldType::float32;
  RowRange rows = RowRange::both;
  std::int64_t typical_rows = 128;
  AttentionImplementation attention = AttentionImplementation::eager;
  ActivationPath activations = ActivationPath::float32;
  Logits logits = Logits::all;          ///< of passes over several tokens
  std::optional<RowRange> head_rows{};  ///< of the head's layers; unset: as `rows`
  const RankContext* rank = nullptr;    ///< place in a sharded run; null: the whole model
};

/// The length of a sequence that is the first to take LongRoPE's long factors; empty: there are
/// none.
[[nodiscard]] std::optional<std::int64_t> first_long_sequence(const ModelSpec& spec);

class Session {
 public:
  /// Loads all weights, or those of the rank. Throws Error{invalid_input}.
  Session(ModelSpec spec, WeightSource& source, const SessionOptions& options);

  /// Runs one forward pass. Returns logits, last_hidden_state, pooler_output, hidden_states.i,
  /// layers.i.output, …: those that the model has.
  [[nodiscard]] std::vector<NamedTensor> forward(const ModelInputs& inputs);

  /// Prefills the prompt, then decodes greedily with the KV-cache.
  [[nodiscard]] Generation generate(const GeneratePrompt& prompt);

  /// Builds the program of `phase` for `inputs`, on `cache`; with `arena_of`, in that one's arena.
  [[nodiscard]] std::unique_ptr<Program> program(Phase phase, const ModelInputs& inputs,
                                                 const Lengths& lengths, KvCache& cache,
                                                 const Program* arena_of = nullptr) const;
  /// Builds a KV-cache with room for `lengths.capacity` keys.
  [[nodiscard]] KvCache make_cache(const Lengths& lengths) const;

  [[nodiscard]] const ModelSpec& spec() const noexcept { return spec_; }
  [[nodiscard]] const ModelWeights& weights() const noexcept { return weights_; }
  [[nodiscard]] const RankContext* rank() const noexcept { return options_.rank; }

 private:
  ModelSpec spec_;
  SessionOptions options_;
  ModelWeights weights_;
};

/// Index of the largest of `vocab_size` logits; of equal ones the first.
[[nodiscard]] std::int64_t argmax(const float* logits, std::int64_t vocab_size);

/// Gives every rank the tokens that the choosing one chose. Does nothing without ranks.
void share_tokens(std::span<std::int64_t> tokens, const RankContext* rank);

/// The images of `inputs`, which must have some, as those of a workload.
[[nodiscard]] WorkloadImages images_of(const ModelSpec& spec, const ModelInputs& inputs);

/// The sound of `inputs`, which must have some, as that of a workload.
[[nodiscard]] WorkloadAudio audio_of(const ModelSpec& spec, const ModelInputs& inputs);

/// Lengths of a pass over `inputs`, with room for `room` more tokens in the cache. Those of images
/// follow from the model.
[[nodiscard]] Lengths lengths_of(const ModelInputs& inputs, std::int64_t room = 0);
[[nodiscard]] Lengths lengths_of(const ModelSpec& spec, const ModelInputs& inputs,
                                 std::int64_t room = 0);

}  // namespace headroom::measured
