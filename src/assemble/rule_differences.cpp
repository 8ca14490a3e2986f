#include "rule_differences.h"

#include <fmt/format.h>

#include <algorithm>

#include "used_variants.h"
#include "with_noun.h"

namespace headroom::detail {
namespace {

/// Calls `visit` with the attention and FFN of each kind of layer that `stack` has.
template <class Visit>
void for_each_kind(const StackSpec& stack, Visit visit) {
  for (const std::size_t variant : used_variants(stack)) {
    visit(stack.attention_of(variant), stack.ffn_of(variant));
  }
}

void add(Differences& differences, std::string text) {
  const bool known = std::ranges::find(differences, text) != differences.end();
  if (!known) differences.push_back(std::move(text));
}

void add_attention(const AttentionSpec& attention, std::int64_t hidden_size,
                   Differences& differences) {
  const std::int64_t heads = attention.num_attention_heads;
  if (attention.latent) return add(differences, "latent attention (MLA)");
  switch (attention.kind) {
    case AttentionKind::softmax:
      break;
    case AttentionKind::linear:
      add(differences, "linear attention");
      break;
    case AttentionKind::gated_delta:
      return add(differences, "gated delta layers");
    case AttentionKind::short_convolution:
      return add(differences, "short convolutions");
    case AttentionKind::state_space:
      return add(differences, "state-space layers");
    case AttentionKind::gated_recurrence:
    case AttentionKind::weighted_key_value:
    case AttentionKind::time_mix:
      return add(differences, "recurrent layers");
    case AttentionKind::matrix:
      return add(differences, "matrices in place of attention");
    case AttentionKind::none:
      return add(differences, "layers without attention");
  }
  const std::int64_t kept = attention.num_key_value_heads;
  if (kept != heads) {
    add(differences, fmt::format("{}, not {}", with_noun(kept, "key-value head"), heads));
  }
  if (heads * attention.head_dim != hidden_size) {
    add(differences,
        fmt::format("{} heads of {} are not d = {}", heads, attention.head_dim, hidden_size));
  }
  if (attention.output_gate != ContextGate::none) add(differences, "a gate on attention's output");
}

void add_ffn(const FfnSpec& ffn, std::int64_t hidden_size, Differences& differences) {
  if (ffn.experts) {
    const ExpertsSpec& experts = *ffn.experts;
    return add(differences, fmt::format("{} of {} experts of {} each", experts.num_experts_per_tok,
                                        experts.num_experts, experts.intermediate_size));
  }
  switch (ffn.kind) {
    case FfnKind::none:
      return add(differences, "no FFN");
    case FfnKind::gated:
      return add(differences,
                 fmt::format("a gated FFN of {}, not a plain one of 4·d", ffn.intermediate_size));
    case FfnKind::channel_mix:
      return add(differences,
                 fmt::format("a channel mix of {}, not a plain FFN of 4·d", ffn.intermediate_size));
    case FfnKind::matrix:
      return add(differences, "matrices in place of the FFN");
    case FfnKind::plain:
      break;
  }
  if (ffn.intermediate_size != 4 * hidden_size) {
    add(differences, fmt::format("an FFN of {}, not 4·d", ffn.intermediate_size));
  }
}

/// Sizes of the layers that differ from the rules' layers.
Differences layer_differences(const ModelSpec& spec) {
  Differences differences;
  const auto add_kind = [&](const AttentionSpec& attention, const FfnSpec& ffn) {
    add_attention(attention, spec.hidden_size, differences);
    add_ffn(ffn, spec.hidden_size, differences);
  };
  for_each_kind(spec.main_stack(), add_kind);
  if (spec.encoder) for_each_kind(*spec.encoder, add_kind);
  return differences;
}

/// Products of activations, which no parameter of a layer stands for.
Differences products_without_parameters(const ModelSpec& spec) {
  Differences differences;
  if (spec.has_attention()) add(differences, "scores and contexts of attention");
  for_each_kind(spec.main_stack(), [&](const AttentionSpec& attention, const FfnSpec&) {
    if (attention.gated_delta) add(differences, "the gated delta recurrences");
    if (attention.state_space) add(differences, "the state-space recurrences");
    if (attention.time_mix) add(differences, "the recurrences of time mixing");
  });
  return differences;
}

/// Weights that a pass reads more than once.
void add_shared_weights(const ModelSpec& spec, Differences& differences) {
  const StackSpec& stack = spec.main_stack();
  if (stack.num_weight_groups) add(differences, "layers that share weights");
  if (stack.shared_block) add(differences, "blocks of attention and FFN that layers share");
}

/// Parameters of the layers that a token does not multiply once.
void add_layers_of_rule(const ModelSpec& spec, Differences& differences) {
  add(differences, "norms and biases");
  add_shared_weights(spec, differences);
}

/// Rows of embeddings that no GEMM reads: a head with the table's weights multiplies them all.
void add_looked_up(const ModelSpec& spec, Differences& differences) {
  const auto& head = spec.head.language_model;
  const bool multiplied = head && head->weight != WeightSharing::separate;
  if (spec.embedding.vocab_size > 0 && !multiplied) {
    add(differences, "the embedding table, which is only looked up");
  }
  if (spec.position.kind == PositionKind::learned) {
    add(differences, "position embeddings, which are only added");
  }
}

}  // namespace

Differences layer_parameter_differences(const ModelSpec& spec) {
  Differences differences = layer_differences(spec);
  add_shared_weights(spec, differences);
  add(differences, "norms and biases");
  return differences;
}

Differences parameter_differences(const ModelSpec& spec) {
  Differences differences = layer_parameter_differences(spec);
  const EmbeddingSpec& embedding = spec.embedding;
  if (spec.position.kind == PositionKind::learned) add(differences, "position embeddings");
  if (embedding.type_vocab_size > 0) add(differences, "token type embeddings");
  if (embedding.embedding_size != 0) add(differences, "a narrower embedding");
  if (embedding.image || embedding.audio) add(differences, "an input without a vocabulary");
  const HeadSpec& head = spec.head;
  if (head.language_model && head.language_model->weight == WeightSharing::separate) {
    add(differences, "a separate (untied) head");
  }
  if (head.pooler || head.classifier) add(differences, "a pooler or classifier");
  return differences;
}

Differences layer_flop_differences(const ModelSpec& spec, const Workload& workload) {
  Differences differences = layer_differences(spec);
  if (workload.attention == AttentionImplementation::fused && spec.main_stack().causal()) {
    add(differences, "a fused kernel that skips masked pairs");
  }
  if (spec.main_stack().shared_block) {
    add(differences, "blocks of attention and FFN that layers share");
  }
  return differences;
}

Differences forward_per_parameter_differences(const ModelSpec& spec) {
  Differences differences = products_without_parameters(spec);
  add_layers_of_rule(spec, differences);
  if (spec.head.language_model) add(differences, "the head's GEMM");
  if (spec.embedding.image || spec.embedding.audio) add(differences, "the input's projection");
  return differences;
}

Differences training_per_parameter_differences(const ModelSpec& spec) {
  Differences differences;
  add_looked_up(spec, differences);
  for (std::string& product : products_without_parameters(spec)) {
    add(differences, std::move(product));
  }
  add_layers_of_rule(spec, differences);
  if (spec.head.pooler || spec.head.classifier) {
    add(differences, "a pooler or classifier that reads one token of a sequence");
  }
  if (spec.kind == ModelKind::encoder_decoder) {
    add(differences, "stacks that each compute on their own tokens");
  }
  return differences;
}

Differences saved_differences(const ModelSpec& spec, const Workload& workload) {
  Differences differences = layer_flop_differences(spec, workload);
  const StackSpec& stack = spec.main_stack();
  if (stack.norm.kind == NormKind::rms_norm) add(differences, "RMSNorm");
  if (stack.norm.kind == NormKind::layer_norm)
    add(differences, "mean and deviation of each norm's rows");
  if (stack.dropout.ffn_output == 0) add(differences, "no dropout");
  if (workload.kernels == Kernels::reference) add(differences, "kernels of the reference code");
  return differences;
}

Differences kv_differences(const ModelSpec& spec) {
  Differences differences;
  const StackSpec& stack = spec.main_stack();
  for_each_kind(stack, [&](const AttentionSpec& attention, const FfnSpec&) {
    add_attention(attention, spec.hidden_size, differences);
  });
  if (stack.recurrent) add(differences, "a state of constant size");
  if (stack.cross_attention) add(differences, "a cache of cross-attention");
  return differences;
}

}  // namespace headroom::detail
