// Descriptions of models and workloads, shared by all reports. Internal to src/report.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "document.h"
#include "headroom/measurement.h"
#include "headroom/report.h"
#include "json_writer.h"

namespace headroom::detail {

/// "encoder · 12 layers · hidden 768 · heads 12 · FFN 3072 · vocab 30522"
[[nodiscard]] std::string describe(const ModelSpec& spec);

/// "prefill · batch 1 · seq 128 · float32 · eager attention"; a `cache_type` replaces the
/// workload's KV-cache type.
[[nodiscard]] std::string describe(const Workload& workload, const ModelSpec& spec,
                                   std::string_view cache_type = {});

/// "2 images of 448 × 448: 512 visual tokens" of `sequences` sequences, each with these images.
[[nodiscard]] std::string describe(const WorkloadImages& images, std::int64_t sequences);
/// "2 clips of 30 s: 750 audio tokens" of `sequences` sequences, each with these clips.
[[nodiscard]] std::string describe(const WorkloadAudio& audio, std::int64_t sequences);

/// "417.64 MiB"
[[nodiscard]] std::string describe_bytes(Integer bytes);

/// "1 thread", "2 threads"
[[nodiscard]] std::string describe_threads(int threads);

/// Adds TTFT and TPOT if they are known.
void add_token_times(const std::optional<double>& ttft_s, const std::optional<double>& tpot_s,
                     Document& document);

[[nodiscard]] std::string_view name_of(ModelKind kind) noexcept;

[[nodiscard]] Json to_json(const Workload& workload, const ModelSpec& spec);
/// With the visual tokens of one of `sequences` sequences.
[[nodiscard]] Json to_json(const WorkloadImages& images, std::int64_t sequences);
[[nodiscard]] Json to_json(const WorkloadAudio& audio, std::int64_t sequences);
/// "3.20 MiB arena · 0.50 MiB strided copies · …": the parts that are not 0, and the arena.
[[nodiscard]] std::string describe_allocated(const AllocatedMemory& memory);

/// With the storage type of `cache` as kv_dtype.
[[nodiscard]] Json to_json(const Workload& workload, const ModelSpec& spec,
                           const std::optional<KvCacheUse>& cache);
[[nodiscard]] Json to_json(const Model& model);

/// The verdict of every report: {"passed": …, "text": …}. `passed` is empty if nothing was judged.
[[nodiscard]] Json verdict_json(std::optional<bool> passed, const std::string& text);

/// The machine of a measurement.
[[nodiscard]] Json context_json(const MachineContext& context);

/// Fixed times of operators that a time rests on.
struct FixedTimes {
  double kernel_s = 0;
  double layer_gemm_kernel_s = 0;
  std::optional<DType> layer_gemm_type;  ///< where it is not that of the others
};

/// ", 6 µs per operator with weights (9 in float8)", where `per` is "operator with weights"; empty
/// without fixed times.
[[nodiscard]] std::string fixed_times_text(const FixedTimes& times, std::string_view per);

/// "a step takes 1/1.2 to 1.2 times as long as predicted, within the roofline, for nine of ten
/// runs".
[[nodiscard]] std::string factor_text(double factor);

}  // namespace headroom::detail
