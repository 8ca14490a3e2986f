// Element-wise FLOPs of a trained temperature of queries (Mistral Large 4), counted while a plain
// loop computes it.
#include <vector>

#include "headroom/analysis.h"
#include "op_cost.h"
#include "support/data.h"

namespace headroom::test {
namespace {

/// A number that counts the additions and multiplications that made it.
class CountedNumber {
 public:
  CountedNumber(double value) : value_(value) {}  // NOLINT(google-explicit-constructor)
  CountedNumber operator+(CountedNumber other) const { return counted(value_ + other.value_); }
  CountedNumber operator*(CountedNumber other) const { return counted(value_ * other.value_); }
  [[nodiscard]] double value() const { return value_; }
  static std::int64_t count;

 private:
  static CountedNumber counted(double value) {
    ++count;
    return {value};
  }
  double value_;
};
std::int64_t CountedNumber::count = 0;

constexpr std::int64_t kTokens = 5;
constexpr std::int64_t kHeads = 3;
constexpr std::int64_t kDim = 4;

struct Gradients {
  std::vector<CountedNumber> queries;
  std::vector<CountedNumber> scale;
  std::vector<CountedNumber> bias;
};

/// query · (scale[h] · log(position + 1) + bias[h]), as in MistralLarge4's class.
std::vector<CountedNumber> scaled(const std::vector<CountedNumber>& queries,
                                  const std::vector<double>& logs) {
  std::vector<CountedNumber> result;
  for (std::int64_t token = 0; token < kTokens; ++token) {
    for (std::int64_t head = 0; head < kHeads; ++head) {
      const CountedNumber factor =
          CountedNumber(0.5) * logs[static_cast<std::size_t>(token)] + CountedNumber(1);
      for (std::int64_t i = 0; i < kDim; ++i) {
        const auto at = static_cast<std::size_t>((token * kHeads + head) * kDim + i);
        result.push_back(queries[at] * factor);
      }
    }
  }
  return result;
}

/// Gradients of the sum of all results: each result's gradient is 1, but not known to be.
Gradients gradients(const std::vector<CountedNumber>& queries, const std::vector<double>& logs) {
  const CountedNumber one(1);
  Gradients all{{}, std::vector<CountedNumber>(kHeads, 0), std::vector<CountedNumber>(kHeads, 0)};
  for (std::int64_t token = 0; token < kTokens; ++token) {
    const double log = logs[static_cast<std::size_t>(token)];
    for (std::int64_t head = 0; head < kHeads; ++head) {
      CountedNumber of_factor(0);
      for (std::int64_t i = 0; i < kDim; ++i) {
        const auto at = static_cast<std::size_t>((token * kHeads + head) * kDim + i);
        all.queries.push_back(one * CountedNumber(0.5 * log + 1));  // the factor, kept
        of_factor = of_factor + one * queries[at];
      }
      const auto row = static_cast<std::size_t>(head);
      all.scale[row] = all.scale[row] + of_factor * CountedNumber(log);
      all.bias[row] = all.bias[row] + of_factor;
    }
  }
  return all;
}

Integer counted_since(std::int64_t before) { return CountedNumber::count - before; }

}  // namespace

TEST_CASE("a trained temperature costs what a loop over its queries computes") {
  std::vector<CountedNumber> queries;
  for (std::int64_t i = 0; i < kTokens * kHeads * kDim; ++i) {
    queries.emplace_back(static_cast<double>(i % 7) - 3);
  }
  const std::vector<double> logs{0, 0.7, 1.1, 1.4, 1.6};
  const HeadRows heads{
      Integer{kTokens}, Integer{kHeads * kDim}, {}, Integer{kHeads}, Integer{kDim}};
  const TemperatureScale op{heads, Integer{kTokens}, {0, 0, TemperatureTuning::From::of_heads}};
  const auto flops = detail::elementwise_flops(op);

  std::int64_t before = CountedNumber::count;
  const std::vector<CountedNumber> results = scaled(queries, logs);
  CHECK(flops.forward == Expr(counted_since(before)));
  before = CountedNumber::count;
  const Gradients own = gradients(queries, logs);
  CHECK(flops.backward == Expr(counted_since(before)));

  // The loops do differentiate each other: a step of a scale changes the sum by its gradient.
  double changed = 0;
  for (std::int64_t token = 0; token < kTokens; ++token) {
    for (std::int64_t i = 0; i < kDim; ++i) {
      changed += queries[static_cast<std::size_t>(token * kHeads * kDim + i)].value() *
                 logs[static_cast<std::size_t>(token)];
    }
  }
  CHECK(own.scale[0].value() == doctest::Approx(changed));
  CHECK(results[kHeads * kDim].value() ==
        doctest::Approx(queries[kHeads * kDim].value() * own.queries[kHeads * kDim].value()));
}

// torch keeps for the backward pass of MistralLarge4TextSoftmaxScaling (transformers 5.24, 2
// sequences of 5 tokens, 3 heads of 4): queries [2, 3, 5, 4], factors [1, 3, 5, 1], and the
// logarithms [1, 1, 5], which all layers could share and are not counted.
TEST_CASE("a trained temperature saves the queries before it and its factors") {
  const ModelSpec spec =
      spec_of(read_json(data_folder() / "towers/tiny/mistral_large4.config.json"));
  Workload workload;
  workload.phase = Phase::train;
  workload.batch_size = 2;
  workload.seq_len = 5;
  workload.dtype = DType::float32;
  const Graph graph = build_graph(spec, graph_options(workload));
  Bindings values = bindings_of(workload, graph);
  Integer bytes = 0;
  for (const SavedTensor& saved : analyze(graph).saved) {
    if (saved.path.find("temperature") == std::string::npos) continue;
    bytes += (saved.bytes * saved.repeat).evaluate(values);
  }
  // Of five layers, each has 4 heads of 12 numbers, and an indexer's 3 heads of 8.
  const Integer queries = 2 * 5 * (4 * 12 + 3 * 8);
  const Integer factors = 5 * (4 + 3);
  CHECK(bytes == 5 * 4 * (queries + factors));
}

}  // namespace headroom::test
