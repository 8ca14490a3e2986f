// Orders of growth against "Attention Is All You Need" (arXiv 1706.03762), Table 1 and section 4,
// in the letters of expr.h: the paper's n is s, its k is κ, its r is w. Formulas against
// derivations by hand.
#include <doctest/doctest.h>

#include "headroom/error.h"
#include "layers.h"

namespace headroom::test {
namespace {

/// One row of the paper's Table 1.
struct PaperRow {
  const std::string& config;
  const char* per_layer;
  const char* sequential;
  const char* path;
};

}  // namespace

TEST_CASE("the table equals Table 1 of the paper for its four kinds of layers") {
  const std::vector<PaperRow> paper{
      {kSelfAttention, "O(s²·d)", "O(1)", "O(1)"},
      {kRecurrent, "O(s·d²)", "O(s)", "O(s)"},
      {kDilatedConvolution, "O(s·d²·κ)", "O(1)", "O(log_κ(s))"},
      {kWindowAttention, "O(s·d·w)", "O(1)", "O(s/w)"},
  };
  for (const PaperRow& row : paper) {
    CAPTURE(row.config);
    const LayerComplexity layer = layer_of(row.config);
    CHECK(format(layer.core->growth) == row.per_layer);
    CHECK(format(layer.sequential_growth) == row.sequential);
    CHECK(layer.path.order == row.path);
  }
}

TEST_CASE("a stack of contiguous kernels needs O(s/κ) layers, as in section 4 of the paper") {
  const LayerComplexity layer = layer_of(kConvolution);
  CHECK(format(layer.core->growth) == "O(s·d²·κ)");
  CHECK(layer.path.order == "O(s/κ)");
}

TEST_CASE("the cost of a whole layer adds its projections to position mixing") {
  CHECK(format(layer_of(kSelfAttention).flops.growth) == "O(s²·d + s·d²)");
  CHECK(format(layer_of(kWindowAttention).flops.growth) == "O(s·d² + s·d·w)");
  CHECK(format(layer_of(kLinearAttention).flops.growth) == "O(s·d²)");
  CHECK(format(layer_of(kLinearAttention).core->growth) == "O(s·d·k)");
  CHECK(format(layer_of(kRecurrent).flops.growth) == "O(s·d²)");
  CHECK(format(layer_of(kFeedForward).flops.growth) == "O(s·d²)");
  CHECK_FALSE(layer_of(kFeedForward).core.has_value());
}

TEST_CASE("formulas equal derivations by hand") {
  const auto formula = [](const GrowingCost& cost) { return format(cost.formula); };
  const LayerComplexity softmax = layer_of(kSelfAttention);
  // Four projections of 2·s·d² and two GEMMs of 2·s²·d.
  CHECK(formula(softmax.flops) == "8·s·d² + 4·s²·d");
  CHECK(formula(*softmax.core) == "4·s²·d");
  const LayerComplexity linear = layer_of(kLinearAttention);
  // φ(K)ᵀ·V and φ(Q)·S of 2·s·h·k² each, h·k = d; the normaliser 2·s·d.
  CHECK(linear.core->by_length.at(1000) == 1000 * (4 * 512 * 64 + 2 * 512));
  const LayerComplexity recurrent = layer_of(kRecurrent);
  CHECK(formula(recurrent.flops) == "4·s·d²");
  CHECK(formula(*recurrent.core) == "2·s·d²");
  CHECK(formula(layer_of(kConvolution).flops) == "2·s·d²·κ");
  CHECK(formula(layer_of(kFeedForward).flops) == "16·s·d²");
}

TEST_CASE("a causal fused kernel counts half of the square and half of the diagonal") {
  Model model;
  model.spec = read_model_spec(kMaskedAttention, "config.json", "layer");
  const LayerComplexity layer = layer_complexity(model, AttentionImplementation::fused);
  CHECK(format(layer.core->formula) == "2·s·d + 2·s²·d");
  CHECK(format(layer.core->growth) == "O(s²·d)");
}

TEST_CASE("functions of the length equal the analysis of a workload") {
  for (const std::string& config :
       {kSelfAttention, kLinearAttention, kWindowAttention, kRecurrent, kConvolution,
        kDilatedConvolution, kMaskedAttention, kFeedForward}) {
    CAPTURE(config);
    const LayerComplexity layer = layer_of(config);
    for (const std::int64_t length : {1, 2, 63, 64, 65, 127, 128, 129, 130, 1000}) {
      CAPTURE(length);
      const Bindings values = bindings_of(workload_at(layer, length), layer.graph);
      CHECK(layer.flops.by_length.at(length) ==
            layer.analysis.total.forward.matrix_flops.evaluate(values));
    }
  }
}

TEST_CASE("eager attention stores s² scores, a fused kernel does not") {
  Model model;
  model.spec = read_model_spec(kSelfAttention, "config.json", "layer");
  const auto memory = [&](AttentionImplementation attention) {
    return format(layer_complexity(model, attention).activation_bytes.growth);
  };
  CHECK(memory(AttentionImplementation::eager) == "O(s²·h + s·d)");
  CHECK(memory(AttentionImplementation::fused) == "O(s·d)");
}

TEST_CASE("decode state grows with the keys for softmax attention only") {
  const LayerComplexity softmax = layer_of(kMaskedAttention);
  CHECK(*softmax.state_bytes_per_token == 2 * 512 * 4);
  CHECK(*softmax.state_bytes == 0);
  const LayerComplexity linear = layer_of(kCausalLinearAttention);
  CHECK(*linear.state_bytes_per_token == 0);
  CHECK(*linear.state_bytes == 8 * 64 * 65 * 4);
  const LayerComplexity recurrent = layer_of(kRecurrent);
  CHECK(*recurrent.state_bytes_per_token == 0);
  CHECK(*recurrent.state_bytes == 512 * 4);
  CHECK_FALSE(layer_of(kSelfAttention).state_bytes.has_value());
}

TEST_CASE("the decode state of an encoder-decoder grows with both of its sequences") {
  // t5-base: keys and values of 12 layers of 768, of the decoder's tokens and of the encoder's.
  const LayerComplexity t5 =
      layer_complexity(load_model("t5-base"), AttentionImplementation::eager);
  CHECK(*t5.state_bytes_per_token == 12 * 2 * 768 * 4 * 2);
  CHECK(*t5.state_bytes_per_encoder_token == 12 * 2 * 768 * 4);
  CHECK(*t5.state_bytes == 0);
}

TEST_CASE("full windows are constant state, and layers without windows add bytes per token") {
  struct Windowed {
    const char* name;
    Integer per_token;
    Integer constant;
  };
  // Keys and values in float32: full layers · 2 · width, and windowed layers · window · 2 · width.
  const std::vector<Windowed> models{
      {"gpt-oss-20b", 12 * 2 * 512 * 4, 12 * 128 * 2 * 512 * 4},
      {"gemma-3-1b", 4 * 2 * 256 * 4, 22 * 512 * 2 * 256 * 4},
      {"gemma-2-2b", 13 * 2 * 1024 * 4, 13 * 4096 * 2 * 1024 * 4},
      {"command-r7b", 8 * 2 * 1024 * 4, 24 * 4096 * 2 * 1024 * 4},
      {"gpt-neo-125m", 6 * 2 * 768 * 4, 6 * 256 * 2 * 768 * 4},
      {"mistral-7b-v0.1", 0, 32 * 4096 * 2 * 1024 * 4},
  };
  for (const Windowed& model : models) {
    CAPTURE(model.name);
    const LayerComplexity layer =
        layer_complexity(load_model(model.name), AttentionImplementation::fused);
    CHECK(*layer.state_bytes_per_token == model.per_token);
    CHECK(*layer.state_bytes == model.constant);
  }
}

TEST_CASE("both parts of the decode state add up to the cache of every preset") {
  static constexpr std::int64_t kLength = 1 << 20;  // beyond every window
  for (const Preset& preset : list_presets()) {
    CAPTURE(preset.name);
    const Model model = load_model(preset.name);
    if (model.spec.kind == ModelKind::denoiser) continue;  // has no length
    try {
      const LayerComplexity layer = layer_complexity(model, default_attention(model.spec));
      if (!layer.state_bytes) continue;
      Workload workload;
      workload.seq_len = kLength;
      workload.enc_seq_len = kLength;
      const Integer cache =
          kv_cache_bytes(layer.analysis).evaluate(bindings_of(workload, layer.graph));
      CHECK(*layer.state_bytes + kLength * *layer.state_bytes_per_token == cache);
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::invalid_input);
    }
  }
}

