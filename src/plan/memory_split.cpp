#include "headroom/memory_split.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "engine_commands.h"
#include "headroom/error.h"
#include "layer_work.h"
#include "weight_commands.h"

namespace headroom {
namespace {

using detail::LayerWork;
using detail::ModelWork;
using detail::PartWork;
using detail::PlaceSeconds;

// Placement and execution by llama.cpp: llama_model::load_tensors in src/llama-model.cpp (the word
// embedding on the CPU; i_gpu_start = n_layer + 1 − n_gpu_layers), --n-cpu-moe in common/arg.cpp
// (ffn_(up|down|gate)_exps of the first layers), and ggml_backend_cuda_device_offload_op in
// ggml/src/ggml-cuda (weights of the host are copied for passes of at least 32 rows); October 2026.

/// Default of llama.cpp's --ubatch-size: tokens of a prompt in one pass.
constexpr std::int64_t kPassTokens = 512;
/// Rows of a pass from which weights on the host are copied to the device.
constexpr std::int64_t kCopiedRows = 32;
/// Two channels of DDR5-5600: 2 · 8 bytes · 5.6 GT/s.
constexpr double kDesktopBytesPerS = 89.6e9;
/// Fixed time of a copy between host and device; assumed.
constexpr double kCopyLatency = 10e-6;

enum class Place { device, host };

/// A pass of the model: its rows, and the passes that they are cut into.
struct Rows {
  std::int64_t rows = 1;
  std::int64_t passes = 1;
};

struct PassSums {
  BoundSeconds device;
  BoundSeconds host;
  double copies_s = 0;
};

/// Sums over the parts of a model under one split.
class Placed {
 public:
  Placed(const ModelWork& work, const PlanQuestion& question, const HostRates& host)
      : work_(work), question_(question), host_(host) {
    host_memory_.weights = work.input.weight_bytes + work.tied_bytes;
    device_memory_.weights = work.unused_bytes;
    // A lookup of rows stays with its table.
    decode_.host = work.input.decode.on_host;
    prompt_.host = work.input.prompt.on_host;
  }

  void add(const LayerWork& layer, Place place, Place experts) {
    memory_of(place).kv_cache += layer.kv_cache_bytes;
    add(layer.others, place);
    add(layer.experts, experts);
    // The layer's sum is where its other operators are.
    go_to(place);
  }

  /// The head runs on the last token of a prompt.
  void add_head(Place place) {
    const PartWork& head = work_.output;
    memory_of(place).weights += head.weight_bytes;
    if (place == Place::device) device_memory_.weights += work_.tied_bytes;
    go_to(place);
    add_pass(head.weight_bytes + work_.tied_bytes, head.decode, place, step(), decode_);
    add_pass(head.weight_bytes + work_.tied_bytes, head.prompt, place, {1, 1}, prompt_);
  }

  [[nodiscard]] SplitFigures figures(const PlanMemory& device) const {
    SplitFigures figures;
    figures.device = device_memory_;
    figures.device.activations = device.activations;
    figures.device.runtime = device.runtime.total();
    figures.host = host_memory_;
    figures.host.activations = device.activations;
    figures.fits = figures.device.total() <= question_.rates.memory_bytes &&
                   figures.host.total() <= host_.memory_bytes;
    figures.time = time();
    return figures;
  }

 private:
  [[nodiscard]] SplitMemory& memory_of(Place place) {
    return place == Place::device ? device_memory_ : host_memory_;
  }

  void go_to(Place place) {
    if (place != last_) ++crossings_;
    last_ = place;
  }

  [[nodiscard]] Rows step() const { return {question_.load.batch_size, 1}; }
  [[nodiscard]] Rows prompt() const {
    const std::int64_t tokens = question_.load.seq_len;
    return {tokens, ceil_div(tokens, kPassTokens)};
  }

  void add(const PartWork& part, Place place) {
    memory_of(place).weights += part.weight_bytes;
    go_to(place);
    add_pass(part.weight_bytes, part.decode, place, step(), decode_);
    add_pass(part.weight_bytes, part.prompt, place, prompt(), prompt_);
  }

  void add_pass(Integer weight_bytes, const PlaceSeconds& seconds, Place place, Rows pass,
                PassSums& sums) const {
    if (place == Place::device) {
      sums.device += seconds.on_device;
    } else if (pass.rows < kCopiedRows) {
      sums.host += seconds.on_host;
    } else {
      sums.device += seconds.copied;
      sums.copies_s += static_cast<double>(pass.passes) * static_cast<double>(weight_bytes) /
                       host_.link_bytes_per_s;
    }
  }

  /// Seconds of hidden states on the link.
  [[nodiscard]] double crossings_s(Rows pass) const {
    const double bytes = static_cast<double>(work_.hidden_bytes) * static_cast<double>(pass.rows);
    return crossings_ *
           (bytes / host_.link_bytes_per_s + static_cast<double>(pass.passes) * kCopyLatency);
  }

