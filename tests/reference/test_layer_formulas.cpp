// Single layers against Table 1 of "Attention Is All You Need" (arXiv 1706.03762), with constants
// from torch.nn's definitions, derived by hand. N is the length s; b is 1 unless written.
#include <doctest/doctest.h>

#include "letters.h"
#include "support/data.h"

using namespace headroom;
using namespace headroom::test;

namespace {

const Expr kappa = Symbol::kernel_size;

Counted prefill(const std::string& preset, AttentionImplementation attention) {
  const ModelSpec spec = load_model(preset).spec;
  WorkloadRequest request;
  request.attention = attention;
  return count(spec, resolve(request, spec));
}

/// Matrix FLOPs of a prefill, in the layer's own symbols.
Expr flops(const std::string& preset,
           AttentionImplementation attention = AttentionImplementation::eager) {
  const ModelSpec spec = load_model(preset).spec;
  WorkloadRequest request;
  request.attention = attention;
  const Workload workload = resolve(request, spec);
  const Counted counted = count(spec, workload);
  return collapsed(counted.analysis.total.forward.matrix_flops, counted.graph, workload);
}

Integer elementwise(const std::string& preset) {
  return prefill(preset, AttentionImplementation::eager).figures.forward.elementwise_flops;
}

}  // namespace

TEST_CASE("a recurrent layer costs 2·s·d² per gate for each of its two GEMMs") {
  CHECK(flops("layer-rnn") == l * Integer{4} * b * s * d * d);
  CHECK(flops("layer-gru") == l * Integer{12} * b * s * d * d);
  CHECK(flops("layer-lstm") == l * Integer{16} * b * s * d * d);
}

TEST_CASE("a convolution costs 2·s·d²·κ, causal or not, dilated or not") {
  for (const char* const name : {"layer-conv", "layer-conv-causal"}) {
    CHECK(flops(name) == l * Integer{2} * b * s * d * d * kappa);
  }
  CHECK(flops("layer-conv-dilated") == Integer{8 * 2} * b * s * d * d * kappa);
}

TEST_CASE("self-attention costs 4·s²·d plus four projections, with one head or several") {
  const Expr softmax = l * (Integer{8} * b * s * d * d + Integer{4} * b * s * s * d);
  for (const char* const name :
       {"layer-self-attention", "layer-multi-head-attention", "layer-masked-attention"}) {
    CHECK(flops(name) == softmax);
  }
}

TEST_CASE("heads with d_k = 64 and d_v = 100 cost 2·b·s·d·h·(2·k + 2·v) and 2·b·h·s²·(k + v)") {
  // 8 heads of width 512 by hand: Q and K 2·512·512 parameters each, V and the output 512·800.
  const Counted counted = prefill("layer-wide-value-attention", AttentionImplementation::eager);
  CHECK(counted.figures.parameters == 2 * 512 * 512 + 2 * 512 * 800);
  constexpr std::int64_t kSeq = 128;
  const Integer projections = 2 * kSeq * 512 * (2 * 512 + 2 * 800);
  const Integer pairs = 2 * kSeq * kSeq * 8 * (64 + 100);
  CHECK(counted.figures.forward.matrix_flops == projections + pairs);
}

TEST_CASE("a fused kernel computes only the unmasked pairs of a mask or window") {
  const auto fused = AttentionImplementation::fused;
  CHECK(flops("layer-masked-attention", fused) ==
        l * (Integer{8} * b * s * d * d + Integer{4} * b * d * Symbol::visible_pairs));
  CHECK(flops("layer-window-attention", fused) ==
        l * (Integer{8} * b * s * d * d + Integer{4} * b * d * Symbol::windowed_pairs));
}

TEST_CASE("a window of w positions on both sides has s·(2·w + 1) - w·(w + 1) pairs") {
  const ModelSpec spec = load_model("layer-window-attention").spec;
  WorkloadRequest request;
  request.seq_len = 1000;
  const Counted counted = count(spec, resolve(request, spec));
  const Bindings values = bindings_of(resolve(request, spec), counted.graph);
  CHECK(values.get(Symbol::windowed_pairs) == Integer{1000 * 129 - 64 * 65});
}

TEST_CASE("cross-attention reads n keys of the second sequence") {
  const Expr n = Symbol::enc_seq_len;
  CHECK(flops("layer-cross-attention") ==
        l * (Integer{4} * b * s * d * d + Integer{4} * b * n * d * d + Integer{4} * b * s * n * d));
}

TEST_CASE("linear attention is linear in s") {
  // Per head: 4·k² for the state and its GEMM with the query, 2·k for the denominator.
  const Expr head = Symbol::head_dim;
  for (const char* const name : {"layer-linear-attention", "layer-linear-attention-causal"}) {
    CAPTURE(std::string(name));
    const Expr expected = l * b * s * (Integer{8} * d * d + Integer{4} * d * head + Integer{2} * d);
    CHECK(flops(name) == expected);
    CHECK(flops(name).degree(Symbol::seq_len) == 1);
  }
}