TEST_CASE("a recurrence carries the whole past, whatever its convolutions and windows see") {
  for (const char* const name : {"rwkv-4-169m", "mamba-130m", "recurrentgemma-2b"}) {
    CAPTURE(name);
    const Model model = load_model(name);
    const LayerComplexity layer = layer_complexity(model, default_attention(model.spec));
    CHECK(layer.path.order == "O(s)");
    CHECK_FALSE(layer.path.receptive_field);
  }
}

TEST_CASE("causal linear attention is sequential as a running state, parallel as a prefix sum") {
  const LayerComplexity layer = layer_of(kCausalLinearAttention);
  CHECK(format(layer.sequential_growth) == "O(s)");
  CHECK(format(*layer.parallel_growth) == "O(1)");
  CHECK(layer.path.order == "O(1)");
  CHECK_FALSE(layer_of(kLinearAttention).parallel_growth.has_value());
  CHECK_FALSE(layer_of(kRecurrent).parallel_growth.has_value());
}

TEST_CASE("the steps between the ends of a sequence follow from the reach of a layer") {
  const auto steps = [](const std::string& config, std::int64_t length) {
    return steps_between_ends(layer_of(config).path, length);
  };
  CHECK(steps(kSelfAttention, 1000) == 1);
  CHECK(steps(kRecurrent, 1000) == 1000);
  // 64 positions on either side.
  CHECK(steps(kWindowAttention, 65) == 1);
  CHECK(steps(kWindowAttention, 66) == 2);
  // One position on either side.
  CHECK(steps(kConvolution, 11) == 10);
  // Reaches of 2, 6, 18, 54: 1 + 2 + 6 + 18 = 27 positions after three layers, 81 after four.
  CHECK(steps(kDilatedConvolution, 27) == 3);
  CHECK(steps(kDilatedConvolution, 28) == 4);
  CHECK(steps(kDilatedConvolution, 81) == 4);
  CHECK(*layer_of(kDilatedConvolution).path.receptive_field == 27);
  CHECK(steps(kFeedForward, 1) == 0);
  CHECK_FALSE(steps(kFeedForward, 2).has_value());
}

}  // namespace headroom::test
