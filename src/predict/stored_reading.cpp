#include "stored_reading.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <variant>

#include "headroom/analysis.h"
#include "headroom/error.h"
#include "headroom/predict.h"
#include "module_kind.h"
#include "quantization/group_format.h"
#include "setting_format.h"
#include "similar.h"

namespace headroom {
namespace detail {
namespace {

bool is_bias(const Weight& weight) { return weight.path.ends_with(".bias"); }

bool is_gemm(const Node& node) {
  return std::holds_alternative<Linear>(node.op) || std::holds_alternative<ExpertLinear>(node.op);
}

/// Number of the first weights of `node` that its kernel can read in blocks.
std::size_t readable_in_blocks(const Node& node) {
  if (is_gemm(node)) return node.weights.size();
  return std::holds_alternative<TokenEmbedding>(node.op) ? 1 : 0;
}

/// Name of the GEMMs that read `format` in blocks; empty if none do.
std::string block_gemms_of(const StorageFormat& format) {
  const auto found = std::ranges::find(block_formats(), format.name);
  return found == block_formats().end() ? std::string() : std::string(*found);
}

/// Likewise in groups.
std::string group_gemms_of(const StorageFormat& format) {
  const auto groups = group_format_of(format);
  return groups ? name_of(*groups) : std::string();
}

/// Returns whether every value is a number of its own, of at least 16 bits.
bool is_plain(const StorageFormat& format) {
  constexpr std::int64_t kLeastBits = 16;
  return format.beside.empty() && format.values.block == BlockShape{} &&
         format.values.bits >= kLeastBits;
}

bool is_plain(const WeightForm& form) {
  constexpr std::array kPlain{WeightType::float32, WeightType::bfloat16, WeightType::float16};
  const auto* const type = std::get_if<WeightType>(&form);
  return type != nullptr && std::ranges::find(kPlain, *type) != kPlain.end();
}

/// Returns whether rows of `in` values fill whole blocks: of values, and of those that share a
/// scale. The last group of a row may be shorter.
bool fills_blocks(const StorageFormat& format, std::int64_t in) {
  const auto fills = [&](const StoredNumbers& numbers) {
    return numbers.block.in == 0 || in % numbers.block.in == 0;
  };
  return fills(format.values) && std::ranges::all_of(format.beside, fills);
}

[[noreturn]] void throw_unread(const std::string& format) {
  throw Error(ErrorCode::invalid_input,
              fmt::format("the time of {} weights on this machine is not predicted", format), {},
              fmt::format("add {} float32 or bfloat16, or choose a datasheet such as {} h100-80gb",
                          Setting::weights, Setting::machine));
}

/// headroom's kernels widen no float16 weights as they read them: `measure` refuses them, too.
void require_held_type(const Workload& workload) {
  if (workload.weights != WeightForm(WeightType::float16)) return;
  throw Error(ErrorCode::invalid_input, "no kernel on this machine runs float16 weights", {},
              fmt::format("choose {0} float32 or bfloat16, or a datasheet such as {1} h100-80gb",
                          Setting::weights, Setting::machine));
}

[[noreturn]] void throw_not_calibrated(const std::string& format) {
  throw Error(ErrorCode::invalid_input,
              fmt::format("this machine is not calibrated for {} weights", format), {},
              fmt::format("run headroom calibrate {0} {1}, which takes seconds, or add {0} float32 "
                          "or bfloat16",
                          Setting::weights, lower_case(format)));
}

/// Products of rows and columns, which stored blocks replace; other kernels of a node stay.
bool multiplies(const KernelCall& call) {
  return call.kind == KernelKind::linear_cold || call.kind == KernelKind::stream_float32_cold;
}

}  // namespace

std::set<std::string> absorbed_weights(const ModelSpec& spec) {
  std::set<std::string> paths;
  if (!spec.main_stack().self_attention.latent) return paths;
  const Graph decode = build_graph(spec, {Phase::decode});
  for (const Block& block : decode.blocks) {
    for (const Node& node : block.nodes) {
      if (!std::holds_alternative<HeadLinear>(node.op)) continue;
      for (const WeightId id : node.weights) paths.insert(decode.weights[id].path);
    }
  }
  return paths;
}

StoredReading::StoredReading(const ModelSpec& spec, const Graph& graph)
    : graph_(graph), formats_(spec, graph), in_groups_(runs_in_groups(spec)) {
  find_floats(spec);
  for (const Block& block : graph.blocks) {
    for (const Node& node : block.nodes) add_copies(block, node);
  }
}

void StoredReading::find_floats(const ModelSpec& spec) {
  for (const Block& block : graph_.blocks) {
    for (const Node& node : block.nodes) {
      for (std::size_t i = readable_in_blocks(node); i < node.weights.size(); ++i) {
        read_as_floats_.insert(graph_.weights[node.weights[i]].path);
      }
    }
  }
  read_as_floats_.merge(absorbed_weights(spec));
}

std::string StoredReading::gemms_of(const StorageFormat& format) const {
  return in_groups_ ? group_gemms_of(format) : block_gemms_of(format);
}

bool StoredReading::fits(const StorageFormat& format, std::int64_t in) const {
  if (!in_groups_) return !block_gemms_of(format).empty() && fills_blocks(format, in);
  const auto groups = group_format_of(format);
  return groups && fits_rows(*groups, in);
}

bool StoredReading::reads_stored(const Node& node, std::int64_t layer) const {
  const auto stays = [&](WeightId id) {
    const Weight& weight = graph_.weights[id];
    if (is_bias(weight)) return true;
    if (weight.shape.size() < 2 || read_as_floats_.contains(weight.path)) return false;
    const StorageFormat& format = formats_.of(weight, layer);
    return fits(format, matrix_sizes(weight, graph_.sizes).in);
  };
  if (std::holds_alternative<TokenEmbedding>(node.op)) return stays(node.weights.front());
  return is_gemm(node) && !node.weights.empty() && std::ranges::all_of(node.weights, stays);
}

void StoredReading::add_copies(const Block& block, const Node& node) {
  const std::size_t readable = readable_in_blocks(node);
  const std::int64_t runs = readable == 0 ? 0 : block.repeat.evaluate_int64(graph_.sizes);
  for (std::int64_t run = 0; run < runs; ++run) {
    const std::int64_t layer = block.weights_of(node, run);
    const bool stored = reads_stored(node, layer);
    for (std::size_t i = 0; i < readable; ++i) {
      const Weight& weight = graph_.weights[node.weights[i]];
      if (is_bias(weight)) continue;
      const StorageFormat& format = formats_.of(weight, layer);
      if (gemms_of(format).empty() && !is_plain(format)) throw_unread(format.name);
      if (!stored) continue;
      if (is_gemm(node)) gemm_formats_.insert(gemms_of(format));
      const MatrixSizes sizes = matrix_sizes(weight, graph_.sizes);
      const Integer matrices = sizes.experts;
      copies_[{weight.path, layer}] = {
          node.weights[i], checked_multiply(matrices, checked_multiply(sizes.out, sizes.in)),
          checked_multiply(matrices, format.bytes(sizes.out, sizes.in))};
    }
  }
}

StoredReading::Copy StoredReading::all_copies() const {
  Copy all;
  for (const auto& [place, copy] : copies_) {
    all.elements = checked_add(all.elements, copy.elements);
    all.bytes = checked_add(all.bytes, copy.bytes);
  }
  return all;
}

std::int64_t StoredReading::copies_of(WeightId weight) const {
  return std::ranges::count_if(copies_,
                               [&](const auto& place) { return place.second.weight == weight; });
}

std::optional<Integer> StoredReading::bytes_of(const Weight& weight, std::int64_t layer) const {
  const auto found = copies_.find({weight.path, layer});
  return found == copies_.end() ? std::nullopt : std::optional(found->second.bytes);
}

std::map<std::string, double> StoredReading::format_shares(const NodePlace& place) const {
  const std::int64_t runs = place.block.repeat.evaluate_int64(graph_.sizes);
  std::map<std::string, double> shares;
  for (std::int64_t run = 0; run < runs; ++run) {
    const std::int64_t layer = place.block.weights_of(place.node, run);
    const bool stored = reads_stored(place.node, layer);
    double outputs = 0;
    std::map<std::string, double> by_format;
    for (const WeightId id : place.node.weights) {
      const Weight& weight = graph_.weights[id];
      if (is_bias(weight)) continue;
      const auto out = static_cast<double>(matrix_sizes(weight, graph_.sizes).out);
      by_format[stored ? gemms_of(formats_.of(weight, layer)) : ""] += out;
      outputs += out;
    }
    for (const auto& [format, out] : by_format) {
      shares[format] += out / outputs / static_cast<double>(runs);
    }
  }
  return shares;
}

std::vector<KernelCall> StoredReading::stored_calls(const NodePlace& place,
                                                    std::span<const KernelCall> plain,
                                                    const ThreadProfile& profile) const {
  if (!is_gemm(place.node)) return {plain.begin(), plain.end()};
  const std::map<std::string, double> shares = format_shares(place);
  std::vector<KernelCall> calls;
  for (const KernelCall& call : plain) {
    if (!multiplies(call)) {
      calls.push_back(call);
      continue;
    }
    for (const auto& [format, share] : shares) {
      KernelCall& part = calls.emplace_back(call);
      part.times *= share;
      if (format.empty()) continue;
      part.stored = find_stored_gemm(profile, format);
      if (part.stored == nullptr) throw_not_calibrated(format);
    }
  }
  return calls;
}

std::optional<StoredReading> stored_reading(const ModelSpec& spec, const Graph& graph,
                                            const Workload& workload) {
  require_held_type(workload);
  if (spec.storage.rules.empty()) return std::nullopt;
  if (workload.weights && is_plain(*workload.weights)) return std::nullopt;
  StoredReading reading(spec, graph);
  if (reading.empty()) return std::nullopt;
  return reading;
}

}  // namespace detail

std::optional<std::vector<std::string>> stored_gemm_formats(const ModelSpec& spec,
                                                            const Workload& workload) {
  const Graph graph = build_graph(spec, graph_options(workload));
  const auto stored = detail::stored_reading(spec, graph, workload);
  if (!stored) return std::nullopt;
  return std::vector(stored->gemm_formats().begin(), stored->gemm_formats().end());
}

}  // namespace headroom
