#include "setting_options.h"

namespace headroom::cli {

std::string option_of(Setting setting) {
  switch (setting) {
    case Setting::phase:
      return "--phase";
    case Setting::batch_size:
      return "--batch";
    case Setting::seq_len:
      return "--seq";
    case Setting::enc_seq_len:
      return "--enc-seq";
    case Setting::global_tokens:
      return "--global-tokens";
    case Setting::past_len:
      return "--past";
    case Setting::images:
      return "--images";
    case Setting::image_size:
      return "--image-size";
    case Setting::audio:
      return "--audio";
    case Setting::audio_seconds:
      return "--audio-seconds";
    case Setting::frames:
      return "--frames";
    case Setting::dtype:
      return "--dtype";
    case Setting::attention:
      return "--attention";
    case Setting::logits:
      return "--logits";
    case Setting::latent:
      return "--latent";
    case Setting::recompute:
      return "--recompute";
    case Setting::kernels:
      return "--kernels";
    case Setting::kv_dtype:
      return "--kv-dtype";
    case Setting::kv_scales:
      return "--kv-scales";
    case Setting::kv_policy:
      return "--kv-policy";
    case Setting::kv_block:
      return "--kv-block";
    case Setting::kv_capacity:
      return "--kv-capacity";
    case Setting::kv_batched_tokens:
      return "--kv-batched-tokens";
    case Setting::kv_slots:
      return "--kv-slots";
    case Setting::kv_prefix_caching:
      return "--kv-prefix-caching";
    case Setting::kv_speculative_tokens:
      return "--kv-speculative-tokens";
    case Setting::kv_drafter_layers:
      return "--kv-drafter-layers";
    case Setting::subject:
      return "--what";
    case Setting::weights:
      return "--weights";
    case Setting::arithmetic:
      return "--arithmetic";
    case Setting::machine:
      break;
  }
  return "--machine";
}

std::string with_options(std::string_view text) { return restate_settings(text, option_of); }

}  // namespace headroom::cli
