// Collects the outputs of a run under Hugging Face's names. Internal to src/measured.
#pragma once

#include <vector>

#include "session.h"

namespace headroom::measured {

class OutputCollector {
 public:
  OutputCollector(const ModelSpec& spec, const Lengths& lengths) : spec_(spec), lengths_(lengths) {}

  /// Stores the output of a layer; the observer passed to Program::run.
  void observe(const ProgramBlock& block, std::int64_t layer, const float* data);

  /// Adds the head's outputs. Call once, after the run.
  [[nodiscard]] std::vector<NamedTensor> finish(const Program& program) &&;

 private:
  void add(std::string name, std::vector<std::int64_t> shape, const float* data);
  /// The streams of alternating updates, or of hyper-connections, which take the place of hidden
  /// states.
  void add_streams(const std::string& name, const float* data);
  void observe_streams(const ProgramBlock& block, std::int64_t layer, const float* data);
  void add_hidden(const std::string& name, bool in_encoder, const float* data);
  /// Output of a layer, in the order of dimensions that its class has.
  void add_layer(const std::string& name, bool in_encoder, const float* data);
  /// The first row of every sequence, as the pooled output.
  void add_first_rows();
  void observe_tower(const ProgramBlock& block, std::int64_t layer, const float* data);
  void observe_audio_tower(const ProgramBlock& block, std::int64_t layer, const float* data);
  /// Logits of a classifier; of answers the scores of the first and the last token.
  void add_classes(const ClassifierSpec& spec, const Program& program);
  /// Vectors of the texts, and the logits of every text and image.
  void add_similarities(const Program& program);
  void end_stack(bool in_encoder, const float* data);

  const ModelSpec& spec_;
  Lengths lengths_;
  std::vector<NamedTensor> tensors_;
};

}  // namespace headroom::measured
