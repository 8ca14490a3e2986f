// Completes a request into a workload. Defaults are set here only.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "default_lengths.h"
#include "default_options.h"
#include "headroom/error.h"
#include "headroom/tiled_tower.h"
#include "headroom/workload.h"
#include "resolve_audio.h"
#include "resolve_images.h"
#include "resolve_latent.h"
#include "setting_format.h"
#include "sizes.h"

namespace headroom {
namespace {

using detail::default_enc_length;
using detail::kDefaultLength;
using detail::positions_of;
using detail::require_at_least;

constexpr std::int64_t kDefaultPast = kDefaultLength - 1;  // so that a decode step sees 128 keys

/// `length`, or the next lower one that attention in chunks can cut, padded to the widest window,
/// into windows of every layer.
std::int64_t cut_by_windows(std::int64_t length, const StackSpec& stack) {
  if (!stack.self_attention.global) return length;
  std::int64_t widest = 0;
  std::int64_t common = 1;
  for (std::size_t variant = 0; variant <= stack.variants.size(); ++variant) {
    const std::int64_t width = 2 * stack.attention_of(variant).block_size;
    widest = std::max(widest, width);
    common = std::lcm(common, width);
  }
  return common == widest ? length : std::max(common, length / common * common);
}

std::int64_t default_length(const ModelSpec& spec) {
  const std::int64_t most = positions_of(spec.position).value_or(kDefaultLength);
  const std::int64_t length = std::max<std::int64_t>(1, std::min(kDefaultLength, most));
  return cut_by_windows(length, spec.main_stack());
}

std::int64_t image_tokens(const WorkloadRequest& request, const ModelSpec& spec) {
  const ImageSpec& image = *spec.embedding.image;
  const std::int64_t tokens = image.num_tokens();
  const std::int64_t wanted = request.seq_len.value_or(tokens);
  switch (image.interpolation) {
    case PositionInterpolation::none:
      if (wanted == tokens) return tokens;
      throw_invalid_input(
          fmt::format("{} reads images of {} tokens, so {} cannot be {}", spec.name, tokens,
                      Setting::seq_len, wanted),
          fmt::format("use {} {}, or change image_size in the config", Setting::seq_len, tokens));
    case PositionInterpolation::bicubic:
    case PositionInterpolation::bicubic_antialiased:
    case PositionInterpolation::linear:
    case PositionInterpolation::linear_centres:
    case PositionInterpolation::linear_antialiased:
    case PositionInterpolation::linear_swapped:
    case PositionInterpolation::any_size:
      break;
  }
  if (wanted > image.prefix_tokens()) return wanted;
  throw_invalid_input(
      fmt::format("an image of {} has more than {} tokens", spec.name, image.prefix_tokens()),
      fmt::format("use a larger {}", Setting::seq_len));
}

std::int64_t resolve_seq_len(const WorkloadRequest& request, const ModelSpec& spec,
                             const Workload& workload) {
  if (workload.sample) return detail::latent_tokens(spec.denoiser->latent, *workload.sample);
  if (spec.embedding.image) return image_tokens(request, spec);
  const bool is_step = request.phase == Phase::decode;
  const bool sees = workload.images.count > 0 && !spec.tower->pooling && !is_step;
  if (sees || workload.audio.count > 0) {
    return detail::tokens_with_towers(request, workload, default_length(spec));
  }
  if (request.seq_len) return *request.seq_len;
  return request.phase == Phase::decode ? 1 : default_length(spec);
}

void require_cache(const WorkloadRequest& request, const ModelSpec& spec) {
  if (spec.main_stack().causal()) return;
  if (spec.denoiser) {
    throw_invalid_input(
        fmt::format("{} is a diffusion transformer: one pass is one denoising step, so it has no "
                    "KV-cache and no {}",
                    spec.name, request.phase == Phase::decode ? "decode phase" : "past tokens"),
        fmt::format("use {} prefill without {}", Setting::phase, Setting::past_len));
  }
  if (spec.is_layer()) {
    throw_invalid_input(
        fmt::format("{} has no state of earlier positions, so it has no {}", spec.name,
                    request.phase == Phase::decode ? "decode phase" : "past tokens"),
        fmt::format("use {} prefill without {}, or a causal layer", Setting::phase,
                    Setting::past_len));
  }
  throw_invalid_input(
      fmt::format("{} has no causal decoder, so it has no KV-cache and no {}", spec.name,
                  request.phase == Phase::decode ? "decode phase" : "past tokens"),
      request.phase == Phase::decode ? fmt::format("use {} prefill", Setting::phase)
                                     : fmt::format("leave out {}", Setting::past_len));
}

/// Returns whether any layer caches less than the keys and values of all heads and tokens.
bool keeps_less_than_all(const ModelSpec& spec) {
  const StackSpec& stack = spec.main_stack();
  for (std::size_t variant = 0; variant <= stack.variants.size(); ++variant) {
    const AttentionSpec& attention = stack.attention_of(variant);
    if (attention.latent || attention.window.kind != WindowKind::none) return true;
  }
  return false;
}

/// Encoder tokens, or the rows of a sequence's images that layers of cross-attention read.
std::int64_t encoded_length(const WorkloadRequest& request, const Workload& workload,
                            const ModelSpec& spec) {
  if (!attends_to_images(spec)) return request.enc_seq_len.value_or(default_enc_length(spec));
  if (workload.images.count == 0) return 0;
  return checked_int64(checked_multiply(workload.images.count, keys_of_image(*spec.tower)));
}

/// Activations of 8 bits exist between two operators only: residual stream, saved tensors and
/// messages stay in 16 bits (arXiv 2412.19437, section 3.3).
/// The config's own type if it has 16 bits; engines run a quantised config that states none in
/// bfloat16 (vLLM, _find_dtype of vllm/config/model.py, takes a 16-bit type in place of float32).
DType default_dtype(const ModelSpec& spec) {
  const bool states_none = spec.torch_dtype.empty() && !spec.quantization.empty();
  return stored_16_bit_type(spec).value_or(states_none ? DType::bfloat16 : DType::float32);
}

DType resolve_dtype(const WorkloadRequest& request, const ModelSpec& spec) {
  const DType dtype = request.dtype.value_or(default_dtype(spec));
  if (bytes_of(dtype) > 1) return dtype;
  throw_invalid_input(
      fmt::format("{} is the type of activations, which have 16 or 32 bits", Setting::dtype),
      fmt::format("use {} {} for the weights, and {} {} for the GEMMs", Setting::weights,
                  name_of(dtype), Setting::arithmetic, name_of(dtype)));
}

[[noreturn]] void refuse_without_training(Setting setting) {
  throw_invalid_input(fmt::format("{} requires {} train", setting, Setting::phase),
                      fmt::format("add {} train, or leave out {}", Setting::phase, setting));
}

/// Tokens with global attention: those given, or the class's own where their number is known.
std::int64_t resolve_global_tokens(const WorkloadRequest& request, const ModelSpec& spec) {
  return request.global_tokens.value_or(detail::default_global_tokens(spec));
}

/// Attention in chunks has no fused kernel with global tokens or with windows of several sizes, and
/// its chunks must fill the padded sequence.
void require_chunks(const Workload& workload, const ModelSpec& spec) {
  const StackSpec& stack = spec.main_stack();
  if (!stack.self_attention.global) return;
  if (workload.global_tokens > workload.seq_len) {
    throw_invalid_input(fmt::format("{} of {} exceeds {} of {}", Setting::global_tokens,
                                    workload.global_tokens, Setting::seq_len, workload.seq_len),
                        fmt::format("use a smaller {}", Setting::global_tokens));
  }
  if (workload.attention == AttentionImplementation::fused) {
    if (workload.global_tokens == 0 && stack.variants.empty()) return;
    throw_invalid_input(
        fmt::format("{} has no fused kernel for tokens with global attention or windows of several "
                    "sizes",
                    spec.name),
        fmt::format("use {} eager", Setting::attention));
  }
  const std::int64_t widest = 2 * detail::traits_of(spec).window.size;
  const std::int64_t tokens = (workload.seq_len + widest - 1) / widest * widest;
  for (std::size_t variant = 0; variant <= stack.variants.size(); ++variant) {
    const std::int64_t width = 2 * stack.attention_of(variant).block_size;
    if (tokens % width == 0) continue;
    throw_invalid_input(
        fmt::format("{} pads {} tokens to {}, which a layer cannot cut into windows of {}",
                    spec.name, workload.seq_len, tokens, width),
        fmt::format("use a {} that is a multiple of every attention_window", Setting::seq_len));
  }
}

void require_logits(const WorkloadRequest& request, const ModelSpec& spec) {
  if (!request.logits) return;
  const std::string leave_out = fmt::format("leave out {}", Setting::logits);
  if (!can_generate(spec)) {
    throw_invalid_input(
        fmt::format("{} is not a decoder with a language-model head, so {} has no effect",
                    spec.name, Setting::logits),
        leave_out);
  }
  if (request.phase == Phase::train && request.logits == Logits::last) {
    throw_invalid_input(
        fmt::format("training needs the logits of every token, not {} last", Setting::logits),
        leave_out);
  }
}

void validate(const WorkloadRequest& request, const ModelSpec& spec) {
  require_at_least(Setting::batch_size, request.batch_size, 1);
  require_at_least(Setting::seq_len, request.seq_len.value_or(1), 1);
  require_at_least(Setting::enc_seq_len, request.enc_seq_len.value_or(1), 1);
  require_at_least(Setting::past_len, request.past_len.value_or(0), 0);
  require_at_least(Setting::global_tokens, request.global_tokens.value_or(0), 0);
  if (request.global_tokens && !spec.main_stack().self_attention.global) {
    throw_invalid_input(fmt::format("{} has no tokens with global attention, so {} has no effect",
                                    spec.name, Setting::global_tokens),
                        fmt::format("leave out {}", Setting::global_tokens));
  }
  if (request.enc_seq_len && !spec.reads_two_sequences()) {
    throw_invalid_input(fmt::format("{} is not an encoder-decoder, so {} has no effect", spec.name,
                                    Setting::enc_seq_len),
                        fmt::format("leave out {}", Setting::enc_seq_len));
  }
  if (request.recompute != Recompute::none && request.phase != Phase::train) {
    refuse_without_training(Setting::recompute);
  }
  if (request.kernels != Kernels::reference && request.phase != Phase::train) {
    refuse_without_training(Setting::kernels);
  }
  require_logits(request, spec);
  const bool cached = spec.main_stack().causal() && request.phase != Phase::train;
  if (request.kv_dtype && !cached) {
    throw_invalid_input(fmt::format("{} has no KV-cache in the {} phase, so {} has no effect",
                                    spec.name, name_of(request.phase), Setting::kv_dtype),
                        fmt::format("leave out {}", Setting::kv_dtype));
  }
  const bool four_bits = request.kv_dtype == DType::float4 || request.kv_dtype == DType::int4;
  if (four_bits) {
    throw_invalid_input(fmt::format("{} is a type of GEMMs, not of a workload's {}",
                                    name_of(*request.kv_dtype), Setting::kv_dtype),
                        "give the type in a KvCacheRequest");
  }
  const bool has_past = request.past_len.value_or(0) > 0;
  if (request.phase == Phase::train && has_past) {
    throw_invalid_input("training has no KV-cache, so it has no past tokens",
                        fmt::format("leave out {}", Setting::past_len));
  }
  if (request.phase == Phase::decode || has_past) require_cache(request, spec);
  if (request.phase == Phase::prefill && has_past && keeps_less_than_all(spec)) {
    throw_invalid_input(
        fmt::format(
            "{} caches a window or latent vectors, so a prefill cannot continue from a past",
            spec.name),
        fmt::format("use {} decode with {} for the new tokens", Setting::phase, Setting::seq_len));
  }
}

}  // namespace

std::optional<DType> stored_16_bit_type(const ModelSpec& spec) noexcept {
  for (const DType type : {DType::float16, DType::bfloat16}) {
    if (spec.torch_dtype == name_of(type)) return type;
  }
  return std::nullopt;
}

std::optional<DType> stated_kv_dtype(const ModelSpec& spec) noexcept {
  if (!spec.storage.kv_cache) return std::nullopt;
  switch (*spec.storage.kv_cache) {
    case StatedType::float8:
    case StatedType::mxfp8:
      return DType::float8;
    case StatedType::int8:
      return DType::int8;
    case StatedType::float4:
    case StatedType::mxfp4:
    case StatedType::nvfp4:
    case StatedType::int4:
      break;
  }
  return std::nullopt;
}

std::optional<DType> stated_arithmetic(const ModelSpec& spec) noexcept {
  if (!spec.storage.activations) return std::nullopt;
  switch (*spec.storage.activations) {
    case StatedType::float8:
    case StatedType::mxfp8:
      return DType::float8;
    case StatedType::float4:
    case StatedType::mxfp4:
    case StatedType::nvfp4:
      return DType::float4;
    case StatedType::int8:
      return DType::int8;
    case StatedType::int4:
      break;
  }
  return DType::int4;
}

bool can_generate(const ModelSpec& spec) noexcept {
  return spec.main_stack().causal() && spec.head.language_model.has_value();
}

bool has_latent_attention(const ModelSpec& spec) {
  const StackSpec& stack = spec.main_stack();
  for (std::size_t variant = 0; variant <= stack.variants.size(); ++variant) {
    if (stack.attention_of(variant).latent) return true;
  }
  return false;
}

WorkloadRequest prompt_request(WorkloadRequest request) {
  // A training step is no prompt: callers refuse it, and not for its logits.
  const bool trains = request.phase == Phase::train;
  if (!request.logits && !trains) request.logits = Logits::last;
  return request;
}

namespace {

/// Of a decode step, as many as leave positions for its tokens.
std::int64_t default_past(const Workload& workload, const ModelSpec& spec) {
  if (workload.phase != Phase::decode) return 0;
  const std::int64_t positions = positions_of(spec.position).value_or(kDefaultLength);
  return std::clamp<std::int64_t>(positions - workload.seq_len, 0, kDefaultPast);
}

}  // namespace

Workload resolve(const WorkloadRequest& request, const ModelSpec& spec) {
  validate(request, spec);
  Workload workload;
  workload.phase = request.phase;
  workload.batch_size = request.batch_size;
  workload.images = detail::resolve_images(request, spec);
  workload.audio = detail::resolve_audio(request, spec);
  workload.sample = detail::resolve_sample(request, spec);
  workload.seq_len = resolve_seq_len(request, spec, workload);
  workload.enc_seq_len = encoded_length(request, workload, spec);
  workload.past_len = request.past_len.value_or(default_past(workload, spec));
  workload.dtype = resolve_dtype(request, spec);
  workload.kv_dtype = request.kv_dtype.value_or(stated_kv_dtype(spec).value_or(workload.dtype));
  workload.weights = request.weights;
  workload.arithmetic = request.arithmetic;
  if (!request.arithmetic && !request.weights) workload.arithmetic = stated_arithmetic(spec);
  workload.attention = request.attention.value_or(AttentionImplementation::eager);
  workload.latent = request.latent;
  workload.logits = request.logits.value_or(Logits::all);
  workload.recompute = request.recompute;
  workload.kernels = request.kernels;
  workload.global_tokens = resolve_global_tokens(request, spec);
  require_chunks(workload, spec);
  return workload;
}

}  // namespace headroom