TEST_CASE("without an output projection, attention costs 2·s·d² less and ends with its context") {
  const auto layer = [](bool projects) {
    const ModelSpec spec = spec_of({{"model_type", "attention"},
                                    {"hidden_size", 48},
                                    {"num_attention_heads", 4},
                                    {"head_dim", 12},
                                    {"value_head_dim", 7},
                                    {"output_projection", projects}});
    WorkloadRequest request;
    request.seq_len = 10;
    CHECK(spec.output_width() == (projects ? 48 : 4 * 7));
    return count(spec, resolve(request, spec)).figures;
  };
  const auto whole = layer(true);
  const auto context = layer(false);
  CHECK(whole.parameters - context.parameters == 4 * 7 * 48);
  CHECK(whole.forward.matrix_flops - context.forward.matrix_flops == 2 * 10 * 4 * 7 * 48);
}

TEST_CASE("feature maps cost their own operations, and save what their gradient reads") {
  // Per element of queries and keys, 2·10 tokens of 4 heads of 12. elu + 1: exp and a sum, saves
  // its input; relu, exp and softmax save their output, which the products save anyway.
  const auto layer = [](const std::string& map, Phase phase) {
    const ModelSpec spec = spec_of({{"model_type", "attention"},
                                    {"hidden_size", 48},
                                    {"num_attention_heads", 4},
                                    {"head_dim", 12},
                                    {"attention_kind", "linear"},
                                    {"feature_map", map}});
    WorkloadRequest request;
    request.seq_len = 10;
    request.phase = phase;
    return count(spec, resolve(request, spec)).figures;
  };
  constexpr std::int64_t kElements = 2 * 10 * 48;
  const auto flops = [&](const std::string& map) {
    return layer(map, Phase::prefill).forward.elementwise_flops;
  };
  CHECK(flops("elu+1") - flops("exp") == kElements);
  CHECK(flops("exp") == flops("relu"));
  CHECK(flops("softmax") - flops("exp") == 4 * kElements);
  const auto saved = [&](const std::string& map) {
    return layer(map, Phase::train).saved_activation_bytes;
  };
  CHECK(saved("elu+1") - saved("exp") == 4 * kElements);
  CHECK(saved("exp") == saved("relu"));
  CHECK(saved("exp") == saved("softmax"));
}

TEST_CASE("a position-wise network costs 16·s·d²") {
  CHECK(flops("layer-ffn") == l * Integer{16} * b * s * d * d);
}

TEST_CASE("element-wise FLOPs of a cell count every operation") {
  // Per unit and step. RNN: a sum of both GEMMs, tanh; biases: 2. LSTM: 4 sums, 3 sigmoids of 3, 2
  // tanh, 3 multiplications and a sum; biases: 8. GRU: 3 sums, a multiplication by r, 2 sigmoids of
  // 3, tanh, 2 multiplications, a difference and a sum; biases: 6.
  constexpr std::int64_t kUnits = 128 * 512;
  CHECK(elementwise("layer-rnn") == kUnits * (1 + 1 + 2));
  CHECK(elementwise("layer-lstm") == kUnits * (4 + 9 + 2 + 3 + 1 + 8));
  CHECK(elementwise("layer-gru") == kUnits * (3 + 1 + 6 + 1 + 4 + 6));
  CHECK(elementwise("layer-conv") == kUnits);  // its bias
}

TEST_CASE("the decode state does not grow with the past, except for attention") {
  const auto cache = [](const std::string& preset, std::int64_t past) {
    const ModelSpec spec = load_model(preset).spec;
    WorkloadRequest request;
    request.phase = Phase::decode;
    request.batch_size = 3;
    request.past_len = past;
    return count(spec, resolve(request, spec)).figures.kv_cache_bytes;
  };
  constexpr std::int64_t kVector = std::int64_t{3} * 512 * 4;  // batch · hidden · bytes
  for (const std::int64_t past : {1, 1000}) {
    CHECK(cache("layer-rnn", past) == kVector);
    CHECK(cache("layer-gru", past) == kVector);
    CHECK(cache("layer-lstm", past) == 2 * kVector);  // h and c
    CHECK(cache("layer-conv-causal", past) == 2 * kVector);
    CHECK(cache("layer-conv-dilated", past) == 2 * (1 + 2 + 4 + 8 + 16 + 32 + 64 + 128) * kVector);
    CHECK(cache("layer-masked-attention", past) == 2 * (past + 1) * kVector);
    // A state of 64 × 64 and a sum of 64 for each of 8 heads.
    CHECK(cache("layer-linear-attention-causal", past) == 65 * kVector);
  }
}

TEST_CASE("bidirectional layers have no decode phase") {
  for (const char* const name : {"layer-conv", "layer-self-attention", "layer-linear-attention",
                                 "layer-cross-attention", "layer-ffn"}) {
    CAPTURE(std::string(name));
    const ModelSpec spec = load_model(name).spec;
    WorkloadRequest request;
    request.phase = Phase::decode;
    CHECK_THROWS((void)resolve(request, spec));
  }
}

TEST_CASE("training saves an LSTM's input, gates, memory and states") {
  const ModelSpec spec = load_model("layer-lstm").spec;
  WorkloadRequest request;
  request.phase = Phase::train;
  const Workload workload = resolve(request, spec);
  const Counted counted = count(spec, workload);
  // The input, four gates, c and h: 7 tensors of b·s·d.
  CHECK(collapsed(saved_bytes(counted.analysis, Recompute::none), counted.graph, workload) ==
        l * Integer{7 * 4} * b * s * d);
}
