// Megatron-LM: a decoder as the options that build it (megatron/training/arguments.py and the
// dataclasses that it makes options of, core_v0.19.0).
#include <algorithm>
#include <functional>
#include <utility>

#include "engine_commands.h"

namespace headroom::detail {
namespace {

using LayerTest = std::function<bool(const AttentionSpec&, const FfnSpec&)>;

/// True if each layer passes `test`.
std::vector<bool> layers_that(const StackSpec& stack, const LayerTest& test) {
  std::vector<bool> layers;
  for (std::int64_t layer = 0; layer < stack.num_layers; ++layer) {
    const std::size_t variant = stack.variant(layer);
    layers.push_back(test(stack.attention_of(variant), stack.ffn_of(variant)));
  }
  return layers;
}

bool any(const std::vector<bool>& layers) {
  return std::ranges::find(layers, true) != layers.end();
}
bool all(const std::vector<bool>& layers) {
  return std::ranges::find(layers, false) == layers.end();
}

/// The layers as a Python expression: "([0]*3+[1]*58)".
std::string pattern_of(const std::vector<bool>& layers) {
  std::string text;
  for (std::size_t i = 0; i < layers.size();) {
    std::size_t end = i;
    while (end < layers.size() && layers[end] == layers[i]) ++end;
    text += fmt::format("{}[{}]", text.empty() ? "(" : "+", layers[i] ? 1 : 0);
    if (end - i > 1) text += fmt::format("*{}", end - i);
    i = end;
  }
  return text + ")";
}

/// Writes the options of one model, and what no option builds.
class MegatronModel {
 public:
  MegatronModel(const ModelSpec& spec, std::int64_t seq_len, CommandWords& words)
      : spec_(spec),
        stack_(spec.main_stack()),
        attention_(usual_attention()),
        seq_len_(seq_len),
        words_(words) {}

  void add(const ParallelPlan& plan) {
    add_sizes();
    add_vocabulary(plan.tensor);
    add_norms();
    add_activation();
    add_biases();
    add_positions();
    if (attention_.latent) add_latent();
    add_attention();
    if (const FfnSpec* const experts = expert_layer()) add_experts(*experts->experts, plan);
    add_dropout();
    note_others();
  }

  /// Parts of the model that the command does not build.
  [[nodiscard]] const std::vector<std::string>& missing() const { return missing_; }

 private:
  /// That of the first layer with softmax attention.
  [[nodiscard]] const AttentionSpec& usual_attention() const {
    for (std::size_t variant = 0; variant <= stack_.variants.size(); ++variant) {
      const AttentionSpec& attention = stack_.attention_of(variant);
      if (attention.kind == AttentionKind::softmax) return attention;
    }
    return stack_.self_attention;
  }

  /// The first kind of layers with routed experts; null without.
  [[nodiscard]] const FfnSpec* expert_layer() const {
    for (std::size_t variant = 0; variant <= stack_.variants.size(); ++variant) {
      const FfnSpec& ffn = stack_.ffn_of(variant);
      if (ffn.experts) return &ffn;
    }
    return nullptr;
  }

  void miss(bool is_missing, std::string_view part) {
    if (is_missing) missing_.emplace_back(part);
  }

  void flag(bool is_set, std::string_view option) {
    if (is_set) words_.add(option);
  }

  void add_sizes() {
    words_.add("--num-layers", stack_.num_layers);
    words_.add("--hidden-size", spec_.hidden_size);
    words_.add("--ffn-hidden-size", stack_.ffn.intermediate_size);
    words_.add("--num-attention-heads", attention_.num_attention_heads);
    if (attention_.latent) return;
    if (attention_.num_key_value_heads != attention_.num_attention_heads) {
      words_.add("--group-query-attention");
      words_.add("--num-query-groups", attention_.num_key_value_heads);
    }
    if (attention_.head_dim * attention_.num_attention_heads != spec_.hidden_size) {
      words_.add("--kv-channels", attention_.head_dim);
    }
  }

  /// Every tensor-parallel rank holds as many rows of the vocabulary.
  void add_vocabulary(std::int64_t tensor) {
    const std::int64_t vocab_size = spec_.embedding.vocab_size;
    words_.add(vocab_size % tensor == 0 ? "--padded-vocab-size" : "--vocab-size", vocab_size);
    const auto& head = spec_.head.language_model;
    flag(head && head->weight == WeightSharing::separate, "--untie-embeddings-and-output-weights");
  }

