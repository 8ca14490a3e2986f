// The GEMMs of BERT-base's forward pass alone, on oneDNN called directly: the reference for the
// fraction of a library's rate that a whole pass reaches. Every layer has its own weights, packed
// as oneDNN asks, so that they come from memory as in a model. Prints one JSON object.
//   g++ -std=c++20 -O3 -march=native -fopenmp -I src/measured/kernels library_gemms.cpp -ldnnl
//   usage: library_gemms ROWS THREADS RUNS
#include <omp.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

#include "onednn_api.h"

namespace {

using dnnl::inner_product_forward;
using dnnl::memory;

constexpr int kLayers = 12;

struct Shape {
  memory::dim in;
  memory::dim out;
};
constexpr Shape kShapes[] = {{768, 2304}, {768, 768}, {768, 3072}, {3072, 768}};

memory random_memory(const memory::desc& desc, const dnnl::engine& engine) {
  static std::minstd_rand generator(1);
  std::uniform_real_distribution<float> uniform(-1.0F, 1.0F);
  memory result(desc, engine);
  auto* const values = static_cast<float*>(result.get_data_handle());
  std::generate_n(values, desc.get_size() / sizeof(float), [&] { return uniform(generator); });
  return result;
}

memory::desc plain(memory::dim rows, memory::dim columns) {
  return {{rows, columns}, memory::data_type::f32, memory::format_tag::ab};
}

/// y [rows, out] = x [rows, in] · Wᵀ + b of every layer.
class Gemm {
 public:
  Gemm(Shape shape, memory::dim rows, const dnnl::engine& engine, dnnl::stream& stream)
      : x_(random_memory(plain(rows, shape.in), engine)),
        y_(random_memory(plain(rows, shape.out), engine)),
        bias_(random_memory({{shape.out}, memory::data_type::f32, memory::format_tag::a}, engine)) {
    const memory::desc any{{shape.out, shape.in}, memory::data_type::f32, memory::format_tag::any};
    const auto description = headroom::measured::onednn::describe<inner_product_forward>(
        engine, {}, dnnl::prop_kind::forward_inference, x_.get_desc(), any, bias_.get_desc(),
        y_.get_desc());
    forward_ = inner_product_forward(description);
    for (int layer = 0; layer < kLayers; ++layer) {
      memory given = random_memory(plain(shape.out, shape.in), engine);
      memory packed(description.weights_desc(), engine);
      dnnl::reorder(given, packed).execute(stream, given, packed);
      weights_.push_back(packed);
    }
    stream.wait();
  }

  void run(int layer, dnnl::stream& stream) {
    forward_.execute(stream, {{DNNL_ARG_SRC, x_},
                              {DNNL_ARG_WEIGHTS, weights_[static_cast<std::size_t>(layer)]},
                              {DNNL_ARG_BIAS, bias_},
                              {DNNL_ARG_DST, y_}});
  }

 private:
  memory x_;
  memory y_;
  memory bias_;
  inner_product_forward forward_;
  std::vector<memory> weights_;
};

}  // namespace

int main(int count, char** arguments) {
  if (count != 4) return 2;
  const memory::dim rows = std::atoi(arguments[1]);
  omp_set_num_threads(std::atoi(arguments[2]));
  const int runs = std::atoi(arguments[3]);
  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  dnnl::stream stream(engine);
  std::vector<Gemm> gemms;
  double flops = 0;
  for (const Shape shape : kShapes) {
    gemms.emplace_back(shape, rows, engine, stream);
    flops += 2.0 * kLayers * static_cast<double>(rows * shape.in * shape.out);
  }
  std::vector<double> seconds;
  for (int run = 0; run <= runs; ++run) {
    const auto start = std::chrono::steady_clock::now();
    for (int layer = 0; layer < kLayers; ++layer) {
      for (Gemm& gemm : gemms) gemm.run(layer, stream);
    }
    stream.wait();
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    if (run > 0) seconds.push_back(taken.count());
  }
  std::sort(seconds.begin(), seconds.end());
  std::printf("{\"matrix_flops\": %.0f, \"median_s\": %.6f, \"min_s\": %.6f}\n", flops,
              seconds[seconds.size() / 2], seconds.front());
  return 0;
}
