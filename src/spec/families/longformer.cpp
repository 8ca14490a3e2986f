// Longformer: RoBERTa with a window around each token in place of full attention, and further
// projections for tokens with global attention (arXiv 2004.05150).
#include <fmt/format.h>

#include <algorithm>

#include "../bert.h"
#include "../encoder_heads.h"
#include "../family.h"

namespace headroom::detail {
namespace {

/// `attention_window`: one even width for all layers, or one each; half of it lies on either side.
std::vector<std::int64_t> read_attention_windows(ConfigReader& config, std::int64_t layers) {
  constexpr std::int64_t kDefaultWidth = 512;
  std::vector<std::int64_t> widths = config.count_or_counts("attention_window");
  if (widths.empty()) widths = {kDefaultWidth};
  if (std::ranges::any_of(widths, [](std::int64_t width) { return width < 2 || width % 2 != 0; })) {
    config.fail("attention_window", "is not an even number of at least 2", "use an even window");
  }
  if (widths.size() == 1) widths.resize(static_cast<std::size_t>(layers), widths.front());
  if (std::ssize(widths) != layers) {
    config.fail("attention_window",
                fmt::format("has {} widths for {} layers", widths.size(), layers),
                "give one width, or one per layer");
  }
  return widths;
}

void set_attention_window(AttentionSpec& attention, std::int64_t width) {
  attention.window = {WindowKind::centred, width / 2};
  attention.block_size = width / 2;
}

/// Gives every layer its window; layers with equal windows are one variant.
void set_attention_windows(StackSpec& stack, const std::vector<std::int64_t>& widths) {
  std::vector<std::int64_t> distinct;
  for (const std::int64_t width : widths) {
    const auto found = std::ranges::find(distinct, width);
    stack.variant_of_layer.push_back(static_cast<std::size_t>(found - distinct.begin()));
    if (found == distinct.end()) distinct.push_back(width);
  }
  set_attention_window(stack.self_attention, distinct.front());
  for (std::size_t variant = 1; variant < distinct.size(); ++variant) {
    stack.variants.push_back({stack.self_attention, stack.ffn});
    set_attention_window(stack.variants.back().self_attention, distinct[variant]);
  }
  if (distinct.size() == 1) stack.variant_of_layer.clear();
}

/// Tokens that a class gives global attention if its caller names none (transformers,
/// modeling_longformer.py: the forward of each class).
DefaultGlobalTokens default_global_tokens(const std::string& architecture) {
  if (architecture == "LongformerForSequenceClassification") {
    return DefaultGlobalTokens::first_token;
  }
  if (architecture == "LongformerForQuestionAnswering") {
    return DefaultGlobalTokens::before_separator;
  }
  if (architecture == "LongformerForMultipleChoice") return DefaultGlobalTokens::behind_separators;
  return DefaultGlobalTokens::none;
}

void read_longformer(ConfigReader& config, ModelSpec& spec) {
  constexpr std::int64_t kSeparator = 2;
  read_bert_encoder(config, spec, ActivationKind::gelu);
  count_unread_head_bias(spec);
  spec.position.offset = config.position_after_padding();
  spec.position.skips_padding = true;
  AttentionSpec& attention = spec.encoder->self_attention;
  attention.global = GlobalAttentionSpec{default_global_tokens(spec.architecture),
                                         config.count_or({"sep_token_id"}, kSeparator)};
  attention.softmax = SoftmaxPrecision::float32;
  set_attention_windows(*spec.encoder, read_attention_windows(config, spec.encoder->num_layers));
  config.ignore({"onnx_export", "attention_mode", "ignore_attention_mask"});
}

constexpr NameRule kLongformer[] = {
    {"encoder.layers.attention.global_query.%", "encoder.layer.{}.attention.self.query_global.%"},
    {"encoder.layers.attention.global_key.%", "encoder.layer.{}.attention.self.key_global.%"},
    {"encoder.layers.attention.global_value.%", "encoder.layer.{}.attention.self.value_global.%"},
};

NameTable longformer_names() {
  NameTable names = roberta_names("longformer.", {kLongformer});
  names.extras.push_back({"position_ids", ExtraKind::position_ids});
  return names;
}

}  // namespace

std::vector<Family> longformer_families() {
  return {{.model_types = {"longformer"},
           .classes = roberta_classes("Longformer"),
           .reader = read_longformer,
           .names = longformer_names(),
           .gguf = None("llama.cpp does not support this architecture")}};
}

}  // namespace headroom::detail