  void add_norms() {
    const NormSpec& norm = stack_.norm;
    if (norm.kind == NormKind::rms_norm) words_.add("--normalization", "RMSNorm");
    words_.add("--norm-epsilon", norm.eps);
    flag(norm.weight == NormWeight::one_plus, "--apply-layernorm-1p");
    miss(stack_.norm_placement != NormPlacement::pre, "the places of norms");
    miss(norm.weight == NormWeight::none, "norms without weights");
  }

  void add_activation() {
    const FfnSpec& ffn = stack_.ffn;
    const bool gated = ffn.kind == FfnKind::gated;
    switch (ffn.activation) {
      case ActivationKind::silu:
        flag(gated, "--swiglu");
        return miss(!gated, "the activation");
      case ActivationKind::gelu:
        return miss(gated, "the activation");
      case ActivationKind::gelu_tanh:
      case ActivationKind::gelu_new:
        flag(!gated, "--openai-gelu");
        return miss(gated, "the activation");
      case ActivationKind::relu_squared:
        flag(!gated, "--squared-relu");
        return miss(gated, "the activation");
      case ActivationKind::clamped_swiglu:
        // (up + 1) · g · sigmoid(1.702 g), both within 7 (megatron/core/activations.py).
        return words_.add("--quick-geglu --activation-func-clamp-value 7 --glu-linear-offset 1");
      case ActivationKind::quick_gelu:
      case ActivationKind::relu:
      case ActivationKind::tanh:
      case ActivationKind::sigmoid:
      case ActivationKind::clamped_silu:
      case ActivationKind::xielu:
      case ActivationKind::identity:
      case ActivationKind::softplus:
        break;
    }
    miss(true, "the activation");
  }

  /// Megatron-LM has biases in all linear layers, in those of queries, keys and values, or nowhere.
  void add_biases() {
    const bool ffn = stack_.ffn.bias;
    const bool output = attention_.output_bias;
    const bool inputs = attention_.qkv_bias;
    if (ffn && output && inputs) return;
    words_.add("--disable-bias-linear");
    flag(inputs, "--add-qkv-bias");
    miss(ffn || output, "the biases");
  }

  void add_positions() {
    const PositionSpec& position = spec_.position;
    const bool learned = position.kind == PositionKind::learned;
    const std::int64_t rows = position.max_position_embeddings;
    words_.add("--seq-length", seq_len_);
    words_.add("--max-position-embeddings", learned ? rows : seq_len_);
    if (learned) return;
    if (!position.is_rotary()) {
      words_.add("--position-embedding-type", "none");
      return miss(position.kind != PositionKind::none || has_alibi(), "the positions");
    }
    miss(position.kind == PositionKind::learned_and_rotary, "the table of positions");
    words_.add("--position-embedding-type", "rope");
    add_rope(position.rope);
    const std::vector<bool> without = layers_that(
        stack_, [](const AttentionSpec& attention, const FfnSpec&) { return !attention.rotary; });
    if (any(without)) words_.add("--no-rope-freq", shell_word(pattern_of(without)));
  }

  [[nodiscard]] bool has_alibi() const { return attention_.alibi.kind != AlibiKind::none; }

  void add_rope(const RopeSpec& rope) {
    words_.add("--rotary-base", static_cast<std::int64_t>(rope.theta));
    const std::int64_t rotated = rope.rotary_dim;
    if (!attention_.latent && rotated != 0 && rotated != attention_.head_dim) {
      words_.add("--rotary-percent",
                 static_cast<double>(rotated) / static_cast<double>(attention_.head_dim));
    }
    const bool own = any(layers_that(stack_, [](const AttentionSpec& attention, const FfnSpec&) {
      return attention.rope.has_value();
    }));
    miss(own, "layers with rotary positions of their own");
    flag(rope.layout == RopeLayout::interleaved && !attention_.latent, "--rotary-interleaved");
    add_rope_scaling(rope);
  }

