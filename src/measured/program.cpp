#include "program.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <set>
#include <span>

#include "clock.h"
#include "headroom/expr.h"
#include "headroom/workload.h"
#include "interruption.h"
#include "kernels/cache_line.h"
#include "run_memory.h"
#include "step_builder.h"

namespace headroom::measured {
Bindings sizes_of_steps(const Graph& graph, const Workload& last, PlannedSteps steps,
                        const RankContext* rank) {
  Bindings sizes = bindings_of(last, graph);
  // Each of several decode steps completes a compressed key or none; the plan has room for one.
  if (graph.options.phase == Phase::decode && steps == PlannedSteps::several) {
    const auto most = [&](Integer rate) { return (last.seq_len + rate - 1) / rate; };
    const LayerTraits& traits = graph.traits;
    if (traits.indexed_rate > 1) {
      sizes.set(Symbol::new_compressed_keys, most(traits.indexed_rate));
    }
    if (traits.heavy_compression_rate > 0) {
      sizes.set(Symbol::new_heavily_compressed_keys, most(traits.heavy_compression_rate));
    }
  }
  set_token_shards(sizes, last.seq_len, graph.options.phase, rank);
  return sizes;
}

Bindings sizes_at(const Graph& graph, const Lengths& lengths, const RankContext* rank) {
  Workload last;
  last.batch_size = lengths.batch;
  last.seq_len = lengths.seq_len;
  last.enc_seq_len = std::max<std::int64_t>(1, lengths.enc_seq_len);
  last.past_len = lengths.capacity - lengths.seq_len;
  last.images.totals = lengths.images;
  last.audio.totals = lengths.audio;
  last.global_tokens = lengths.global_tokens;
  const bool is_last = lengths.past == last.past_len;
  return sizes_of_steps(graph, last, is_last ? PlannedSteps::one : PlannedSteps::several, rank);
}

namespace {

/// Floats that a cache needs at most: of a compressor's state, those of an open window of all but
/// its last token.
std::size_t largest_floats(const Tensor& tensor, const Graph& graph, Bindings sizes) {
  const Expr elements = tensor.elements();
  if (tensor.type == ElementType::compressor_state) {
    const bool indexed = elements.degree(Symbol::compressed_keys) > 0;
    const LayerTraits& traits = graph.traits;
    sizes.set(Symbol::visible_keys,
              (indexed ? traits.indexed_rate : traits.heavy_compression_rate) - 1);
    sizes.set(Symbol::compressed_keys, 0);
    sizes.set(Symbol::heavily_compressed_keys, 0);
  }
  return static_cast<std::size_t>(elements.evaluate_int64(sizes));
}

}  // namespace

KvCache::KvCache(const Graph& graph, const Bindings& sizes) {
  std::size_t end = 0;
  // A layer that shares the keys of an earlier one reads that layer's cache.
  std::map<TensorId, std::pair<const Block*, std::int64_t>> owners;
  for (const Block& block : graph.blocks) {
    const std::int64_t runs = block.repeat.evaluate_int64(sizes);
    for (const Node& node : block.nodes) {
      for (const TensorId input : node.inputs) {
        const Tensor& tensor = graph.tensors[input];
        if (!is_cached(tensor.type)) continue;
        const std::pair owner{&block, node.layer};
        if (owners.emplace(input, owner).first->second != owner) continue;
        const auto floats = static_cast<std::size_t>(tensor.elements().evaluate_int64(sizes));
        for (std::int64_t run = 0; run < runs; ++run) {
          const std::pair key{tensor.name, block.layer_of(node, run)};
          if (!begins_.emplace(key, end).second) continue;
          end += round_up(largest_floats(tensor, graph, sizes), std::size_t{kCacheLineFloats});
          bytes_ += static_cast<std::int64_t>(floats * sizeof(float));
        }
      }
    }
  }
  memory_.resize(end);
}

float* KvCache::data(const std::string& name, std::int64_t layer) {
  const auto found = begins_.find({name, layer});
  return found == begins_.end() ? nullptr : memory_.data() + found->second;
}

void KvCache::clear() { std::ranges::fill(memory_, 0.0F); }

void KvCache::fill(std::uint64_t seed) {
  std::minstd_rand generator(static_cast<std::uint_fast32_t>(seed | 1U));
  std::uniform_real_distribution<float> values(0.1F, 1.0F);
  std::ranges::generate(memory_, [&] { return values(generator); });
}

Program::Program(const ModelSpec& spec, Graph graph, const ModelWeights& weights, KvCache& cache,
                 const ModelInputs& inputs, const Lengths& lengths, const RankContext* rank,
                 const Program* arena_of)
    : spec_(spec),
      rank_(rank),
      whole_sizes_(graph.sizes),
      graph_(graph_of_rank(std::move(graph), rank)),
      weights_(weights),
      cache_(cache),
      inputs_(inputs),
      lengths_(lengths),
      sizes_(sizes_at(graph_, lengths, rank)),
      plan_(plan_memory(graph_, sizes_)),
      arena_(arena_beside(arena_of)),
      owns_arena_(arena_of == nullptr || arena_ != arena_of->arena_),
      hidden_input_(input_buffer(0, inputs.hidden_states)),
      encoder_input_(input_buffer(1, inputs.encoder_hidden_states)) {
  require_positions(spec, lengths.capacity, lengths.enc_seq_len);
  if (spec.tower) tower_ = encoder_of(*spec.tower);
  if (spec.audio_tower) audio_tower_ = encoder_of(*spec.audio_tower);
  build_blocks();
}

std::shared_ptr<AlignedVector<float>> Program::arena_beside(const Program* other) const {
  const auto floats = static_cast<std::size_t>(plan_.arena_floats);
  if (other != nullptr && other->arena_->size() == floats) return other->arena_;
  return std::make_shared<AlignedVector<float>>(floats);
}

std::optional<std::int64_t> Program::source_layer(TensorId tensor, const Block& block,
                                                  const Node& node) const {
  const auto reads = [&](const Node& other) {
    return std::ranges::find(other.inputs, tensor) != other.inputs.end();
  };
  for (const Block& other : graph_.blocks) {
    const auto first = std::ranges::find_if(other.nodes, reads);
    if (first == other.nodes.end()) continue;
    if (&other == &block && first->layer == node.layer) return std::nullopt;
    return other.layer_of(*first, other.repeat.evaluate_int64(sizes_) - 1);
  }
  return std::nullopt;
}

float* Program::pointer(TensorId tensor) {
  const auto found = std::ranges::find(graph_.inputs, tensor);
  if (found != graph_.inputs.end()) {
    AlignedVector<float>& values = found == graph_.inputs.begin() ? hidden_input_ : encoder_input_;
    return values.empty() ? nullptr : values.data();
  }
  const std::int64_t offset = plan_.offsets[tensor];
  return offset == MemoryPlan::kNotInArena ? nullptr : arena_->data() + offset;
}

AlignedVector<float> Program::input_buffer(std::size_t index,
                                           const std::vector<float>& given) const {
  const bool receives = rank_ != nullptr && !rank_->pipeline.is_first();
  if (!receives) return {given.begin(), given.end()};
  if (index >= graph_.inputs.size()) return {};
  const Tensor& tensor = graph_.tensors[graph_.inputs[index]];
  return AlignedVector<float>(static_cast<std::size_t>(tensor.elements().evaluate_int64(sizes_)));
}

void Program::receive_inputs() {
  const auto start = Clock::now();
  for (AlignedVector<float>* const buffer : {&hidden_input_, &encoder_input_}) {
    if (!buffer->empty()) rank_->pipeline_group->receive(*buffer, rank_->pipeline.rank - 1);
  }
  receive_time_ = Clock::now() - start;
}

std::chrono::nanoseconds Program::communication_time() const {
  std::chrono::nanoseconds sum = receive_time_;
  for (const ProgramBlock& block : blocks_) {
    for (std::size_t i = 0; i < block.steps.size(); ++i) {
      if (std::holds_alternative<Collective>(block.steps[i].node->op)) sum += block.times[i];
    }
  }
  return sum;
}

void Program::build_blocks() {
  for (const Block& block : graph_.blocks) {
    ProgramBlock prepared;
    prepared.graph_block = &block;
    prepared.path = block.path;
    prepared.repeat = block.repeat.evaluate_int64(sizes_);
    StepBuilder builder(*this, block);
    for (const Node& node : block.nodes) prepared.steps.push_back({&node, builder.step(node)});
    prepared.counts.resize(prepared.steps.size());
    prepared.times.resize(prepared.steps.size());
    prepared.carried_in = pointer(block.carried_in);
    prepared.carried_out = pointer(block.carried_out);
    prepared.carried_floats = graph_.tensors[block.carried_out].elements().evaluate_int64(sizes_);
    blocks_.push_back(std::move(prepared));
  }
}

void Program::run(const BlockObserver& observer) {
  if (rank_ != nullptr && !rank_->pipeline.is_first()) {
    receive_inputs();
  } else {
    std::ranges::copy(inputs_.hidden_states, hidden_input_.begin());
  }
  for (ProgramBlock& block : blocks_) {
    std::ranges::fill(block.counts, StepCount{});
    std::ranges::fill(block.times, std::chrono::nanoseconds{0});
    for (std::int64_t run = 0; run < block.repeat; ++run) {
      auto start = Clock::now();
      for (std::size_t i = 0; i < block.steps.size(); ++i) {
        headroom::detail::throw_if_interrupted();
        const std::int64_t layer = block.graph_block->layer_of(*block.steps[i].node, run);
        const StepCount count = block.steps[i].run(layer);
        const auto end = Clock::now();
        block.times[i] += end - start;
        block.counts[i].matrix_flops += count.matrix_flops;
        block.counts[i].bytes += count.bytes;
        start = end;
        if (!observer || !block.ends_layer(i)) continue;
        observer(block, layer, pointer(block.steps[i].node->output));
        start = Clock::now();
      }
      const bool carries = block.carried_in != nullptr && block.carried_out != nullptr;
      const bool is_last = run + 1 == block.repeat;
      if (carries && !is_last && block.carried_in != block.carried_out) {
        std::memcpy(block.carried_in, block.carried_out,
                    static_cast<std::size_t>(block.carried_floats) * sizeof(float));
      }
    }
  }
}

AllocatedMemory Program::allocated() const {
  const auto bytes_of_all = [](const Scratch& buffers) {
    std::int64_t floats = 0;
    for (const auto& buffer : buffers) floats += static_cast<std::int64_t>(buffer->size());
    return floats * static_cast<std::int64_t>(sizeof(float));
  };
  AllocatedMemory memory;
  if (owns_arena_) {
    memory.arena_bytes = static_cast<std::int64_t>(arena_->size() * sizeof(float));
  }
  memory.kernel_scratch_bytes = bytes_of_all(kernel_scratch_);
  memory.strided_copy_bytes = bytes_of_all(strided_copies_);
  return memory;
}

std::int64_t Program::logit_tokens() const noexcept {
  return graph_.options.logits == Logits::last ? 1 : lengths_.seq_len;
}

std::int64_t Program::non_finite_outputs() const {
  const Node& last = graph_.blocks.back().nodes.back();
  const std::int64_t offset = plan_.offsets[last.output];
  if (offset == MemoryPlan::kNotInArena) return 0;
  const std::int64_t count = graph_.tensors[last.output].elements().evaluate_int64(sizes_);
  const std::span values(arena_->data() + offset, static_cast<std::size_t>(count));
  return std::ranges::count_if(values, [](float value) { return !std::isfinite(value); });
}

const float* Program::output(const std::string& name) const {
  const float* found = nullptr;
  for (const Block& block : graph_.blocks) {
    for (const Node& node : block.nodes) {
      // Operators that modify the output belong to it: logits.scale, logits.soft_cap.
      const bool belongs = node.path == name || node.path.starts_with(name + ".");
      if (!belongs) continue;
      const auto gathered = gathered_outputs_.find(node.output);
      found = gathered == gathered_outputs_.end() ? arena_->data() + plan_.offsets[node.output]
                                                  : gathered->second.data();
    }
  }
  return found;
}

bool ProgramBlock::ends_layer(std::size_t step) const {
  return step + 1 == steps.size() || steps[step + 1].node->layer != steps[step].node->layer;
}

}  // namespace headroom::measured
