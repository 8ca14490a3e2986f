// StepBuilder: the visit of the op variant that binds each operator to its kernel. Internal.
#pragma once

#include <cstring>
#include <map>
#include <memory>

#include "kernels/attention.h"
#include "kernels/rotary.h"
#include "program.h"

namespace headroom::measured {

/// Copies an operator's first input to its output, unless it is there already.
struct InputCopy {
  const float* from = nullptr;
  float* to = nullptr;
  std::size_t bytes = 0;

  void operator()() const {
    if (from != to) std::memcpy(to, from, bytes);
  }
};

class StepBuilder {
 public:
  StepBuilder(Program& program, const Block& block);

  /// What runs `node` in a layer of the block.
  [[nodiscard]] std::function<StepCount(std::int64_t layer)> step(const Node& node);

  using Run = std::function<StepCount(std::int64_t layer)>;
  Run operator()(const TokenEmbedding& op);
  Run operator()(const PatchEmbedding& op);
  Run operator()(const RelativePositionBias& op);
  Run operator()(const Linear& op);
  Run operator()(const Norm& op);
  Run operator()(const Rotary& op);
  Run operator()(const KvCacheAppend& op);
  Run operator()(const AttentionScores& op);
  Run operator()(const Softmax& op);
  Run operator()(const AttentionContext& op);
  Run operator()(const FusedAttention& op);
  Run operator()(const FeatureMap& op);
  Run operator()(const LinearAttention& op);
  Run operator()(const Activation& op);
  Run operator()(const GatedActivation& op);
  Run operator()(const ResidualAdd& op);
  Run operator()(const Dropout& op);
  Run operator()(const SelectToken& op);
  Run operator()(const Scale& op);
  Run operator()(const CrossEntropy& op);

 private:
  /// Operands of an attention, with what changes from run to run and layer to layer filled in.
  using Arguments = std::function<AttentionArguments(std::int64_t layer)>;
  [[nodiscard]] Arguments attention(const AttentionShape& shape, KeySource keys, Masking masking,
                                    ScoreBias bias, AttentionScale scale);
  [[nodiscard]] const std::uint8_t* key_mask(KeySource keys) const;
  [[nodiscard]] const TokenInputs& tokens() const;
  [[nodiscard]] std::int64_t integer(const Expr& expr) const;
  [[nodiscard]] float* input(std::size_t index) const;
  [[nodiscard]] float* output() const;
  [[nodiscard]] std::int64_t floats_of(TensorId tensor) const;
  [[nodiscard]] const std::string& weight_path(std::size_t index) const;
  /// Copies the first input to the output, where the operator could not work in place.
  [[nodiscard]] InputCopy bring_input() const;
  [[nodiscard]] bool is_cross_attention() const;

  Program& program_;
  const Block& block_;
  const Node* node_ = nullptr;
  std::map<TensorId, Arguments> score_arguments_;  ///< of the scores that a softmax finishes
};

}  // namespace headroom::measured