  /// Ranges of the parts of a step, each by the seconds that it takes. No runs of hosts are known,
  /// so that theirs, and the link's, are those of rates that are assumed.
  [[nodiscard]] double range_s(const SplitTime& time) const {
    const auto of = [](const TimeRanges& ranges, const BoundSeconds& part) {
      return ranges.compute * part.compute_bound + ranges.memory * (part.all - part.compute_bound);
    };
    const TimeRanges assumed =
        known_efficiency(Architecture::cpu, Purpose::serve, DType::bfloat16).range;
    return of(question_.rates.time_range, decode_.device) + of(assumed, decode_.host) +
           assumed.memory * time.transfer_s;
  }

  [[nodiscard]] SplitTime time() const {
    SplitTime time;
    time.device_s = decode_.device.all;
    time.host_s = decode_.host.all;
    time.transfer_s = decode_.copies_s + crossings_s(step());
    time.decode_s = time.device_s + time.host_s + time.transfer_s;
    const double range = 1 + range_s(time) / time.decode_s;
    time.low_s = std::max(time.decode_s / range, std::min(time.decode_s, decode_.device.roofline));
    time.high_s = time.decode_s * range;
    time.ttft_s = prompt_.device.all + prompt_.host.all + prompt_.copies_s + crossings_s(prompt());
    time.tokens_per_s = static_cast<double>(question_.load.batch_size) / time.decode_s;
    return time;
  }

