#include "inspect/published_gguf.h"

#include <algorithm>

#include "support/gguf_writer.h"

namespace headroom::test {
namespace {

bool has_layer_norms(const std::string& architecture) {
  for (const char* const name : {"phi2", "falcon", "bloom", "mpt", "stablelm", "command-r",
                                 "starcoder", "starcoder2", "gptneox", "dbrx"}) {
    if (architecture == name) return true;
  }
  return false;
}

}  // namespace

std::string file_of(const PublishedGguf& model) {
  const std::string architecture = model.architecture;
  GgufWriter writer;
  writer.add("general.architecture", model.architecture);
  const auto add = [&](const std::string& key, std::uint32_t value) {
    writer.add(architecture + "." + key, value);
  };
  add("context_length", model.counts.context);
  add("embedding_length", model.counts.width);
  add("block_count", model.counts.layers);
  add("attention.head_count", model.counts.heads);
  const auto add_unless_listed = [&](const std::string& key, std::uint32_t value) {
    const auto listed = std::ranges::find(
        model.lists, key, &std::pair<std::string, std::vector<std::uint32_t>>::first);
    if (listed == model.lists.end()) {
      add(key, value);
    } else {
      writer.add(architecture + "." + key, listed->second);
    }
  };
  add_unless_listed("feed_forward_length", model.counts.inner);
  add_unless_listed("attention.head_count_kv", model.counts.kv_heads);
  for (const auto& [key, values] : model.lists) {
    const bool written = key == "feed_forward_length" || key == "attention.head_count_kv";
    if (!written) writer.add(architecture + "." + key, values);
  }
  add("vocab_size", model.counts.words);
  writer.add(architecture + (has_layer_norms(architecture) ? ".attention.layer_norm_epsilon"
                                                           : ".attention.layer_norm_rms_epsilon"),
             1e-5F);
  for (const auto& [key, value] : model.more) {
    add(key, value);
    if (key != "rope.scaling.original_context_length") continue;
    writer.add(architecture + ".rope.scaling.type", "yarn");
    writer.add(architecture + ".rope.scaling.factor", 32.0F);
  }
  for (const std::string& tensor : model.tensors) writer.tensor(tensor, {1});
  return writer.str();
}

}  // namespace headroom::test
