// Session: a model with its weights, ready for forward passes and generation.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "headroom/model_spec.h"
#include "headroom/workload.h"
#include "inputs.h"
#include "program.h"
#include "weights.h"

namespace headroom::measured {

/// A result under the name that Hugging Face gives it.
struct NamedTensor {
  std::string name;
  std::vector<std::int64_t> shape;
  std::vector<float> values;
};

/// Greedily chosen tokens, the prompt's in front, and the logits that each was chosen by.
struct Generation {
  std::vector<std::int64_t> ids;
  NamedTensor logits;  ///< [1, new tokens, vocab]
};

struct SessionOptions {
  Backend backend = Backend::eigen;
  WeightStorage storage = WeightStorage::float32;
  RowRange rows = RowRange::both;
  std::int64_t typical_rows = 128;
  AttentionImplementation attention = AttentionImplementation::eager;
};

class Session {
 public:
  /// Loads all weights. Throws Error{invalid_input}.
  Session(ModelSpec spec, WeightSource& source, const SessionOptions& options);

  /// One pass over `inputs`; logits, last_hidden_state, pooler_output, hidden_states.i,
  /// layers.i.output, … as far as the model has them.
  [[nodiscard]] std::vector<NamedTensor> forward(const ModelInputs& inputs);

  /// Prefills the prompt, then decodes with the KV-cache, always the likeliest token.
  [[nodiscard]] Generation generate(const GeneratePrompt& prompt);

  /// A program for `inputs` in a phase, over a cache with room for `capacity` keys.
  [[nodiscard]] std::unique_ptr<Program> program(Phase phase, const ModelInputs& inputs,
                                                 const Lengths& lengths, KvCache& cache) const;
  /// A cache for so many keys.
  [[nodiscard]] KvCache make_cache(const Lengths& lengths) const;

  [[nodiscard]] const ModelSpec& spec() const noexcept { return spec_; }
  [[nodiscard]] const ModelWeights& weights() const noexcept { return weights_; }

 private:
  [[nodiscard]] Graph graph(Phase phase) const;

  ModelSpec spec_;
  SessionOptions options_;
  ModelWeights weights_;
};

/// The lengths of a pass over `inputs` that leaves `room` for further tokens in the cache.
[[nodiscard]] Lengths lengths_of(const ModelInputs& inputs, std::int64_t room = 0);

}  // namespace headroom::measured