  void add_rope_scaling(const RopeSpec& rope) {
    constexpr std::int64_t kOriginal = 8192;  // rotary_pos_embedding.py, with factors 1 and 4
    switch (rope.scaling) {
      case RopeScalingKind::none:
        return;
      case RopeScalingKind::llama3:
        words_.add("--use-rope-scaling --rope-scaling-factor", rope.factor);
        return miss(rope.low_freq_factor != 1 || rope.high_freq_factor != 4 ||
                        rope.original_max_position_embeddings != kOriginal,
                    "the scaling of rotary positions");
      case RopeScalingKind::linear:
        return words_.add("--rotary-seq-len-interpolation-factor",
                          static_cast<std::int64_t>(rope.factor));
      case RopeScalingKind::yarn:
        if (attention_.latent) return;  // add_latent()
        break;
      case RopeScalingKind::dynamic:
      case RopeScalingKind::longrope:
        break;
    }
    miss(true, "the scaling of rotary positions");
  }

  void add_latent() {
    const LatentAttentionSpec& latent = *attention_.latent;
    words_.add("--multi-latent-attention");
    if (latent.q_lora_rank > 0) words_.add("--q-lora-rank", latent.q_lora_rank);
    words_.add("--kv-lora-rank", latent.kv_lora_rank);
    words_.add("--qk-head-dim", latent.qk_nope_head_dim);
    words_.add("--qk-pos-emb-head-dim", latent.qk_rope_head_dim);
    words_.add("--v-head-dim", attention_.value_head_dim);
    words_.add("--qk-layernorm");  // of the latent vectors
    const RopeSpec& rope = spec_.position.rope;
    if (rope.scaling != RopeScalingKind::yarn) return words_.add("--rope-type", "rope");
    words_.add("--rope-type yarn --rotary-scaling-factor", rope.factor);
    if (rope.mscale_all_dim > 0) {
      words_.add(fmt::format("--mscale {0} --mscale-all-dim {0}", rope.mscale_all_dim));
    }
    // MLATransformerConfig has no option for it.
    constexpr std::int64_t kOriginal = 4096;
    miss(rope.original_max_position_embeddings != kOriginal, "the scaling of rotary positions");
  }

  void add_attention() {
    if (const auto& norm = attention_.query_key_norm) {
      const bool rms =
          norm->norm.weight == NormWeight::none && norm->place == QueryKeyNormPlace::after_rotary;
      words_.add(rms ? "--qk-l2-norm" : "--qk-layernorm");
      miss(norm->scope != QueryKeyNormScope::each_head, "norms over the queries of all heads");
    }
    if (attention_.sinks) words_.add("--softmax-type", "learnable");
    flag(attention_.output_gate == ContextGate::sigmoid, "--attention-output-gate");
    miss(attention_.output_gate != ContextGate::none &&
             attention_.output_gate != ContextGate::sigmoid,
         "the gates of attention");
    miss(attention_.soft_cap > 0, "caps of scores");
    miss(attention_.indexer.has_value() || attention_.shared_key_value.has_value(),
         "attention to chosen or compressed keys");
    miss(attention_.query_rank > 0, "the low rank of queries");
    add_window();
  }

  /// A window counts the token itself; the option counts those before and behind it.
  void add_window() {
    const auto has_window = [](const AttentionSpec& attention, const FfnSpec&) {
      return attention.window.kind == WindowKind::sliding;
    };
    const std::vector<bool> windows = layers_that(stack_, has_window);
    const std::vector<bool> others =
        layers_that(stack_, [](const AttentionSpec& attention, const FfnSpec&) {
          return attention.window.kind == WindowKind::chunked ||
                 attention.window.kind == WindowKind::centred;
        });
    miss(any(others), "windows that do not slide");
    if (!any(windows)) return;
    const auto first = std::ranges::find(windows, true) - windows.begin();
    const std::int64_t size = stack_.attention_of(stack_.variant(first)).window.size;
    words_.add("--window-size", fmt::format("{},0", size - 1));
    if (!all(windows)) words_.add("--window-attn-skip-freq", shell_word(pattern_of(windows)));
  }

