// Speed of the kernels: matrix products of the backends against each other, weight streams against
// the bandwidth of a plain read. A benchmark, not a test: prints the best of several interleaved
// rounds and checks nothing.
#include <fmt/format.h>
#include <omp.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "aligned.h"
#include "attention.h"
#include "elementwise.h"
#include "gemm.h"
#include "normalize.h"
#include "plain_read.h"

namespace {

using namespace headroom;
using namespace headroom::measured;
using Clock = std::chrono::steady_clock;
using Calls = std::vector<std::function<void()>>;

/// Keeps a result alive, so that the compiler cannot drop its computation.
volatile float g_sink = 0;

/// Minimum seconds of each call, over rounds that run every call once.
std::vector<double> min_seconds(int rounds, const Calls& calls) {
  std::vector<double> fastest(calls.size(), 1e30);
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < calls.size(); ++i) {
      const auto start = Clock::now();
      calls[i]();
      const std::chrono::duration<double> taken = Clock::now() - start;
      fastest[i] = std::min(fastest[i], taken.count());
    }
  }
  return fastest;
}

AlignedVector<float> random_floats(std::int64_t count) {
  static std::minstd_rand generator(1);
  std::uniform_real_distribution<float> uniform(-1.0F, 1.0F);
  AlignedVector<float> values(static_cast<std::size_t>(count));
  for (float& value : values) value = uniform(generator);
  return values;
}

struct Shape {
  std::int64_t out;
  std::int64_t in;
};

void bench_linear(Shape shape, std::int64_t rows) {
  const AlignedVector<float> weight = random_floats(shape.out * shape.in);
  const AlignedVector<float> bias = random_floats(shape.out);
  const AlignedVector<float> x = random_floats(rows * shape.in);
  AlignedVector<float> y = random_floats(rows * shape.out);
  const std::array parts{LinearPart{weight, bias}};
  Calls calls;
  for (const Backend backend : {Backend::eigen, Backend::onednn}) {
    if (!is_available(backend)) continue;
    const auto linear = std::make_shared<PackedLinear>(
        parts, shape.in,
        LinearOptions{.backend = backend, .rows = RowRange::many, .typical_rows = rows});
    linear->prepare(rows);
    calls.emplace_back([&, linear] { linear->run(x.data(), y.data(), rows); });
  }
  std::string line = fmt::format("linear {:>4} x {:>4} -> {:>4}", rows, shape.in, shape.out);
  const double flops = 2.0 * static_cast<double>(rows * shape.in * shape.out);
  for (const double seconds : min_seconds(12, calls)) {
    line += fmt::format(" {:>8.1f}", flops / seconds * 1e-9);
  }
  fmt::print("{}\n", line);
}

void bench_linears() {
  fmt::print("\nGFLOP/s                            eigen   onednn\n");
  for (const std::int64_t rows : {128, 512, 1024}) {
    for (const Shape shape : {Shape{2304, 768}, {768, 768}, {3072, 768}, {768, 3072}}) {
      bench_linear(shape, rows);
    }
  }
}

void bench_streams() {
  constexpr Shape shape{28672, 4096};
  constexpr double kBytes = 4.0 * shape.out * shape.in;
  const AlignedVector<float> weight = random_floats(shape.out * shape.in);
  const std::array parts{LinearPart{weight, {}}};
  const AlignedVector<float> x = random_floats(8 * shape.in);
  AlignedVector<float> y = random_floats(8 * shape.out);
  PackedLinear wide(parts, shape.in, {.rows = RowRange::few});
  PackedLinear narrow(parts, shape.in,
                      {.rows = RowRange::few, .storage = measured::HeldType::bfloat16});
  const Backend backend = is_available(Backend::onednn) ? Backend::onednn : Backend::eigen;
  PackedLinear shared(parts, shape.in, {.backend = backend});
  fmt::print("\nGB/s of {:.0f} MB of weights    read  float32    shared  bfloat16\n",
             kBytes * 1e-6);
  for (const std::int64_t rows : {1, 2, 4, 8}) {
    const std::vector<double> seconds =
        min_seconds(12, {[&] { g_sink = headroom::bench::read_all(weight); },
                         [&] { wide.run(x.data(), y.data(), rows); },
                         [&] { shared.run(x.data(), y.data(), rows); },
                         [&] { narrow.run(x.data(), y.data(), rows); }});
    fmt::print("stream {} rows {:>21.1f} {:>8.1f} {:>9.1f} {:>9.1f}\n", rows,
               kBytes / seconds[0] * 1e-9, kBytes / seconds[1] * 1e-9, kBytes / seconds[2] * 1e-9,
               kBytes / 2 / seconds[3] * 1e-9);
  }
}

/// A call, with the bytes that it reads and writes per element of its array.
struct ElementwiseCall {
  const char* name;
  double bytes;
  std::function<void()> call;
};

