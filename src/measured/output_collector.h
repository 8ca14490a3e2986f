// Collects a run's results under Hugging Face's names. Internal to src/measured.
#pragma once

#include <vector>

#include "session.h"

namespace headroom::measured {

class OutputCollector {
 public:
  OutputCollector(const ModelSpec& spec, const Lengths& lengths) : spec_(spec), lengths_(lengths) {}

  /// Takes what a block hands on: the observer of Program::run.
  void observe(const ProgramBlock& block, std::int64_t layer, const float* data);

  /// Adds what the head computed. Call it once, after the run.
  [[nodiscard]] std::vector<NamedTensor> finish(const Program& program) &&;

 private:
  void add(std::string name, std::vector<std::int64_t> shape, const float* data);
  void add_hidden(const std::string& name, bool in_encoder, const float* data);
  void end_stack(bool in_encoder, const float* data);

  const ModelSpec& spec_;
  Lengths lengths_;
  std::vector<NamedTensor> tensors_;
};

}  // namespace headroom::measured
