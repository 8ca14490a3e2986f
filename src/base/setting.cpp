#include <algorithm>

#include "enum_table.h"
#include "headroom/error.h"

namespace headroom {
namespace {

constexpr char kQuote = '`';

struct SettingName {
  Setting setting;
  std::string_view name;
};
constexpr SettingName kSettingNames[] = {
    {Setting::phase, "phase"},
    {Setting::batch_size, "batch_size"},
    {Setting::seq_len, "seq_len"},
    {Setting::enc_seq_len, "enc_seq_len"},
    {Setting::global_tokens, "global_tokens"},
    {Setting::past_len, "past_len"},
    {Setting::images, "images"},
    {Setting::image_size, "image_size"},
    {Setting::audio, "audio"},
    {Setting::audio_seconds, "audio_seconds"},
    {Setting::frames, "frames"},
    {Setting::dtype, "dtype"},
    {Setting::attention, "attention"},
    {Setting::logits, "logits"},
    {Setting::latent, "latent"},
    {Setting::recompute, "recompute"},
    {Setting::kernels, "kernels"},
    {Setting::kv_dtype, "kv_dtype"},
    {Setting::kv_scales, "kv_cache.scales"},
    {Setting::kv_policy, "kv_cache.policy"},
    {Setting::kv_block, "kv_cache.block"},
    {Setting::kv_capacity, "kv_cache.capacity"},
    {Setting::kv_batched_tokens, "kv_cache.batched_tokens"},
    {Setting::kv_slots, "kv_cache.slots"},
    {Setting::kv_prefix_caching, "kv_cache.prefix_caching"},
    {Setting::kv_speculative_tokens, "kv_cache.speculative_tokens"},
    {Setting::kv_drafter_layers, "kv_cache.drafter_layers"},
    {Setting::subject, "subject"},
    {Setting::weights, "weights"},
    {Setting::arithmetic, "arithmetic"},
    {Setting::machine, "machine"},
};
static_assert(detail::lists_every<kSettingNames>(&SettingName::setting));

}  // namespace

std::string_view name_of(Setting setting) noexcept {
  return kSettingNames[static_cast<std::size_t>(setting)].name;
}

std::string quoted(Setting setting) { return kQuote + std::string(name_of(setting)) + kQuote; }

std::string restate_settings(std::string_view text,
                             const std::function<std::string(Setting)>& name) {
  std::string restated;
  while (!text.empty()) {
    const std::size_t open = std::min(text.find(kQuote), text.size());
    restated += text.substr(0, open);
    text.remove_prefix(open);
    const std::size_t close = text.find(kQuote, 1);
    if (close == std::string_view::npos) return restated.append(text);
    const std::string_view word = text.substr(1, close - 1);
    const auto* const known = std::ranges::find(kSettingNames, word, &SettingName::name);
    restated += known == std::end(kSettingNames) ? std::string(text.substr(0, close + 1))
                                                 : name(known->setting);
    text.remove_prefix(close + 1);
  }
  return restated;
}

}  // namespace headroom
