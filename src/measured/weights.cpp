#include "weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <span>

#include "headroom/error.h"
#include "headroom/expr.h"
#include "interruption.h"
#include "kernels/bfloat16.h"
#include "kernels/convolution.h"
#include "kernels/source_rows.h"
#include "rank_weights.h"
#include "visit.h"
#include "weight_layout.h"

namespace headroom::measured {
namespace {

/// Name of the type that kernels without blocks read.
constexpr std::string_view kFloat32 = "F32";

template <class Map>
auto& at(const Map& map, const std::string& path, std::int64_t layer) {
  const auto found = map.find({path, layer});
  if (found == map.end()) {
    throw Error(ErrorCode::internal, fmt::format("the weight {} was not loaded", path));
  }
  return found->second;
}

}  // namespace

/// Number of groups of a convolution's channels.
Expr groups_of(const Convolution& op, const Bindings& sizes) {
  return Integer{op.in_channels.evaluate(sizes) / op.group_channels.evaluate(sizes)};
}

std::optional<Projection> projection_of(const Node& node, const Bindings& sizes) {
  using Result = std::optional<Projection>;
  const std::size_t all = node.weights.size();
  return std::visit(
      Overloaded{
          [&](const Linear& op) -> Result {
            return Projection{all, op.in_features};
          },
          [&](const ExpertLinear& op) -> Result {
            return Projection{all, op.in_features, op.num_experts};
          },
          [&](const Convolution& op) -> Result {
            const std::size_t packed = op.bias ? 2 : 1;
            if (!op.is_grouped()) return Projection{packed, op.in_channels, Integer{1}, op.kernel};
            return Projection{packed, op.group_channels * op.kernel, groups_of(op, sizes)};
          },
          [&](const Recurrence& op) -> Result {
            return Projection{all, op.width, Integer{1}, Integer{1}, true};
          },
          [&](const GroupedLinear& op) -> Result {
            return Projection{all, op.in_features, op.groups};
          },
          [](const GridConvolution& op) -> Result {
            return Projection{op.bias ? std::size_t{2} : std::size_t{1}, Integer{op.inputs()}};
          },
          [](const PatchEmbedding& op) -> Result {
            return Projection{op.bias ? std::size_t{2} : std::size_t{1}, op.patch_elements};
          },
          [](const OneOf<
              TokenEmbedding, PositionEmbedding, PatchRows, VisualTokens, RelativePositionBias,
              PositionTableRows, DisentangledBias, RelativeSinusoids, TransformerXlBias,
              GatedPositionBias, LocalAttention, Norm, HeadNorm, Rotary, Clamp, TemperatureScale,
              LatentConcat, HeadLinear, KeyCompression, IndexScores, KeySelect, PoolTokens,
              StreamWeights, StreamStep, KvCacheAppend, AttentionScores, Softmax, AttentionContext,
              FusedAttention, GlobalRows, FeatureMap, LinearAttention, ShortConvolution,
              StateSpaceScan, GatedDelta, GatedLinearRecurrence, TokenShift, TokenMix, ValueBonus,
              WeightedKeyValue, Concatenate, OutputGate, Activation, GatedActivation, RouterSelect,
              ExpertCombine, RowGate, ResidualAdd, ChannelScale, Dropout, SelectToken, UnitLength,
              RepeatedRow, SimilarityLogits, Scale, AltUpStep, TrainedScale, TimestepFeatures,
              TrainedShift, Modulation, SequenceRows, SoftCap, CrossEntropy, Collective> auto&)
              -> Result { return std::nullopt; }},
      node.op);
}

namespace {

/// Paths of the weights of `graph` that nodes with an `Op` read.
template <class Op>
void add_paths_of(const Graph& graph, std::set<std::string>& paths) {
  for (const Block& block : graph.blocks) {
    for (const Node& node : block.nodes) {
      if (!std::holds_alternative<Op>(node.op)) continue;
      for (const WeightId id : node.weights) paths.insert(graph.weights[id].path);
    }
  }
}

}  // namespace

std::set<std::string> also_unpacked(const ModelSpec& spec, const Graph& prefill) {
  std::set<std::string> paths;
  add_paths_of<DisentangledBias>(prefill, paths);
  if (spec.main_stack().self_attention.latent) {
    add_paths_of<HeadLinear>(build_graph(spec, {Phase::decode}), paths);
  }
  return paths;
}

/// Number of the first weights of `node` that kernels can read in blocks, with the biases between.
std::size_t weights_read_in_blocks(const Node& node) {
  const bool multiplies =
      std::holds_alternative<Linear>(node.op) || std::holds_alternative<ExpertLinear>(node.op);
  if (multiplies) return node.weights.size();
  return std::holds_alternative<TokenEmbedding>(node.op) ? 1 : 0;
}

/// Weights of one operator in one layer.
struct ModelWeights::Job {
  const Node* node = nullptr;
  std::int64_t layer = 0;
  Integer elements;
};

ModelWeights::ModelWeights(const ModelSpec& spec, WeightSource& source,
                           const WeightOptions& options)
    : options_(options), graph_(build_graph(spec, all_parts())) {
  if (options.rank == nullptr) {
    load_all(spec, source);
    return;
  }
  const Graph whole = std::exchange(graph_, options.rank->shard(graph_));
  require_rank_runs(graph_, *options.rank);
  load_all(spec, *rank_weights(whole, *options.rank, source));
}

void ModelWeights::load_all(const ModelSpec& spec, WeightSource& source) {
  find_unpacked_weights();
  also_unpacked_ = also_unpacked(spec, graph_);
  for (const Job& job : jobs()) {
    headroom::detail::throw_if_interrupted();
    load_weights(*job.node, job.layer, source);
    if (std::holds_alternative<TokenEmbedding>(job.node->op)) narrow_table(*job.node);
    if (!projection_of(*job.node, graph_.sizes)) continue;
    pack(*job.node, job.layer);
    drop_packed_values(*job.node, job.layer);
  }
  keep_stored_tables();
  load_unread(spec, source);
  source.finish();
}

void ModelWeights::load_unread(const ModelSpec& spec, WeightSource& source) {
  const bool has_them = options_.rank == nullptr || options_.rank->pipeline.is_first();
  if (!has_them) return;
  const std::size_t first = graph_.weights.size() - spec.counted_only.size();
  for (std::size_t i = 0; i < spec.counted_only.size(); ++i) {
    if (!is_loaded(spec.counted_only[i].use)) continue;
    for (std::int64_t layer = 0; layer < spec.counted_only[i].repeat; ++layer) {
      load(graph_.weights[first + i], layer, source);
    }
  }
}

void ModelWeights::find_unpacked_weights() {
  for (const Block& block : graph_.blocks) {
    for (const Node& node : block.nodes) {
      const auto projection = projection_of(node, graph_.sizes);
      const std::size_t packed = projection ? projection->weights : 0;
      read_unpacked_.insert(node.weights.begin() + static_cast<std::ptrdiff_t>(packed),
                            node.weights.end());
      const auto stored = static_cast<std::ptrdiff_t>(weights_read_in_blocks(node));
      read_as_floats_.insert(node.weights.begin() + stored, node.weights.end());
    }
  }
}

/// Packs the largest first. Packing needs a temporary copy; the small layers, packed later, use
/// more than the copy of the largest, so that copy does not raise the peak.
std::vector<ModelWeights::Job> ModelWeights::jobs() const {
  std::vector<Job> jobs;
  for (const Block& block : graph_.blocks) {
    const std::int64_t runs = block.repeat.evaluate_int64(graph_.sizes);
    for (const Node& node : block.nodes) {
      Integer elements = 0;
      for (const WeightId id : node.weights) {
        elements += graph_.weights[id].elements().evaluate(graph_.sizes);
      }
      for (std::int64_t run = 0; run < runs; ++run) {
        jobs.push_back({&node, block.weights_of(node, run), elements});
      }
    }
  }
  std::ranges::stable_sort(jobs, std::ranges::greater{}, &Job::elements);
  return jobs;
}

std::vector<std::int64_t> ModelWeights::shape_of(const Weight& weight) const {
  std::vector<std::int64_t> shape;
  for (const Expr& size : weight.shape) shape.push_back(size.evaluate_int64(graph_.sizes));
  return shape;
}

void ModelWeights::load(const Weight& weight, std::int64_t layer, WeightSource& source) {
  if (!loaded_.insert({weight.path, layer}).second) return;  // tied, already loaded
  AlignedVector<float> values = source.load(weight, shape_of(weight), layer);
  std::int64_t stored_bytes = sizeof(float);
  switch (options_.storage) {
    case HeldType::float32:
    case HeldType::stored:
      break;
    case HeldType::bfloat16:
      std::ranges::transform(values, values.begin(), round_to_bfloat16);
      stored_bytes = sizeof(std::uint16_t);
      break;
  }
  const auto elements = static_cast<std::int64_t>(values.size());
  std::string name;
  if (options_.storage == HeldType::stored) {
    name = source.type_of(weight, shape_of(weight), layer).name;
  }
  if (name.empty()) name = kFloat32;
  const std::int64_t bytes = elements * stored_bytes;
  std::optional<std::int64_t> in_files;
  if (options_.storage == HeldType::stored) in_files = source.count_file_bytes(weight, layer);
  count(weight, {std::move(name), std::string(kFloat32), elements, bytes},
        in_files.value_or(bytes));
  values_[{weight.path, layer}] = std::move(values);
}

void ModelWeights::pack(const Node& node, std::int64_t layer) {
  const Projection projection = projection_of(node, graph_.sizes).value();
  auto& packed = linears_[{graph_.weights[node.weights.front()].path, layer}];
  if (!packed.empty()) return;  // packed for another layer that shares it
  const Key first{graph_.weights[node.weights.front()].path, layer};
  if (blocks_.contains(first)) return pack_blocks(node, layer);
  if (groups_.contains(first)) return pack_groups(node, layer);
  normalise_weight(node, layer);
  const bool in_head = node.component.part == Part::head;
  RowRange rows = in_head ? options_.head_rows.value_or(options_.rows) : options_.rows;
  if (projection.few_rows) rows = RowRange::few;
  const LinearOptions packing{options_.backend,      Epilogue::none,   rows,
                              options_.typical_rows, options_.storage, options_.activations};
  const std::int64_t taps = projection.taps.evaluate_int64(graph_.sizes);
  if (taps > 1) {
    packed = pack_taps(node, layer, taps, packing);
    return;
  }
  const auto experts = static_cast<std::size_t>(projection.experts.evaluate_int64(graph_.sizes));
  for (std::size_t expert = 0; expert < experts; ++expert) {
    std::vector<LinearPart> parts;
    for (std::size_t i = 0; i < projection.weights; ++i) {
      const Weight& weight = graph_.weights[node.weights[i]];
      const AlignedVector<float>& values = at(values_, weight.path, layer);
      const std::size_t size = values.size() / experts;
      const std::span<const float> own = std::span(values).subspan(expert * size, size);
      if (weight.path.ends_with(".bias")) {
        parts.back().bias = own;
      } else {
        parts.push_back({own, {}, source_of(node, i, packing)});
      }
    }
    packed.push_back(std::make_unique<PackedLinear>(
        parts, projection.in_features.evaluate_int64(graph_.sizes), packing));
  }
}

SourceMemory ModelWeights::source_of(const Node& node, std::size_t index,
                                     const LinearOptions& packing) const {
  const WeightId id = node.weights[index];
  const Projection projection = projection_of(node, graph_.sizes).value();
  const bool is_tied = read_unpacked_.contains(id);
  const bool alone = index == 0 && projection.experts.evaluate(graph_.sizes) == 1;
  const bool stays = also_unpacked_.contains(graph_.weights[id].path) ||
                     (is_tied && !(alone && returns_rows(packing)));
  return stays ? SourceMemory::kept : SourceMemory::released;
}

/// Replaces the stored direction of a convolution's weight by the weight.
void ModelWeights::normalise_weight(const Node& node, std::int64_t layer) {
  const auto* const op = std::get_if<Convolution>(&node.op);
  if (op == nullptr || op->weight == ConvolutionWeight::plain) return;
  AlignedVector<float>& direction = values_.at({graph_.weights[node.weights.front()].path, layer});
  normalise_taps(op->kernel.evaluate_int64(graph_.sizes),
                 values(graph_.weights[node.weights.back()].path, layer), direction);
}

/// Packs a convolution's weight [out, in, taps] as one linear layer per tap. The first adds the
/// bias; the others add to the output.
std::vector<std::unique_ptr<PackedLinear>> ModelWeights::pack_taps(const Node& node,
                                                                   std::int64_t layer,
                                                                   std::int64_t taps,
                                                                   LinearOptions packing) const {
  const Weight& weight = graph_.weights[node.weights.front()];
  const AlignedVector<float>& values = at(values_, weight.path, layer);
  const std::int64_t in = shape_of(weight)[1];
  std::span<const float> bias;
  if (node.weights.size() > 1) bias = at(values_, graph_.weights[node.weights[1]].path, layer);
  std::vector<std::unique_ptr<PackedLinear>> packed;
  std::vector<float> own(values.size() / static_cast<std::size_t>(taps));
  for (std::int64_t tap = 0; tap < taps; ++tap) {
    for (std::size_t i = 0; i < own.size(); ++i) {
      own[i] = values[i * static_cast<std::size_t>(taps) + static_cast<std::size_t>(tap)];
    }
    const LinearPart part{own, bias};
    packed.push_back(std::make_unique<PackedLinear>(std::span(&part, 1), in, packing));
    packing.epilogue = Epilogue::add_residual;
    bias = {};
  }
  return packed;
}

/// Frees values that the packed layer can return, or that nothing else reads.
void ModelWeights::drop_packed_values(const Node& node, std::int64_t layer) {
  for (const WeightId id : node.weights) {
    const Key key{graph_.weights[id].path, layer};
    const auto values = values_.find(key);
    if (values == values_.end() || also_unpacked_.contains(key.first)) continue;
    const auto packed = linears_.find(key);
    const bool packed_is_readable = packed != linears_.end() && packed->second.size() == 1 &&
                                    packed->second.front()->read_row(0, values->second.data());
    if (packed_is_readable || !read_unpacked_.contains(id)) values_.erase(values);
  }
}

/// Narrows an embedding table that is tied to no linear layer to its storage type.
void ModelWeights::narrow_table(const Node& embedding) {
  const WeightId table = embedding.weights.front();
  const std::string& path = graph_.weights[table].path;
  const auto values = values_.find({path, 0});
  if (options_.storage != HeldType::bfloat16 || values == values_.end()) return;
  for (const Block& block : graph_.blocks) {
    for (const Node& node : block.nodes) {
      const bool tied = std::ranges::find(node.weights, table) != node.weights.end();
      if (tied && projection_of(node, graph_.sizes)) return;
    }
  }
  UnfilledVector<std::uint16_t>& narrow = bfloat16_tables_[path];
  const std::span<const float> wide(values->second);
  narrow.resize(wide.size());
  for_source_rows(std::as_bytes(wide), SourceMemory::released, std::ssize(wide), 1,
                  [&](Range some) {
                    std::transform(wide.begin() + some.begin, wide.begin() + some.end,
                                   narrow.begin() + some.begin, bfloat16_bits);
                  });
  values_.erase(values);
}

RowReader ModelWeights::word_rows(const std::string& path) const {
  const auto width = [&](std::size_t size) {
    const auto weight = std::ranges::find(graph_.weights, path, &Weight::path);
    return static_cast<std::int64_t>(size) / shape_of(*weight).front();
  };
  if (const auto table = values_.find({path, 0}); table != values_.end()) {
    return [data = table->second.data(), columns = width(table->second.size())](
               std::int64_t row, float* to) { std::copy_n(data + row * columns, columns, to); };
  }
  if (const auto table = bfloat16_tables_.find(path); table != bfloat16_tables_.end()) {
    return [data = table->second.data(), columns = width(table->second.size())](std::int64_t row,
                                                                                float* to) {
      std::transform(data + row * columns, data + (row + 1) * columns, to,
                     [](std::uint16_t bits) { return float_of_bfloat16(bits); });
    };
  }
  if (const auto table = stored_tables_.find(path); table != stored_tables_.end()) {
    return
        [&matrix = *table->second](std::int64_t row, float* to) { (void)matrix.read_row(row, to); };
  }
  return [&layer = linear(path, 0)](std::int64_t row, float* to) { (void)layer.read_row(row, to); };
}

std::int64_t ModelWeights::held_bytes() const {
  std::int64_t bytes = 0;
  for (const auto& [key, values] : values_) {
    bytes += static_cast<std::int64_t>(values.size() * sizeof(float));
  }
  for (const auto& [path, table] : bfloat16_tables_) {
    bytes += static_cast<std::int64_t>(table.size() * sizeof(std::uint16_t));
  }
  for (const auto& [path, table] : stored_tables_) bytes += table->held_bytes();
  for (const auto& [key, experts] : linears_) {
    for (const auto& linear : experts) bytes += linear->held_bytes();
  }
  return bytes;
}

PackedLinear& ModelWeights::linear(const std::string& path, std::int64_t layer,
                                   std::int64_t expert) const {
  return *at(linears_, path, layer).at(static_cast<std::size_t>(expert));
}

const float* ModelWeights::values(const std::string& path, std::int64_t layer) const {
  return at(values_, path, layer).data();
}

}  // namespace headroom::measured