  void add_experts(const ExpertsSpec& experts, const ParallelPlan& plan) {
    words_.add("--num-experts", experts.num_experts);
    words_.add("--moe-router-topk", experts.num_experts_per_tok);
    words_.add("--moe-ffn-hidden-size", experts.intermediate_size);
    words_.add("--moe-grouped-gemm");
    const std::vector<bool> layers = layers_that(
        stack_, [](const AttentionSpec&, const FfnSpec& ffn) { return ffn.experts.has_value(); });
    if (!all(layers)) words_.add("--moe-layer-freq", shell_word(pattern_of(layers)));
    if (experts.shared_intermediate_size > 0) {
      words_.add("--moe-shared-expert-intermediate-size", experts.shared_intermediate_size);
      flag(experts.shared_gate, "--moe-shared-expert-gate");
    }
    if (experts.latent_size > 0) words_.add("--moe-latent-size", experts.latent_size);
    add_router(experts);
    const bool direct = plan.expert_exchange == ExpertExchange::direct;
    if (plan.expert > 1 && direct) words_.add("--moe-token-dispatcher-type", "alltoall");
    miss(experts.bias || experts.router_bias, "the biases of experts");
    miss(experts.beside_dense || experts.output_norm, "the network beside the experts");
    miss(experts.selection == ExpertSelection::token_table, "the table that chooses experts");
  }

  /// Scores after the choice are a softmax of the chosen ones; before it, those of all experts.
  /// Sigmoids of several experts are divided by their sum (moe_utils.py).
  void add_router(const ExpertsSpec& experts) {
    const bool several = experts.num_experts_per_tok > 1;
    switch (experts.scoring) {
      case RouterScoring::softmax:
        flag(!experts.normalise, "--moe-router-pre-softmax");
        break;
      case RouterScoring::softmax_of_chosen:
        break;
      case RouterScoring::sigmoid:
        words_.add("--moe-router-score-function", "sigmoid");
        miss(several && !experts.normalise, "weights of experts that do not sum to 1");
        break;
      case RouterScoring::sqrt_softplus:
        words_.add("--moe-router-score-function", "sqrtsoftplus");
        miss(several && !experts.normalise, "weights of experts that do not sum to 1");
        break;
      case RouterScoring::sigmoid_of_chosen:  // the choice adds its bias before the sigmoids
      case RouterScoring::sparse_mixer:
        miss(true, "the router");
        break;
    }
    if (experts.num_groups > 1) {
      words_.add("--moe-router-num-groups", experts.num_groups);
      words_.add("--moe-router-group-topk", experts.chosen_groups);
    }
    if (experts.scaling_factor != 1) {
      words_.add("--moe-router-topk-scaling-factor", experts.scaling_factor);
    }
    // The rate is that of DeepSeek-V3 (arXiv 2412.19437, section 4.2).
    if (experts.correction_bias) {
      words_.add("--moe-router-enable-expert-bias --moe-router-bias-update-rate 0.001");
    }
  }

  /// Megatron-LM's defaults are 0.1.
  void add_dropout() {
    const DropoutSpec& dropout = stack_.dropout;
    words_.add("--attention-dropout", dropout.attention_probs);
    words_.add("--hidden-dropout", dropout.attention_output);
  }

  void note_others() {
    const std::vector<bool> softmax =
        layers_that(stack_, [](const AttentionSpec& attention, const FfnSpec&) {
          return attention.kind == AttentionKind::softmax && !attention.state_space;
        });
    miss(!all(softmax), "layers that mix positions otherwise than by softmax attention");
    miss(stack_.residual != ResidualKind::sequential, "attention beside the feed-forward network");
    const bool connects =
        any(layers_that(stack_, [](const AttentionSpec& attention, const FfnSpec&) {
          return !attention.connections.empty();
        }));
    miss(stack_.hyper_connections || stack_.altup || stack_.shared_block ||
             stack_.residual_block > 0 || stack_.laurel_rank > 0 || connects,
         "the residual streams");
    const auto& head = spec_.head.language_model;
    miss(head && head->soft_cap > 0, "the cap of logits");
    miss(head && head->logit_scale != 1, "the scale of logits");
    miss(spec_.embedding.norm.has_value(), "the norm of embeddings");
    miss(spec_.embedding.scale != EmbeddingScale::none || spec_.embedding.per_layer.has_value(),
         "the scale of embeddings");
  }

  const ModelSpec& spec_;
  const StackSpec& stack_;
  const AttentionSpec& attention_;
  std::int64_t seq_len_;
  CommandWords& words_;
  std::vector<std::string> missing_;
};

}  // namespace

void add_megatron_model(const ModelSpec& spec, std::int64_t seq_len, const ParallelPlan& plan,
                        CommandWords& words, EngineCommand& command) {
  MegatronModel model(spec, seq_len, words);
  model.add(plan);
  if (model.missing().empty()) return;
  command.notes.push_back(fmt::format("no option builds {}", fmt::join(model.missing(), ", ")));
}

}  // namespace headroom::detail
