// ModelSpec: what a model is, as independent choices. A family (bert, llama, …) is a short function
// from its config.json to one of these; one builder turns any of them into a graph.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace headroom {

enum class NormKind { layer_norm, rms_norm };
/// Where the norms of a layer stand: x + f(norm(x)), norm(x + f(x)), or nowhere.
enum class NormPlacement { pre, post, none };
/// `gelu` is exact (erf); `gelu_tanh` its approximation in one kernel; `gelu_new` the same formula
/// that Hugging Face writes out in elementary operations.
enum class ActivationKind { relu, gelu, gelu_tanh, gelu_new, silu, tanh };
enum class AttentionKind { softmax, linear };
/// A plain feed-forward network is down(act(up(x))), a gated one down(act(gate(x)) * up(x)).
enum class FfnKind { none, plain, gated };
/// Where a token's position comes in.
enum class PositionKind { none, learned, sinusoidal, rotary, relative_bias };
enum class AttentionScale { inverse_sqrt_head_dim, none };
/// The type that the reference code computes its softmax in.
enum class SoftmaxPrecision { activation, float32 };
enum class InputKind { tokens, patches, hidden_states };
enum class WeightSharing { separate, shared };

struct NormSpec {
  NormKind kind = NormKind::layer_norm;
  bool bias = true;
  double eps = 1e-5;
};

/// Multi-head attention. Grouped-query when there are fewer key-value heads than query heads,
/// multi-query when there is one.
struct AttentionSpec {
  AttentionKind kind = AttentionKind::softmax;
  std::int64_t num_attention_heads = 0;
  std::int64_t num_key_value_heads = 0;
  std::int64_t head_dim = 0;        ///< d_k, of queries and keys
  std::int64_t value_head_dim = 0;  ///< d_v
  bool causal = false;
  bool qkv_bias = false;
  bool output_bias = false;
  AttentionScale scale = AttentionScale::inverse_sqrt_head_dim;
  SoftmaxPrecision softmax = SoftmaxPrecision::activation;
  double linear_attention_eps = 1e-6;  ///< added to the denominator of linear attention
};

struct FfnSpec {
  FfnKind kind = FfnKind::none;
  std::int64_t intermediate_size = 0;
  ActivationKind activation = ActivationKind::gelu;
  bool bias = false;
};

/// Probabilities of dropping in training; where one is 0 there is no dropout and no mask.
struct DropoutSpec {
  double embedding = 0;
  double attention_probs = 0;
  double attention_output = 0;
  double ffn_activation = 0;
  double ffn_output = 0;
  double final = 0;  ///< after the last norm of a stack
};

/// A stack of equal layers.
struct StackSpec {
  std::int64_t num_layers = 0;
  AttentionSpec self_attention;
  std::optional<AttentionSpec> cross_attention;
  FfnSpec ffn;
  NormPlacement norm_placement = NormPlacement::pre;
  NormSpec norm;
  std::optional<NormSpec> final_norm;
  DropoutSpec dropout;
};

enum class RopeScalingKind { none, linear, dynamic, llama3 };

/// How rotary angles are stretched beyond the training context. Changes values, never a count.
struct RopeSpec {
  double theta = 10000;
  RopeScalingKind scaling = RopeScalingKind::none;
  double factor = 1;
  double low_freq_factor = 1;
  double high_freq_factor = 1;
  std::int64_t original_max_position_embeddings = 0;
};

struct PositionSpec {
  PositionKind kind = PositionKind::none;
  std::int64_t max_position_embeddings = 0;  ///< rows of a learned table, or the trained context
  std::int64_t offset = 0;        ///< rows that no token uses (RoBERTa: pad_token_id + 1)
  std::int64_t num_buckets = 0;   ///< relative bias only
  std::int64_t max_distance = 0;  ///< relative bias only
  RopeSpec rope;                  ///< rotary only
};

struct ImageSpec {
  std::int64_t image_size = 0;
  std::int64_t patch_size = 0;
  std::int64_t num_channels = 0;

  [[nodiscard]] std::int64_t num_patches() const noexcept {
    return (image_size / patch_size) * (image_size / patch_size);
  }
};

enum class EmbeddingScale { none, sqrt_hidden_size };

/// How the input becomes hidden states.
struct EmbeddingSpec {
  InputKind input = InputKind::tokens;
  std::int64_t vocab_size = 0;
  std::int64_t type_vocab_size = 0;
  std::optional<NormSpec> norm;
  EmbeddingScale scale = EmbeddingScale::none;
  std::optional<ImageSpec> image;
};

/// Projection to the vocabulary.
struct LanguageModelHeadSpec {
  WeightSharing weight = WeightSharing::separate;  ///< shared: the word embedding itself
  bool bias = false;
  bool scale_by_inverse_sqrt_hidden = false;  ///< T5 v1.0 scales the decoder's output first
  /// BERT-like: dense, activation and norm before the projection.
  std::optional<ActivationKind> transform;
  bool float32_logits = false;  ///< the reference code casts logits before its loss
};

enum class ClassifierInput { pooled_token, first_token, last_token, every_token };

/// Projection to labels.
struct ClassifierSpec {
  ClassifierInput input = ClassifierInput::pooled_token;
  std::int64_t num_labels = 0;
  bool bias = true;
  std::optional<ActivationKind> dense;  ///< a d × d layer with this activation comes first
  double dense_dropout = 0;             ///< before that layer
  double dropout = 0;                   ///< before the projection
};

struct HeadSpec {
  bool pooler = false;  ///< tanh(dense(hidden state of the first token))
  std::optional<LanguageModelHeadSpec> language_model;
  std::optional<ClassifierSpec> classifier;
};

/// What the model's stacks are for. Decides phases and the words on screen.
enum class ModelKind { encoder, decoder, encoder_decoder, attention_layer };

struct ModelSpec {
  std::string name;
  std::string model_type;    ///< the family, as in config.json
  std::string architecture;  ///< the class that decides heads, as in `architectures`
  std::string torch_dtype;   ///< what the weights are stored in; empty when not said
  ModelKind kind = ModelKind::encoder;
  std::int64_t hidden_size = 0;
  EmbeddingSpec embedding;
  PositionSpec position;
  std::optional<StackSpec> encoder;
  std::optional<StackSpec> decoder;
  WeightSharing encoder_decoder_embedding = WeightSharing::shared;
  HeadSpec head;

  /// The stack whose sequence length is `seq_len`: the decoder, or else the encoder.
  [[nodiscard]] const StackSpec& main_stack() const { return decoder ? *decoder : *encoder; }
};

}  // namespace headroom
