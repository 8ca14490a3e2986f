#include "identity.h"

#include <fmt/format.h>

#include "headroom/error.h"
#include "headroom/storage.h"

namespace headroom::detail {
namespace {

std::string text_of(const std::string& value) { return value; }
std::string text_of(std::int64_t value) { return std::to_string(value); }
std::string text_of(MeasuredPhase value) { return std::string(name_of(value)); }

template <class Value>
void require_same_field(const char* field, const std::optional<Value>& predicted,
                        const std::optional<Value>& measured,
                        const std::string& hint = "compare runs of the same model and workload") {
  if (!predicted || !measured || *predicted == *measured) return;
  throw Error(ErrorCode::invalid_input,
              fmt::format("{} differs: {} predicted, {} measured", field, text_of(*predicted),
                          text_of(*measured)),
              {}, hint);
}

}  // namespace

void require_same(const RunIdentity& predicted, const RunIdentity& measured) {
  require_same_field("model", predicted.model, measured.model);
  require_same_field("phase", predicted.phase, measured.phase);
  require_same_field("batch", predicted.batch_size, measured.batch_size);
  require_same_field("seq", predicted.seq_len, measured.seq_len);
  require_same_field("enc-seq", predicted.enc_seq_len, measured.enc_seq_len);
  require_same_field("past", predicted.past_len, measured.past_len);
  require_same_field("visual tokens", predicted.visual_tokens, measured.visual_tokens);
  require_same_field("audio tokens", predicted.audio_tokens, measured.audio_tokens);
  require_same_field("images", predicted.compared_images, measured.compared_images);
  require_same_field("global tokens", predicted.global_tokens, measured.global_tokens);
  require_same_field("new tokens", predicted.new_tokens, measured.new_tokens);
  require_same_field("dtype", predicted.dtype, measured.dtype,
                     fmt::format("predict with activations in {}, the type that was measured",
                                 measured.dtype.value_or("")));
  require_same_field("attention", predicted.attention, measured.attention);
  require_same_field("logits", predicted.logits, measured.logits);
  require_same_field("threads", predicted.threads, measured.threads);
}

std::string workload_text(const RunIdentity& identity) {
  std::vector<std::string> words;
  const auto add = [&](const char* format, const auto& value) {
    if (value) words.push_back(fmt::format(fmt::runtime(format), *value));
  };
  if (identity.phase) words.emplace_back(name_of(*identity.phase));
  add("batch {}", identity.batch_size);
  add("seq {}", identity.seq_len);
  add("enc-seq {}", identity.enc_seq_len);
  if (identity.past_len != 0) add("past {}", identity.past_len);
  if (identity.visual_tokens != 0) add("{} visual tokens", identity.visual_tokens);
  if (identity.audio_tokens.value_or(0) != 0) add("{} audio tokens", identity.audio_tokens);
  add("images {}", identity.compared_images);
  if (identity.global_tokens != 0) add("{} global tokens", identity.global_tokens);
  add(identity.new_tokens == 1 ? "{} new token" : "{} new tokens", identity.new_tokens);
  if (identity.weights != name_of(std::optional<WeightForm>{})) {
    add("{} weights", identity.weights);
  }
  add("{}", identity.dtype);
  add("{} attention", identity.attention);
  if (identity.logits == name_of(Logits::last)) words.emplace_back("last logits");
  return fmt::format("{}", fmt::join(words, " · "));
}

}  // namespace headroom::detail
