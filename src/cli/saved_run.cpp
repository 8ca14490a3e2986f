#include "saved_run.h"

#include "session.h"

namespace headroom::cli {
namespace {

checkpoint::TensorToWrite to_write(const measured::NamedTensor& tensor) {
  return checkpoint::float32_tensor(tensor.name, tensor.shape, tensor.values);
}

}  // namespace

void require_generation_fits(const measured::MeasureOptions& asked, const ModelSpec& spec,
                             const measured::GeneratePrompt& prompt, const Workload& workload) {
  Workload prefill = workload;
  prefill.phase = Phase::prefill;
  prefill.past_len = 0;
  prefill.batch_size = 1;
  prefill.seq_len = prompt.prompt.seq_len;
  std::int64_t new_tokens = prompt.max_new_tokens;
  // LongRoPE computes the keys of a prompt that grows beyond its original context anew.
  const std::int64_t longest = prefill.seq_len + new_tokens;
  const auto first_long = measured::first_long_sequence(spec);
  if (first_long && prefill.seq_len < *first_long && *first_long < longest) {
    prefill.seq_len = *first_long;
    new_tokens = longest - *first_long;
  }
  require_run_fits(spec,
                   {prefill, new_tokens, asked.storage, measured::KeptOutputs::none, asked.backend,
                    1, asked.activations},
                   measured::memory_limit());
}

void add_generation(const measured::MeasureOptions& asked, const ModelSpec& spec,
                    measured::WeightSource& source, const measured::GeneratePrompt& prompt,
                    const Workload& workload, std::vector<checkpoint::TensorToWrite>& tensors) {
  measured::Session session(spec, source,
                            {asked.backend, asked.storage, measured::RowRange::both,
                             workload.seq_len, workload.attention, asked.activations});
  const measured::Generation generation = session.generate(prompt);
  tensors.push_back(checkpoint::int64_tensor(
      "generate.ids", {1, static_cast<std::int64_t>(generation.ids.size())}, generation.ids));
  tensors.push_back(to_write(generation.logits));
}

std::vector<checkpoint::TensorToWrite> tensors_of(const measured::RunOutputs& outputs) {
  std::vector<checkpoint::TensorToWrite> tensors;
  for (const measured::NamedTensor& tensor : outputs.tensors) tensors.push_back(to_write(tensor));
  if (outputs.generated_ids.empty()) return tensors;
  std::vector<std::int64_t> ids;
  for (const auto& of_one : outputs.generated_ids) {
    ids.insert(ids.end(), of_one.begin(), of_one.end());
  }
  const std::int64_t sequences = std::ssize(outputs.generated_ids);
  tensors.push_back(
      checkpoint::int64_tensor("generated_ids", {sequences, std::ssize(ids) / sequences}, ids));
  return tensors;
}

}  // namespace headroom::cli
