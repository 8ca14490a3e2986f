#include "planner.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "collective_time.h"
#include "default_options.h"
#include "graph_passes.h"
#include "headroom/error.h"
#include "headroom/tiled_tower.h"
#include "layer_ties.h"
#include "op_kind.h"
#include "resolve_audio.h"
#include "resolve_images.h"

namespace headroom {
namespace {

using detail::OpKind;
using detail::PipelineStage;
using detail::RankStates;
using detail::Section;
using detail::SectionStates;
using detail::WeightUse;

Graph main_graph(const ModelSpec& spec, const PlanQuery& query) {
  const bool training = query.purpose == Purpose::train;
  const Phase phase = training ? Phase::train : Phase::prefill;
  GraphOptions options = detail::default_options(spec, phase, query.attention);
  if (query.images > 0) options.images = ImageInputs::present;
  if (query.audio > 0) options.audio = AudioInputs::present;
  if (training) {
    return with_adapter(detail::tower_outside_layers(build_graph(spec, options)), query.adapter);
  }
  const Graph stored = detail::tower_outside_layers(build_stored_graph(spec, options));
  return with_last_token_head(with_served_adapters(stored, query.adapter, query.dtype));
}

/// The images of one sequence, or all of a model that compares them with texts.
WorkloadImages images_of(const ModelSpec& spec, const PlanQuery& query) {
  WorkloadRequest request;
  request.images = query.images;
  request.image_size = query.image_size;
  return detail::resolve_images(request, spec);
}

/// The clips of one sequence.
WorkloadAudio audio_of(const ModelSpec& spec, const PlanQuery& query) {
  WorkloadRequest request;
  request.audio = query.audio;
  request.audio_seconds = query.audio_seconds;
  return detail::resolve_audio(request, spec);
}

/// `of_one` of each of `sequences`. Throws Error{overflow}.
std::int64_t of_all(std::int64_t of_one, std::int64_t sequences) {
  const Integer product = checked_multiply(of_one, sequences);
  constexpr unsigned kBits = 63;
  if (product > INT64_MAX) detail::throw_overflow(kBits);
  return static_cast<std::int64_t>(product);
}

/// Sums over the images of `sequences` sequences; those per sequence stay as they are.
ImageTotals times(const ImageTotals& totals, std::int64_t sequences) {
  const auto all = [&](std::int64_t of_one) { return of_all(of_one, sequences); };
  return {all(totals.images), all(totals.patches), all(totals.pairs),    all(totals.window_pairs),
          all(totals.tokens), totals.later_pairs,  totals.windowed_pairs};
}

AudioTotals times(const AudioTotals& totals, std::int64_t sequences) {
  return {of_all(totals.segments, sequences), of_all(totals.rows, sequences),
          of_all(totals.tokens, sequences), of_all(totals.pairs, sequences),
          of_all(totals.placeholders, sequences)};
}

std::optional<Graph> decode_graph(const ModelSpec& spec, const PlanQuery& query) {
  const bool cached = spec.main_stack().causal();
  if (query.purpose == Purpose::train || !cached) return std::nullopt;
  GraphOptions options{Phase::decode, query.attention};
  if (query.images > 0) options.images = ImageInputs::present;  // their keys may be in a cache
  return with_served_adapters(build_stored_graph(spec, options), query.adapter, query.dtype);
}

/// Uses by weight. A weight that no operator uses counts in the first section.
std::vector<WeightUse> weight_uses(const Graph& graph) {
  const detail::SectionMap sections(graph);
  std::vector<WeightUse> uses(graph.weights.size());
  for (std::size_t i = 0; i < graph.blocks.size(); ++i) {
    for (const Node& node : graph.blocks[i].nodes) {
      const Section section = sections.of(i, node);
      for (const WeightId id : node.weights) {
        WeightUse& use = uses[id];
        if (section.kind == Section::Kind::layers) {
          use.layer_kind = section.layer_kind;
          use.expert = detail::kind_of(node.op) == OpKind::expert_linear;
        } else {
          use.outside |= detail::bit_of(section.kind);
        }
      }
    }
  }
  const bool encoder = detail::layers_of(graph).encoder > 0;
  for (WeightUse& use : uses) {
    if (use.layer_kind || use.outside != 0) continue;
    use.outside =
        detail::bit_of(encoder ? Section::Kind::encoder_first : Section::Kind::main_first);
  }
  return uses;
}

/// Adds the states of a weight of a layer, on one of `expert_ranks`.
void add_to(SectionStates& sum, const StateBytes& bytes, const WeightUse& use,
            std::int64_t expert_ranks) {
  if (use.expert) {
    sum.experts += detail::fraction_of(bytes, 1, expert_ranks);
  } else {
    sum.dense += bytes;
  }
}

/// True if `other`, an earlier stage with more micro-batches in flight, runs every part of `stage`.
bool runs_all_of(const PipelineStage& other, const PipelineStage& stage) {
  return (other.sections & stage.sections) == stage.sections &&
         std::ranges::equal(stage.layers_of_kind, other.layers_of_kind, std::ranges::less_equal{});
}

Stage stage_at(std::int64_t index, const ParallelPlan& plan) {
  if (plan.pipeline == 1) return Stage::whole;
  if (index == 0) return Stage::first;
  return index == plan.pipeline - 1 ? Stage::last : Stage::middle;
}

PlannerSetup setup_of(const ModelSpec& spec, const PlanQuery& query, const DeviceRates& rates) {
  const bool serves = query.purpose == Purpose::serve;
  const ModelSpec stored = serves ? converted(spec, query.weights) : spec;
  const WorkloadImages images = images_of(spec, query);
  PlannerSetup setup{
      spec, query, rates,  main_graph(stored, query), decode_graph(stored, query), {},
      {},   {},    images, audio_of(spec, query)};
  setup.kinds = detail::layer_kinds(setup.graph);
  if (setup.decode) setup.decode_kinds = detail::layer_kinds(*setup.decode);
  setup.choosing_layers = detail::tied_layers(setup.graph, detail::TiedValue::key_choice);
  if (query.purpose == Purpose::train && !detail::has_kind(setup.graph, OpKind::loss)) {
    throw Error(ErrorCode::invalid_input, spec.name + " has no head, so no loss to train with", {},
                "use a preset with a head, such as bert-base-uncased-mlm, or a config whose "
                "architecture has one, such as BertForMaskedLM");
  }
  return setup;
}

}  // namespace

std::optional<std::int64_t> encoder_tokens(const ModelSpec& spec, std::int64_t tokens) {
  if (!spec.reads_two_sequences()) return std::nullopt;
  if (spec.denoiser) return spec.denoiser->text.default_tokens;
  return spec.embedding.audio ? spec.encoder_positions().max_position_embeddings : tokens;
}

double detail::sent_by_rank(double hidden_bytes, const ParallelPlan& plan) {
  const bool sharded = plan.sequence == SequenceParallel::on;
  return sharded ? hidden_bytes : hidden_bytes / static_cast<double>(plan.tensor);
}

Workload detail::workload_of(const PlanQuery& query, Phase phase) {
  Workload workload;
  workload.phase = phase;
  workload.dtype = query.dtype;
  workload.arithmetic = query.arithmetic;
  workload.kv_dtype = query.kv_dtype;
  workload.attention = query.attention;
  workload.kernels = Kernels::fused;
  return workload;
}

std::size_t Planner::Implementation::CostKeyHash::operator()(const CostKey& key) const noexcept {
  std::size_t hash = static_cast<std::size_t>(key.pass) * 2 +
                     static_cast<std::size_t>(key.sequence == SequenceParallel::on) +
                     64 * static_cast<std::size_t>(key.expert_tensor == ExpertTensor::whole) +
                     128 * static_cast<std::size_t>(key.expert_exchange) +
                     256 * static_cast<std::size_t>(key.batch_overlap);
  for (const std::int64_t part : {key.tensor, key.context, key.expert, key.batch, key.seq_len,
                                  key.past_len, key.images, key.audio_segments, key.adapters}) {
    hash = (hash ^ static_cast<std::size_t>(part)) * 0x9E3779B97F4A7C15U;
    hash ^= hash >> 29U;
  }
  return hash;
}

PlanFigures Planner::Implementation::evaluate(const PlanChoice& choice, const Load& load) {
  PlanFigures figures =
      query.purpose == Purpose::train ? training(choice, load) : serving(choice, load);
  PlanTime& time = figures.time;
  const double range = 1 + time_range(choice, time.compute_bound_s / time.iteration_s);
  time.low_s = std::max(time.iteration_s / range, std::min(time.iteration_s, time.roofline_s));
  time.high_s = time.iteration_s * range;
  return figures;
}

Workload Planner::Implementation::workload_of(Pass pass, std::int64_t batch, std::int64_t seq_len,
                                              std::int64_t past_len) const {
  const Phase phase = pass == Pass::train    ? Phase::train
                      : pass == Pass::decode ? Phase::decode
                                             : Phase::prefill;
  Workload workload = detail::workload_of(query, phase);
  workload.batch_size = batch;
  workload.seq_len = seq_len;
  workload.enc_seq_len =
      attends_to_images(spec) && query.images > 0
          ? images.count * keys_of_image(*spec.tower)
          : encoder_tokens(spec, past_len + seq_len).value_or(past_len + seq_len);
  workload.past_len = past_len;
  workload.global_tokens = detail::default_global_tokens(spec);
  return workload;
}

Workload Planner::Implementation::with_tower_inputs(Workload workload) const {
  if (query.audio > 0) {
    workload.audio = audio;
    workload.audio.totals = times(audio.totals, workload.batch_size);
  }
  if (query.images == 0) return workload;
  workload.images = images;
  if (!spec.tower->pooling) {
    workload.images.totals = times(images.totals, workload.batch_size);
  }
  return workload;
}

SymbolValues Planner::Implementation::values_of(const ParallelPlan& plan,
                                                const Workload& workload) const {
  const Bindings sizes = rank_sizes(graph.sizes, plan);
  const Bindings bindings = rank_bindings(workload, graph.traits, plan);
  SymbolValues values(sizes);
  for (const SymbolInfo& symbol : symbols()) {
    if (const auto value = bindings.get(symbol.symbol)) values.set(symbol.symbol, *value);
  }
  return values;
}

detail::RankProgram& Planner::Implementation::program(Pass pass, const ParallelPlan& plan) {
  const detail::Structure structure{plan.tensor > 1, plan.sequence, plan.context > 1, plan.expert,
                                    plan.expert_tensor};
  for (CompiledStructure& known : programs_) {
    if (known.pass == pass && known.structure == structure) return *known.program;
  }
  const Graph& source = pass == Pass::decode ? *decode : graph;
  programs_.push_back(
      {pass, structure, std::make_unique<detail::RankProgram>(source, structure, Kernels::fused)});
  return *programs_.back().program;
}

const detail::RankCosts& Planner::Implementation::costs(Pass pass, const ParallelPlan& plan,
                                                        const Workload& workload) {
  return costs(pass, plan, workload, workload.batch_size);
}

const detail::RankCosts& Planner::Implementation::costs(Pass pass, const ParallelPlan& plan,
                                                        const Workload& workload,
                                                        std::int64_t adapters) {
  const CostKey key{pass,
                    plan.tensor,
                    plan.context,
                    plan.expert,
                    plan.expert_tensor,
                    plan.expert_exchange,
                    plan.batch_overlap,
                    plan.sequence,
                    workload.batch_size,
                    workload.seq_len,
                    workload.past_len,
                    workload.images.totals.images,
                    workload.audio.totals.segments,
                    std::min(adapters, query.adapter.held)};
  if (last_costs_ != nullptr && key == last_key_) return *last_costs_;
  auto found = costs_.find(key);
  if (found == costs_.end()) {
    found =
        costs_
            .emplace(key,
                     program(pass, plan).costs(values_of(plan, workload), speed_of(plan), adapters))
            .first;
  }
  last_key_ = key;
  last_costs_ = &found->second;
  return found->second;
}

StateBytes Planner::Implementation::serving_states(const Weight& weight,
                                                   const Bindings& sizes) const {
  const Expr elements = weight.repeat * weight.elements();
  const Integer all = elements.evaluate(graph.sizes);
  if (all == 0) return {};
  const Integer of_rank = checked_multiply(*weight.stored_bytes, elements.evaluate(sizes));
  return {ceil_div(of_rank, all), 0, 0};
}

StateBytes Planner::Implementation::copy_states(const Weight& weight, std::size_t copy,
                                                const Bindings& sizes) const {
  const Integer all = weight.elements().evaluate(graph.sizes);
  if (all == 0) return {};
  const Integer copies = weight.repeat.evaluate(graph.sizes);
  const Integer stored = weight.stored_bytes_of_copy.empty() ? *weight.stored_bytes / copies
                                                             : weight.stored_bytes_of_copy.at(copy);
  return {ceil_div(checked_multiply(stored, weight.elements().evaluate(sizes)), all), 0, 0};
}

std::vector<std::vector<SectionStates>> Planner::Implementation::single_layers(
    const Graph& source, const std::vector<detail::WeightUse>& uses, const Bindings& sizes,
    std::int64_t ranks) const {
  std::vector<std::vector<SectionStates>> layers(kinds.size());
  if (query.purpose != Purpose::serve) return layers;
  for (WeightId id = 0; id < source.weights.size(); ++id) {
    const auto kind = uses[id].layer_kind;
    if (!kind || source.weights[id].stored_bytes_of_copy.empty()) continue;
    layers[*kind].resize(static_cast<std::size_t>(kinds[*kind].count));
  }
  for (WeightId id = 0; id < source.weights.size(); ++id) {
    const auto kind = uses[id].layer_kind;
    if (!kind) continue;
    const Weight& weight = source.weights[id];
    const Integer copies = weight.repeat.evaluate(graph.sizes);
    std::vector<SectionStates>& of_kind = layers[*kind];
    // Layers that share a copy hold equal parts of it, which the kind's sum counts.
    if (copies != kinds[*kind].count) of_kind.clear();
    for (std::size_t copy = 0; copy < of_kind.size(); ++copy) {
      add_to(of_kind[copy], copy_states(weight, copy, sizes), uses[id], ranks);
    }
  }
  return layers;
}

StateBytes Planner::Implementation::states_of(const Weight& weight, const Bindings& sizes) const {
  if (query.purpose == Purpose::serve) return serving_states(weight, sizes);
  StatePolicy policy = query.states;
  policy.adapter = query.adapter.kind;
  return state_bytes(weight, policy, sizes);
}

const RankStates& Planner::Implementation::states(const ParallelPlan& plan) {
  const bool whole_experts = plan.expert_tensor == ExpertTensor::whole && plan.tensor > 1;
  const auto key = std::tuple(plan.tensor, plan.expert, whole_experts);
  if (const auto found = states_.find(key); found != states_.end()) return found->second;
  const Bindings sizes = rank_sizes(graph.sizes, plan);
  const Graph source = whole_experts ? detail::with_whole_experts(graph) : graph;
  const std::vector<WeightUse> uses = weight_uses(source);
  RankStates states;
  states.layers.resize(kinds.size());
  states.single_layers = single_layers(source, uses, sizes, plan.expert);
  for (WeightId id = 0; id < graph.weights.size(); ++id) {
    const WeightUse& use = uses[id];
    const StateBytes bytes = states_of(source.weights[id], sizes);
    if (use.layer_kind) {
      add_to(states.layers[*use.layer_kind], bytes, use, plan.expert);
      continue;
    }
    auto found = std::ranges::find(states.outside, use.outside, &detail::OutsideStates::used_by);
    if (found == states.outside.end()) {
      found = states.outside.insert(found, {use.outside, {}});
    }
    found->states += bytes;
  }
  states.gemms = detail::gemm_shapes(source, kinds.size(), sizes);
  return states_.emplace(key, std::move(states)).first->second;
}

std::vector<PipelineStage> Planner::Implementation::all_stages(const ParallelPlan& plan) const {
  const StackLayers layers = detail::layers_of(graph);
  std::vector<PipelineStage> stages;
  for (std::int64_t index = 0; index < plan.pipeline; ++index) {
    PipelineStage stage{stage_at(index, plan),
                        index,
                        0,
                        std::vector<std::int64_t>(kinds.size()),
                        std::vector<std::vector<LayerRange>>(kinds.size()),
                        detail::sections_of_stage(layers, plan, index),
                        std::vector<std::int64_t>(decode_kinds.size())};
    for (const LayerRange& range : layers_of_stage(layers, plan, index)) {
      stage.layers += range.size();
      for (std::size_t i = 0; i < kinds.size(); ++i) {
        stage.ranges_of_kind[i].push_back(detail::layers_within(kinds[i], range));
        stage.layers_of_kind[i] += stage.ranges_of_kind[i].back().size();
      }
      for (std::size_t i = 0; i < decode_kinds.size(); ++i) {
        detail::LayerKind kind = decode_kinds[i];
        kind.first_layer += layers.encoder;  // a decode step has no encoder
        stage.decode_layers_of_kind[i] += detail::layers_within(kind, range).size();
      }
    }
    stage.layers = std::max<std::int64_t>(1, stage.layers);
    stages.push_back(std::move(stage));
  }
  return stages;
}

const std::vector<PipelineStage>& Planner::Implementation::stages(const ParallelPlan& plan) {
  const auto key = std::pair(plan.pipeline, plan.interleave);
  if (const auto found = stages_.find(key); found != stages_.end()) return found->second;
  std::vector<PipelineStage> stages;
  const bool alike = std::ranges::all_of(
      graph.weights, [](const Weight& weight) { return weight.stored_bytes_of_copy.empty(); });
  for (PipelineStage& stage : all_stages(plan)) {
    const bool redundant = alike && std::ranges::any_of(stages, [&](const PipelineStage& other) {
                             return runs_all_of(other, stage);
                           });
    if (!redundant) stages.push_back(std::move(stage));
  }
  return stages_.emplace(key, std::move(stages)).first->second;
}

std::vector<Integer> Planner::Implementation::stage_weights(const PlanChoice& choice) {
  const RankStates& all = states(choice.parallel);
  detail::RankCosts no_costs;
  no_costs.layers.resize(kinds.size());
  std::vector<Integer> weights;
  for (const PipelineStage& stage : all_stages(choice.parallel)) {
    const detail::StageCosts costs = detail::stage_costs(no_costs, all, kinds, stage);
    weights.push_back(
        detail::stored_by_rank(detail::all_states(costs, all, stage), choice).weights);
  }
  return weights;
}

Planner::Planner(const ModelSpec& spec, const PlanQuery& query, const DeviceRates& rates)
    : implementation_(std::make_unique<Implementation>(setup_of(spec, query, rates))) {}
Planner::Planner(std::unique_ptr<Implementation> implementation)
    : implementation_(std::move(implementation)) {}
Planner::~Planner() = default;
Planner::Planner(Planner&&) noexcept = default;
Planner& Planner::operator=(Planner&&) noexcept = default;

Planner Planner::fresh_copy() const {
  const PlannerSetup& setup = *implementation_;
  return Planner(std::make_unique<Implementation>(setup));
}

PlanFigures Planner::evaluate(const PlanChoice& choice, const Load& load) {
  return implementation_->evaluate(choice, load);
}

std::vector<Integer> Planner::stage_weights(const PlanChoice& choice) {
  return implementation_->stage_weights(choice);
}

std::vector<Communication> Planner::communication(const PlanChoice& choice, const Load& load) {
  return implementation_->communication(choice, load);
}

bool Planner::fits(const PlanFigures& figures) const {
  return figures.memory.total() <= implementation_->rates.memory_bytes;
}

ShardingLimits Planner::limits(std::int64_t seq_len) const {
  return limits_of(implementation_->graph, seq_len);
}

void Planner::set_rates(const DeviceRates& rates) { implementation_->replace_rates(rates); }

void Planner::Implementation::replace_rates(const DeviceRates& replacement) {
  rates = replacement;
  costs_.clear();
  last_costs_ = nullptr;
}

const PlanQuery& Planner::query() const { return implementation_->query; }
const DeviceRates& Planner::rates() const { return implementation_->rates; }
const ModelSpec& Planner::spec() const { return implementation_->spec; }
std::int64_t Planner::tower_tokens() const {
  return implementation_->images.totals.tokens + implementation_->audio.totals.placeholders;
}
bool Planner::decodes() const { return implementation_->decode.has_value(); }

}  // namespace headroom
