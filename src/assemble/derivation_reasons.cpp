#include "derivation_reasons.h"

#include <fmt/format.h>

#include <algorithm>

#include "derivation_steps.h"

namespace headroom::detail {
namespace {

using Reasons = std::vector<std::string>;

bool any_attention(const ModelSpec& spec, bool (*has)(const AttentionSpec&)) {
  const StackSpec& stack = spec.main_stack();
  if (has(stack.self_attention)) return true;
  return std::ranges::any_of(
      stack.variants, [&](const LayerVariant& variant) { return has(variant.self_attention); });
}

bool uses_window(const ModelSpec& spec) {
  return any_attention(spec, [](const AttentionSpec& attention) {
    return attention.window.kind != WindowKind::none;
  });
}

bool groups_heads(const AttentionSpec& attention) {
  return attention.kind == AttentionKind::softmax && !attention.latent &&
         attention.num_key_value_heads < attention.num_attention_heads;
}

void add_attention(const AnalyzeReport& report, Reasons& reasons) {
  const ModelSpec& spec = report.model.spec;
  if (!spec.has_attention()) return;
  const AttentionSpec& attention = spec.main_stack().self_attention;
  if (groups_heads(attention)) {
    reasons.push_back(
        fmt::format("grouped-query attention: keys and values have g = {} heads, so their "
                    "projections shrink by "
                    "h/g; every one of the h = {} query heads still scores all keys",
                    attention.num_key_value_heads, attention.num_attention_heads));
  }
  if (any_attention(spec, [](const AttentionSpec& a) { return a.latent.has_value(); })) {
    reasons.emplace_back(
        "latent attention: queries, keys and values come from low-rank projections, and decode "
        "attends in the latent space");
  }
  if (uses_window(spec)) {
    reasons.emplace_back(
        "sliding windows: their layers see at most w keys, u of them at this length");
  }
  const bool causal = spec.main_stack().causal();
  if (report.workload.phase == Phase::decode) return;
  if (report.workload.attention == AttentionImplementation::fused && causal) {
    reasons.emplace_back(
        "fused attention computes the c = s·p + s·(s + 1)/2 unmasked pairs only; eager attention "
        "computes all s·t and masks them afterwards");
  } else if (causal) {
    reasons.emplace_back(
        "eager attention computes all s·t pairs; the causal mask hides almost half of them and "
        "saves "
        "nothing");
  }
}

void add_experts(const ModelSpec& spec, Reasons& reasons) {
  const StackSpec& stack = spec.main_stack();
  const FfnSpec* routed = stack.ffn.experts ? &stack.ffn : nullptr;
  for (const LayerVariant& variant : stack.variants) {
    if (routed == nullptr && variant.ffn.experts) routed = &variant.ffn;
  }
  if (routed == nullptr) return;
  reasons.emplace_back(
      "experts: all E are stored, and each token multiplies the weights of the a that it is routed "
      "to");
}

Reasons flop_reasons(const AnalyzeReport& report) {
  Reasons reasons;
  const ModelSpec& spec = report.model.spec;
  add_attention(report, reasons);
  add_experts(spec, reasons);
  if (spec.main_stack().ffn.kind == FfnKind::gated) {
    reasons.emplace_back(
        "gated FFN: three matrices, not two; gate and up are one product of width 2·f");
  }
  if (!spec.embedding.image && !spec.embedding.audio && spec.embedding.vocab_size > 0) {
    reasons.emplace_back("embedding: a look-up of rows, no product: 0 FLOP");
  }
  return reasons;
}

Reasons parameter_reasons(const AnalyzeReport& report) {
  Reasons reasons;
  const ModelSpec& spec = report.model.spec;
  const AttentionSpec& attention = spec.main_stack().self_attention;
  if (spec.has_attention() && groups_heads(attention)) {
    reasons.push_back(
        fmt::format("grouped-query attention: W_k and W_v have g = {} heads, not h = {}",
                    attention.num_key_value_heads, attention.num_attention_heads));
  }
  add_experts(spec, reasons);
  if (spec.head.language_model && spec.head.language_model->weight != WeightSharing::separate) {
    reasons.emplace_back("tied head: the logits reuse the embedding's rows, which count once");
  }
  if (spec.main_stack().num_weight_groups) {
    reasons.emplace_back("shared layers: several layers use one set of weights, which counts once");
  }
  return reasons;
}

bool saves_output(ActivationKind kind) {
  return kind == ActivationKind::relu || kind == ActivationKind::tanh ||
         kind == ActivationKind::sigmoid;
}

Reasons saved_reasons(const AnalyzeReport& report) {
  Reasons reasons;
  const ModelSpec& spec = report.model.spec;
  const StackSpec& stack = spec.main_stack();
  const Workload& workload = report.workload;
  if (stack.ffn.kind != FfnKind::none && saves_output(stack.ffn.activation)) {
    reasons.emplace_back(
        "the activation's gradient follows from its output, which the next product saves anyway: "
        "with "
        "an FFN of 4·d its 8·b·s·d bytes are saved once, and 34 becomes 26");
  }
  if (spec.has_attention() && workload.attention == AttentionImplementation::fused) {
    reasons.emplace_back(
        "fused attention saves no scores and recomputes them backward: the 5·b·s²·h is gone, and "
        "one "
        "number per query and head is left");
  }
  if (stack.dropout.ffn_output == 0) {
    reasons.emplace_back("no dropout: no masks of 1 byte, and no second copy of the probabilities");
  }
  if (groups_heads(stack.self_attention) && workload.kernels == Kernels::reference) {
    reasons.emplace_back(
        "the reference code repeats grouped keys and values for every query head, and saves the "
        "copies");
  }
  switch (workload.recompute) {
    case Recompute::none:
      break;
    case Recompute::selective:
      reasons.emplace_back("selective recompute: scores and probabilities are computed again");
      break;
    case Recompute::full:
      reasons.emplace_back("full recompute: a layer keeps its input and runs forward again");
      break;
  }
  return reasons;
}

Reasons cache_reasons(const AnalyzeReport& report) {
  Reasons reasons;
  const ModelSpec& spec = report.model.spec;
  const AttentionSpec& attention = spec.main_stack().self_attention;
  const bool plain = spec.has_attention() && attention.kind == AttentionKind::softmax &&
                     !attention.latent && spec.main_stack().variants.empty();
  if (plain) {
    const int bytes = static_cast<int>(bytes_of(report.workload.kv_dtype));
    reasons.push_back(fmt::format("2·{}·l·b·t·g·k: K and V, {} bytes per element, t = p + s tokens",
                                  bytes, bytes));
  }
  reasons.emplace_back(
      "a decode step reads every earlier key and value; without a cache it would compute them "
      "again");
  if (report.workload.phase == Phase::prefill) {
    reasons.emplace_back(
        "a generation of n tokens ends with s + n − 1 in the cache: no pass reads the last one");
  }
  if (spec.has_attention() && groups_heads(attention)) {
    reasons.push_back(fmt::format("grouped-query attention: g = {} heads are cached, not all {}",
                                  attention.num_key_value_heads, attention.num_attention_heads));
  }
  if (spec.main_stack().cross_attention) {
    reasons.emplace_back(
        "cross-attention: keys and values of the encoder's n tokens, computed once, never growing");
  }
  if (uses_window(spec))
    reasons.emplace_back("sliding windows: at most w tokens stay in the cache");
  return reasons;
}

Reasons training_reasons(const AnalyzeReport& report) {
  Reasons reasons{
      "backward: Y = X·W has two gradients, dX = dY·Wᵀ and dW = Xᵀ·dY, each a product as large as "
      "the "
      "forward one: 2 + 4 = 6 FLOP per token and parameter"};
  if (report.workload.recompute == Recompute::full) {
    reasons.emplace_back(
        "full recompute: each layer runs forward again before its backward pass, a third more: 8 "
        "FLOP "
        "for 6");
  }
  if (report.workload.attention == AttentionImplementation::fused) {
    reasons.emplace_back(
        "fused attention recomputes its scores backward: five products for the two of the forward "
        "pass");
  }
  return reasons;
}

Reasons state_reasons(const AnalyzeReport& report) {
  const BytesPerParameter bytes = bytes_per_parameter(report.workload.dtype);
  return {
      fmt::format("{} + {} + {} = {} bytes per parameter with Adam: weights, gradients, optimizer",
                  to_string(bytes.weights), to_string(bytes.gradients),
                  to_string(Integer{bytes.master + 2 * bytes.one_state}), to_string(bytes.total())),
      bytes.source};
}

}  // namespace

std::vector<std::string> reasons_of(const AnalyzeReport& report, Subject subject) {
  switch (subject) {
    case Subject::flops:
      return flop_reasons(report);
    case Subject::elementwise:
      return {"factors per element: conventions.md; transcendental functions count 1"};
    case Subject::params:
      return parameter_reasons(report);
    case Subject::activations:
      return saved_reasons(report);
    case Subject::kv:
      return cache_reasons(report);
    case Subject::training:
      return training_reasons(report);
    case Subject::states:
      break;
  }
  return state_reasons(report);
}

}  // namespace headroom::detail