  const ModelWork& work_;
  const PlanQuestion& question_;
  const HostRates& host_;
  SplitMemory device_memory_;
  SplitMemory host_memory_;
  PassSums decode_;
  PassSums prompt_;
  Place last_ = Place::host;
  double crossings_ = 0;
};

/// Everything that the splits of one question share.
struct SplitContext {
  const PlanQuestion& question;
  const HostRates& host;
  ModelWork work;
  PlanMemory device;  ///< activations and runtime of the device
  [[nodiscard]] std::int64_t layers() const { return std::ssize(work.layers); }
};

SplitFigures figures_of(const SplitContext& context, const MemorySplit& split) {
  Placed placed(context.work, context.question, context.host);
  const std::int64_t first_on_device = context.layers() + 1 - split.gpu_layers;
  for (std::int64_t i = 0; i < context.layers(); ++i) {
    const Place place = i < first_on_device ? Place::host : Place::device;
    const LayerWork& layer = context.work.layers[static_cast<std::size_t>(i)];
    const bool moved = i < split.cpu_moe_layers && layer.experts.weight_bytes > 0;
    placed.add(layer, place, moved ? Place::host : place);
  }
  placed.add_head(split.gpu_layers > 0 ? Place::device : Place::host);
  SplitFigures figures = placed.figures(context.device);
  figures.split = split;
  return figures;
}

Integer bytes_over(Integer total, Integer capacity) {
  return std::max<Integer>(total - capacity, 0);
}

/// The fastest that fits. Without one, a device that holds its part comes first, then the host with
/// the fewest bytes over.
SplitFigures best_split(const SplitContext& context, const SplitRequest& request) {
  const std::int64_t layers = context.layers();
  const std::int64_t most_experts = context.work.has_experts ? layers : 0;
  std::optional<SplitFigures> best;
  const auto rank = [&](const SplitFigures& figures) {
    return std::tuple(bytes_over(figures.device.total(), context.question.rates.memory_bytes),
                      bytes_over(figures.host.total(), context.host.memory_bytes),
                      figures.time.decode_s);
  };
  const std::int64_t least = request.gpu_layers.value_or(0);
  for (std::int64_t gpu = least; gpu <= request.gpu_layers.value_or(layers + 1); ++gpu) {
    const std::int64_t first = request.cpu_moe_layers.value_or(0);
    for (std::int64_t moe = first; moe <= request.cpu_moe_layers.value_or(most_experts); ++moe) {
      // Experts of layers on the host are there already.
      const bool repeated = moe > 0 && moe <= layers + 1 - gpu && !request.cpu_moe_layers;
      if (repeated) continue;
      const SplitFigures figures = figures_of(context, {gpu, moe});
      if (!best || rank(figures) < rank(*best)) best = figures;
    }
  }
  return *best;
}

std::vector<SplitFigures> quarters(const SplitContext& context) {
  constexpr std::int64_t kQuarters = 4;
  const std::int64_t layers = context.layers();
  std::vector<MemorySplit> splits;
  for (std::int64_t quarter = 0; quarter <= kQuarters; ++quarter) {
    const bool all = quarter == kQuarters;
    splits.push_back({all ? layers + 1 : layers * quarter / kQuarters, 0});
    if (quarter > 0 && context.work.has_experts) {
      splits.push_back({layers + 1, layers * quarter / kQuarters});
    }
  }
  std::vector<SplitFigures> all;
  all.reserve(splits.size());
  for (const MemorySplit& split : splits) all.push_back(figures_of(context, split));
  std::ranges::stable_sort(all, {}, [](const SplitFigures& one) { return one.device.total(); });
  const auto is_same = [](const SplitFigures& a, const SplitFigures& b) {
    return a.split == b.split;
  };
  all.erase(std::unique(all.begin(), all.end(), is_same), all.end());
  return all;
}

void require_splits(const PlanQuestion& question) {
  const auto refuse = [](const char* what, const char* hint) { throw_invalid_input(what, hint); };
  if (question.query.purpose == Purpose::train) {
    refuse("a model is split between two memories for serving only", "leave the host out");
  }
  const ModelSpec& spec = question.model.spec;
  if (spec.kind != ModelKind::decoder || !spec.main_stack().causal()) {
    refuse("only a decoder is split between two memories", "leave the host out");
  }
  if (question.query.images > 0 || question.query.audio > 0) {
    refuse("images and sound are not counted in a split between two memories",
           "leave them or the host out");
  }
  if (question.devices > 1) {
    refuse("a split between two memories takes one device", "leave the host or the devices out");
  }
  if (!question.rates.have_speed()) {
    refuse("the split with the shortest decode step needs the machine's speed",
           "run `headroom calibrate`, or name a machine of the catalogue");
  }
}

void require_within(const char* what, const std::optional<std::int64_t>& given, std::int64_t most) {
  if (!given || *given <= most) return;
  throw_invalid_input(fmt::format("{} {} exceed the model's {}", *given, what, most),
                      fmt::format("at most {}", most));
}

/// The query with llama.cpp's passes and, unless another policy is asked for, its KV-cache.
PlanQuery llama_cpp_query(PlanQuery query) {
  query.prefill_tokens = std::min(query.prefill_tokens, kPassTokens);
  if (query.kv_cache.policy == KvPolicy::ideal) query.kv_cache.policy = KvPolicy::llama_cpp;
  return query;
}

std::string command_of(const PlanQuestion& question, const MemorySplit& split) {
  detail::CommandWords words = detail::llama_server(question);
  words.add("--gpu-layers", split.gpu_layers);
  if (split.cpu_moe_layers > 0) words.add("--n-cpu-moe", split.cpu_moe_layers);
  detail::add_llama_cpp_load(question, question.load.batch_size, words);
  return words.text();
}

std::vector<std::string> notes_of(const PlanQuestion& question, const SplitReport& report) {
  std::vector<std::string> notes = question.notes;
  notes.push_back(fmt::format(
      "llama.cpp copies weights on the host to the device for passes of {} rows or more, and runs "
      "a prompt {} tokens at a time; operators without weights stay with their layer",
      kCopiedRows, kPassTokens));
  if (auto note = detail::note_on_gguf(question)) notes.push_back(std::move(*note));
  detail::note_llama_cpp_weights(question.query.weights, notes);
  notes.insert(notes.end(), report.storage.notes.begin(), report.storage.notes.end());
  return notes;
}

}  // namespace

Integer SplitMemory::total() const { return weights + kv_cache + activations + runtime; }

HostRates host_rates(const MachineProfile& machine, DType dtype) {
  const DeviceRates rates = device_rates(machine, Purpose::serve, dtype);
  HostRates host = assumed_host(rates.memory_bytes);
  host.name = machine.name;
  host.memory_bytes_per_s = rates.memory_bytes_per_s * rates.efficiency.memory;
  host.flops_per_s = rates.flops_per_s * rates.efficiency.matrix;
  host.source = rates.efficiency_source;
  return host;
}

HostRates assumed_host(Integer memory_bytes) {
  const double reached =
      known_efficiency(Architecture::cpu, Purpose::serve, DType::bfloat16).fractions.memory;
  HostRates host;
  host.name = "host";
  host.memory_bytes = memory_bytes;
  host.memory_bytes_per_s = kDesktopBytesPerS * reached;
  host.link_bytes_per_s = assumed_interconnect().intra_node_bytes_per_s;
  host.source = "assumed: two channels of DDR5-5600";
  return host;
}

SplitReport make_split_report(PlanQuestion question, HostRates host, const SplitRequest& request) {
  require_splits(question);
  question.query = llama_cpp_query(question.query);
  Planner planner(question.model.spec, question.query, question.rates);
  const SplitContext context{question, host, detail::model_work(question, host),
                             planner.evaluate(PlanChoice{}, question.load).memory};
  SplitReport report;
  report.layers = context.layers();
  report.has_experts = context.work.has_experts;
  require_within("layers on the device", request.gpu_layers, report.layers + 1);
  if (request.cpu_moe_layers.value_or(0) > 0 && !report.has_experts) {
    throw_invalid_input(
        fmt::format("{} has no routed experts to keep on the host", question.model.spec.name),
        "give the layers on the device instead");
  }
  require_within("layers with experts on the host", request.cpu_moe_layers, report.layers);
  report.result = best_split(context, request);
  report.others = quarters(context);
  const ModelSpec spec = converted(question.model.spec, question.query.weights);
  const Graph graph = build_graph(spec, {Phase::prefill, question.query.attention});
  report.storage = stored_weights(spec, graph);
  report.parameters = count_parameters(graph).total.evaluate(graph.sizes);
  report.command = command_of(question, report.result.split);
  report.notes = notes_of(question, report);
  report.question = std::move(question);
  report.host = std::move(host);
  return report;
}

}  // namespace headroom
