// Arbitrary JSON as the inputs of a run gives an error, or tokens within the vocabulary and
// placeholders of images. The models read texts, two sequences, or texts with images.
#include <algorithm>

#include "fuzz_target.h"
#include "headroom/model_source.h"
#include "inputs.h"
#include "temporary_file.h"

using namespace headroom;

namespace {

const std::vector<ModelSpec>& models() {
  static const std::vector<ModelSpec> kModels = [] {
    std::vector<ModelSpec> specs;
    for (const char* const name : {"gpt2", "t5-small", "gemma-3-4b", "qwen3-vl-2b"}) {
      specs.push_back(load_model(name).spec);
    }
    return specs;
  }();
  return kModels;
}

void require_in_vocabulary(const measured::TokenInputs& tokens, const ModelSpec& spec) {
  const auto outside = [&](std::int64_t id) {
    if (std::ranges::find(spec.tower_tokens, id) != spec.tower_tokens.end()) return false;
    return id < 0 || id >= spec.embedding.vocab_size;
  };
  if (std::ranges::any_of(tokens.ids, outside)) std::abort();
  if (std::ssize(tokens.ids) != tokens.batch * tokens.seq_len) std::abort();
}

void read(const std::filesystem::path& file, const ModelSpec& spec) {
  try {
    const measured::InputFile inputs = measured::read_inputs(file, spec);
    require_in_vocabulary(inputs.inputs.main, spec);
    if (inputs.generate) require_in_vocabulary(inputs.generate->prompt, spec);
  } catch (const Error& error) {
    // Pixels are in a file beside this one, which is missing.
    if (error.code() != ErrorCode::missing_resource) throw;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::filesystem::path file = test::temporary_file(data, size, "inputs.json");
  for (const ModelSpec& spec : models()) {
    (void)test::accepts([&] { read(file, spec); });
  }
  return 0;
}
