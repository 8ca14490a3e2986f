// Weights of a rank: its parts of the tensors, and nothing else of them.
#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <set>

#include "checkpoint.h"
#include "headroom/model_source.h"
#include "headroom/parallel_plan.h"
#include "rank_context.h"
#include "support/data.h"
#include "weight_reader.h"
#include "weights.h"

using namespace headroom;
using namespace headroom::measured;

namespace {

/// Values that a rank reads from a model's files.
struct Read {
  std::size_t elements = 0;
  std::size_t largest = 0;  ///< elements of the largest tensor, or part of one, at once
};

/// Counts the values that pass through another reader.
class CountingReader final : public detail::WeightReader {
 public:
  CountingReader(std::unique_ptr<detail::WeightReader> files, Read& read)
      : files_(std::move(files)), read_(read) {}

  [[nodiscard]] std::optional<std::vector<std::int64_t>> shape(
      const std::string& name) const override {
    return files_->shape(name);
  }
  [[nodiscard]] std::vector<std::string> names() const override { return files_->names(); }
  [[nodiscard]] const std::string& location(const std::string& name) const override {
    return files_->location(name);
  }
  void read(const std::string& name, std::optional<std::int64_t> expert,
            std::span<float> out) const override {
    add(out.size());
    files_->read(name, expert, out);
  }
  void read_part(const std::string& name, std::optional<std::int64_t> expert, std::int64_t first,
                 std::span<float> out) const override {
    add(out.size());
    files_->read_part(name, expert, first, out);
  }
  void require_unchanged() const override { files_->require_unchanged(); }
  [[nodiscard]] detail::NameTable name_table(const ModelSpec& spec) const override {
    return files_->name_table(spec);
  }

 private:
  void add(std::size_t elements) const {
    read_.elements += elements;
    read_.largest = std::max(read_.largest, elements);
  }

  std::unique_ptr<detail::WeightReader> files_;
  Read& read_;
};

/// Tensor rank `rank` of `ranks`, without processes: loading weights needs none.
RankContext tensor_rank(std::int64_t ranks, std::int64_t rank) {
  RankContext context;
  ParallelPlan plan;
  plan.tensor = ranks;
  context.tensor = {ranks, rank};
  context.shard = [plan](const Graph& whole) { return shard(whole, plan); };
  return context;
}

std::filesystem::path folder_of(const std::string& model) {
  return test::data_folder() / "golden/models" / model;
}

struct Loaded {
  Read read;
  std::int64_t parameters = 0;
};

Loaded load(const std::string& model, const RankContext* rank) {
  const ModelSpec spec = load_model(folder_of(model).string()).spec;
  Loaded loaded;
  const auto source = stored_weights(
      spec, std::make_unique<CountingReader>(
                detail::read_checkpoint(checkpoint::Checkpoint(folder_of(model))), loaded.read));
  WeightOptions options;
  options.rank = rank;
  loaded.parameters = ModelWeights(spec, *source, options).parameters();
  return loaded;
}

/// A slice of every second dimension, which begins within it and may end in padding.
std::vector<WeightSlice> slices_of(const std::vector<std::int64_t>& shape, std::size_t odd) {
  std::vector<WeightSlice> slices;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const std::int64_t size = shape[i];
    const bool cuts = i % 2 == odd && size > 2;
    slices.push_back(cuts ? WeightSlice{size / 2, size - size / 2 + 1, size}
                          : WeightSlice{0, size, size});
  }
  return slices;
}

/// The part of `whole` that the slices select, element by element.
std::vector<float> part_of(const AlignedVector<float>& whole,
                           const std::vector<WeightSlice>& slices) {
  std::vector<float> part(elements_of(slices));
  for (std::size_t element = 0; element < part.size(); ++element) {
    std::size_t rest = element;
    std::size_t place = 0;
    std::size_t stride = 1;
    bool is_padding = false;
    for (auto slice = slices.rbegin(); slice != slices.rend(); ++slice) {
      const auto count = static_cast<std::size_t>(slice->count);
      const std::size_t index = static_cast<std::size_t>(slice->begin) + rest % count;
      is_padding = is_padding || index >= static_cast<std::size_t>(slice->whole);
      place += index * stride;
      stride *= static_cast<std::size_t>(slice->whole);
      rest /= count;
    }
    if (!is_padding) part[element] = whole[place];
  }
  return part;
}

std::vector<std::int64_t> shape_of(const Weight& weight, const Bindings& sizes) {
  std::vector<std::int64_t> shape;
  for (const Expr& size : weight.shape) {
    shape.push_back(static_cast<std::int64_t>(size.evaluate(sizes)));
  }
  return shape;
}

void check_parts(const Weight& weight, std::int64_t layer, const Bindings& sizes,
                 WeightSource& source) {
  const std::vector<std::int64_t> shape = shape_of(weight, sizes);
  const AlignedVector<float> whole = source.load(weight, shape, layer);
  for (const std::size_t odd : {std::size_t{0}, std::size_t{1}}) {
    const std::vector<WeightSlice> slices = slices_of(shape, odd);
    const AlignedVector<float> part = source.load_part(weight, shape, layer, slices);
    INFO(weight.path);
    CHECK(std::ranges::equal(part, part_of(whole, slices)));
  }
}

/// Checks every weight in the first layer that has it.
void check_parts(const Graph& graph, WeightSource& source) {
  std::set<WeightId> seen;
  for (const Block& block : graph.blocks) {
    for (const Node& node : block.nodes) {
      for (const WeightId id : node.weights) {
        if (!seen.insert(id).second) continue;
        check_parts(graph.weights[id], block.layer_of(node, 0), graph.sizes, source);
      }
    }
  }
}

}  // namespace

TEST_CASE("a part of a weight has the values of the whole, in files of every layout") {
  // Transposed tensors and stacked parts, stacked experts, a tensor for each expert, convolutions.
  for (const std::string model :
       {"gpt2", "afmoe", "llama4_images", "qwen3_next_dense_layers", "wav2vec2_frames"}) {
    CAPTURE(model);
    const ModelSpec spec = load_model(folder_of(model).string()).spec;
    const auto source = checkpoint_weights(spec, checkpoint::Checkpoint(folder_of(model)));
    check_parts(build_graph(spec, {}), *source);
  }
}

TEST_CASE("a part of a random weight has the numbers of the whole") {
  const auto source = random_weights(7);
  check_parts(build_graph(load_model(folder_of("gpt2").string()).spec, {}), *source);
}

TEST_CASE("a rank reads its own parts of the tensors and no others") {
  for (const std::string model : {"gpt2", "afmoe", "ministral3"}) {
    CAPTURE(model);
    const Loaded whole = load(model, nullptr);
    for (std::int64_t rank = 0; rank < 2; ++rank) {
      const RankContext context = tensor_rank(2, rank);
      const Loaded own = load(model, &context);
      // Biases that are added once are zero on the second rank; rows of padding are in no file.
      CHECK(std::cmp_less_equal(own.read.elements, own.parameters));
      CHECK(std::cmp_less(own.read.elements, whole.parameters * 6 / 10));
      CHECK(own.read.largest < whole.read.largest);
    }
  }
}
