#include "run_memory.h"

#include <fmt/format.h>

#include <algorithm>

#include "byte_text.h"
#include "gguf_mix.h"
#include "headroom/error.h"
#include "headroom/expr.h"
#include "headroom/graph.h"
#include "headroom/storage.h"
#include "memory_plan.h"
#include "program.h"
#include "quantization/group_format.h"
#include "setting_format.h"
#include "weight_layout.h"

namespace headroom::measured {
namespace {

constexpr Integer kTokenBytes = sizeof(std::int64_t);

template <class... Factors>
Integer product(Factors... factors) {
  Integer result = 1;
  ((result = checked_multiply(result, factors)), ...);
  return result;
}

/// Returns whether weights of this format are held as they are stored. Of the ggml types those
/// with kernels are; weights in groups of codes, and matrices of 16 bits beside them, are too.
bool stays_stored(std::string_view format, const ModelSpec& spec) {
  const auto type = headroom::detail::ggml_type_of(format);
  if (type && has_block_kernels(*type)) return true;
  return headroom::detail::runs_in_groups(spec) && format != "F32";
}

/// Bytes of weights in their types; of types without kernels, as float32.
Integer stored_weight_bytes(const ModelSpec& spec, const Graph& graph) {
  Integer bytes = 0;
  for (const StorageGroup& group : stored_weights(spec, graph).groups) {
    bytes = checked_add(bytes, stays_stored(group.format, spec)
                                   ? group.bytes
                                   : product(kFloat32Bytes, group.parameters));
  }
  return bytes;
}

Integer cache_bytes(const Graph& graph, const Bindings& sizes) {
  Integer bytes = 0;
  for (const CacheTensor& cache : cache_tensors(graph)) {
    const Integer elements = graph.tensors[cache.tensor].elements().evaluate(sizes);
    bytes =
        checked_add(bytes, product(kFloat32Bytes, elements, cache.block->repeat.evaluate(sizes)));
  }
  return bytes;
}

/// Token ids, pixels, audio or hidden states.
Integer input_bytes(const ModelSpec& spec, const Workload& workload) {
  const Integer rows = product(workload.batch_size, workload.seq_len);
  const Integer encoder_rows = product(workload.batch_size, workload.enc_seq_len);
  Integer bytes = 0;
  switch (spec.embedding.input) {
    case InputKind::tokens:
    case InputKind::audio:
      bytes = product(rows, kTokenBytes);
      break;
    case InputKind::patches: {
      const ImageSpec& image = *spec.embedding.image;
      bytes = product(rows, image.patch_size, image.patch_size, image.num_channels, kFloat32Bytes);
      break;
    }
    case InputKind::waveform:  // at least one sample per position
      bytes = product(rows, kFloat32Bytes);
      break;
    case InputKind::hidden_states:
      bytes = product(rows, spec.hidden_size, kFloat32Bytes);
      break;
  }
  if (spec.audio_tower) {
    bytes =
        checked_add(bytes, product(workload.audio.totals.segments, spec.audio_tower->segment_frames,
                                   spec.audio_tower->embedding.audio->num_mel_bins, kFloat32Bytes));
  }
  if (const auto& audio = spec.embedding.audio) {
    return checked_add(bytes, product(encoder_rows, 2, audio->num_mel_bins, kFloat32Bytes));
  }
  if (spec.kind == ModelKind::cross_attention_layer) {
    return checked_add(bytes, product(encoder_rows, spec.hidden_size, kFloat32Bytes));
  }
  if (spec.kind != ModelKind::encoder_decoder) return bytes;
  return checked_add(bytes, product(encoder_rows, kTokenBytes));
}

/// Hidden states of the main stack, the first and one per layer; and the logits that chose the new
/// tokens.
Integer output_bytes(const ModelSpec& spec, const PlannedRun& run) {
  const Workload& workload = run.workload;
  const Integer states = checked_add(spec.main_stack().num_layers, 1);
  return checked_add(
      product(states, workload.batch_size, workload.seq_len,
              std::max(spec.hidden_size, spec.output_width()), kFloat32Bytes),
      product(run.new_tokens, workload.batch_size, spec.embedding.vocab_size, kFloat32Bytes));
}

/// Returns whether runs have a second sequence, which an encoder or cross-attention reads.
bool has_encoder_input(const ModelSpec& spec) {
  return spec.embedding.audio || spec.kind == ModelKind::cross_attention_layer ||
         spec.kind == ModelKind::encoder_decoder;
}

/// Sizes of all steps of a run: its cache has room for all tokens.
Bindings sizes_of_run(const Graph& graph, const PlannedRun& run, const RankContext* rank) {
  Workload last = run.workload;
  last.enc_seq_len = std::max<std::int64_t>(1, last.enc_seq_len);
  if (run.new_tokens <= 1) return sizes_of_steps(graph, last, PlannedSteps::one, rank);
  last.past_len = checked_int64(checked_add(last.past_len, run.new_tokens - 1));
  return sizes_of_steps(graph, last, PlannedSteps::several, rank);
}

}  // namespace

Integer RunMemory::total() const {
  Integer sum = 0;
  for (const Integer part : {weights, activations, kv_cache, inputs, outputs}) {
    sum = checked_add(sum, part);
  }
  return std::max(sum, loading);
}

namespace {

RowRange range_of(Integer rows) {
  return rows <= PackedLinear::kFewRows ? RowRange::few : RowRange::many;
}

}  // namespace

RowRange row_range_of(const PlannedRun& run) {
  if (run.new_tokens > 0) return RowRange::both;
  return range_of(product(run.workload.batch_size, run.workload.seq_len));
}

RowRange head_row_range_of(const PlannedRun& run) {
  const bool last = run.workload.logits == Logits::last;
  return last ? range_of(run.workload.batch_size) : row_range_of(run);
}

RunMemory memory_of(const ModelSpec& spec, const PlannedRun& run, const RankContext* rank) {
  GraphOptions options = graph_options(run.workload);
  options.latent = LatentAttention::absorbed;
  const Graph graph = graph_of_rank(build_graph(spec, options), rank);
  const Bindings sizes = sizes_of_run(graph, run, rank);
  RunMemory memory;
  if (run.storage == HeldType::stored) {
    memory.weights = memory.loading = stored_weight_bytes(spec, graph);
  } else {
    const HeldLayout layout{run.storage, row_range_of(run), head_row_range_of(run), run.backend,
                            run.activations};
    memory.weights = held_weight_bytes(spec, layout, rank);
    memory.loading = loading_weight_bytes(spec, layout, rank);
  }
  memory.activations = product(kFloat32Bytes, arena_floats(graph, sizes));
  // Micro-batches go through one arena; each has its own sequences.
  memory.kv_cache = product(run.micro_batches, cache_bytes(graph, sizes));
  memory.inputs = product(run.micro_batches, input_bytes(spec, run.workload));
  if (run.outputs == KeptOutputs::all) {
    memory.outputs = product(run.micro_batches, output_bytes(spec, run));
  }
  return memory;
}

void require_positions(const ModelSpec& spec, Integer tokens, Integer encoder_tokens) {
  const auto rows_of = [](const PositionSpec& position) {
    return position.max_position_embeddings - position.offset;
  };
  const auto refuse_above = [&](const PositionSpec& position, Integer needed) {
    // Images that the tower runs have positions of their own (ImageSpec::interpolation).
    const bool is_table = position.kind == PositionKind::learned && !spec.embedding.image;
    if (!is_table || needed <= rows_of(position)) return;
    throw Error(
        ErrorCode::invalid_input,
        fmt::format("{} tokens exceed the {} positions of the model", needed, rows_of(position)),
        spec.name, "use a shorter sequence, a shorter past or fewer new tokens");
  };
  refuse_above(spec.position, tokens);
  refuse_above(spec.encoder_positions(), encoder_tokens);
}

namespace {

/// The remedy of a run that takes too much memory.
std::string remedy_of(const PlannedRun& run, const RunMemory& memory, const MemoryLimit& limit) {
  const bool weights_fill_it = memory.weights > limit.bytes / 2;
  // Q4_K stores 256 values in 144 bytes, 9/64 of float32.
  const bool weights_fit = memory.weights / 64 * 9 <= limit.bytes;
  if (!weights_fit && run.storage == HeldType::float32) return "use a smaller model";
  if (weights_fill_it && run.storage == HeldType::float32) {
    // In bfloat16, a prefill holds the weights of its GEMMs in float32 all the same.
    return fmt::format(
        "hold random weights in fewer bytes, such as {} q4_k_m, or use a smaller model",
        Setting::weights);
  }
  return "use a smaller batch, a shorter sequence, fused attention, or a smaller model";
}

}  // namespace

void require_run_fits(const ModelSpec& spec, const PlannedRun& run, const MemoryLimit& limit,
                      const RankContext* rank) {
  const Workload& workload = run.workload;
  const Integer tokens = checked_add(checked_add(workload.past_len, workload.seq_len),
                                     std::max<std::int64_t>(run.new_tokens, 1) - 1);
  require_positions(spec, tokens, has_encoder_input(spec) ? workload.enc_seq_len : 0);
  const RunMemory memory = memory_of(spec, run, rank);
  const Integer bytes = memory.total();
  if (bytes <= limit.bytes) return;
  throw Error(ErrorCode::missing_resource,
              fmt::format("a run needs at least {}, but {} are available ({})",
                          detail::byte_text(bytes), detail::byte_text(limit.bytes), limit.source),
              spec.name, remedy_of(run, memory, limit));
}

}  // namespace headroom::measured