void bench_elementwise(std::int64_t count) {
  constexpr std::int64_t kWidth = 768;
  AlignedVector<float> x = random_floats(count);
  AlignedVector<float> r = random_floats(count);
  const AlignedVector<float> weight = random_floats(kWidth);
  const NormArguments norm{count / kWidth, kWidth, weight.data(), weight.data(), 1e-5F};
  const auto activation = [&](ActivationKind kind) {
    return [&x, kind, count] { activate(kind, x.data(), count); };
  };
  const std::vector<ElementwiseCall> elementwise{
      {"memcpy", 8, [&] { std::memcpy(r.data(), x.data(), x.size() * sizeof(float)); }},
      {"scale", 8, [&] { scale(x.data(), -1.0F, count); }},
      {"add_residual", 12, [&] { add_residual(x.data(), r.data(), count); }},
      {"relu", 8, activation(ActivationKind::relu)},
      {"gelu", 8, activation(ActivationKind::gelu)},
      {"gelu_tanh", 8, activation(ActivationKind::gelu_tanh)},
      {"silu", 8, activation(ActivationKind::silu)},
      {"tanh", 8, activation(ActivationKind::tanh)},
      {"silu gated", 6,
       [&] { activate_gated(ActivationKind::silu, x.data(), r.data(), 1, count / 2); }},
      {"layer_norm", 8, [&] { layer_norm(norm, x.data(), x.data()); }},
      {"rms_norm", 8, [&] { rms_norm(norm, x.data(), x.data()); }},
      {"add_layer_norm", 16, [&] { add_layer_norm(norm, x.data(), r.data(), r.data()); }}};
  Calls calls;
  for (const ElementwiseCall& one : elementwise) calls.push_back(one.call);
  const std::vector<double> seconds = min_seconds(12, calls);
  fmt::print("\nGB/s of {:.1f} MB\n", 4e-6 * static_cast<double>(count));
  for (std::size_t i = 0; i < elementwise.size(); ++i) {
    const double bytes = elementwise[i].bytes * static_cast<double>(count);
    fmt::print("{:<24} {:>8.1f}\n", elementwise[i].name, bytes / seconds[i] * 1e-9);
  }
}

struct AttentionShape {
  std::int64_t batch;
  std::int64_t heads;
  std::int64_t kv_heads;
  std::int64_t head_dim;
  std::int64_t queries;
  std::int64_t keys;
  bool causal;
};

AttentionArguments arguments_of(const AttentionShape& shape) {
  AttentionArguments args;
  args.batch = shape.batch;
  args.heads = shape.heads;
  args.kv_heads = shape.kv_heads;
  args.head_dim = args.value_head_dim = shape.head_dim;
  args.queries = shape.queries;
  args.keys = shape.keys;
  args.q_stride = args.out_stride = shape.heads * shape.head_dim;
  args.q_batch_stride = args.out_batch_stride = shape.queries * args.q_stride;
  // As in a KV-cache, head by head.
  args.k_stride = args.v_stride = shape.head_dim;
  args.k_head_stride = args.v_head_stride = shape.keys * shape.head_dim;
  args.k_batch_stride = args.v_batch_stride = shape.kv_heads * args.k_head_stride;
  args.scale = 0.125F;
  args.causal = shape.causal;
  args.past = shape.keys - shape.queries;
  return args;
}

void bench_attention(const AttentionShape& shape) {
  AttentionArguments args = arguments_of(shape);
  const AlignedVector<float> q = random_floats(args.batch * args.q_batch_stride);
  const AlignedVector<float> k = random_floats(args.batch * args.k_batch_stride);
  const AlignedVector<float> v = random_floats(args.batch * args.v_batch_stride);
  AlignedVector<float> out = random_floats(args.batch * args.out_batch_stride);
  AlignedVector<float> scores = random_floats(args.batch * args.heads * args.queries * args.keys);
  AlignedVector<float> scratch =
      random_floats(fused_attention_scratch_floats(args, omp_get_max_threads()));
  args.q = q.data();
  args.k = k.data();
  args.v = v.data();
  args.out = out.data();
  const std::vector<double> seconds =
      min_seconds(8, {[&] { attention_scores(args, scores.data()); },
                      [&] { attention_softmax(args, scores.data()); },
                      [&] { attention_context(args, scores.data()); },
                      [&] { fused_attention(args, scratch.data()); }});
  const auto flops = static_cast<double>(fused_attention(args, scratch.data()));
  fmt::print(
      "{}x{}/{}x{} {:>4} queries {:>4} keys {:<6} {:>9.1f} {:>9.1f} {:>9.1f} {:>9.1f} {:>8.1f}\n",
      shape.batch, shape.heads, shape.kv_heads, shape.head_dim, shape.queries, shape.keys,
      shape.causal ? "causal" : "", seconds[0] * 1e6, seconds[1] * 1e6, seconds[2] * 1e6,
      seconds[3] * 1e6, flops / seconds[3] * 1e-9);
}

void bench_attentions() {
  fmt::print(
      "\nattention, us                               scores   softmax   context     fused  "
      "GFLOP/s\n");
  bench_attention({1, 12, 12, 64, 128, 128, false});
  bench_attention({8, 12, 12, 64, 128, 128, false});
  bench_attention({1, 12, 12, 64, 512, 512, false});
  bench_attention({1, 12, 12, 64, 2048, 2048, true});
  bench_attention({1, 12, 12, 64, 1, 2048, true});
  bench_attention({1, 32, 8, 128, 1, 8192, true});
}

}  // namespace

int main() {
  for (const int threads : {1, 2}) {
    omp_set_num_threads(threads);
    fmt::print("\n--- threads: {}\n", threads);
    bench_linears();
    bench_streams();
    bench_elementwise(std::int64_t{768} * 512);
    bench_elementwise(std::int64_t{768} * 65536);
    bench_attentions();
  }
  return 0;
}
