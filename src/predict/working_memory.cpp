#include "working_memory.h"

#include <initializer_list>

namespace headroom::detail {
namespace {

/// Gathered patches of all images.
Expr working(const PatchEmbedding& op) { return op.batch * op.patches * op.patch_elements; }

/// The padded input, and the rows of one tap if they are copied.
Expr working(const Convolution& op, const Bindings& sizes) {
  const Expr padded =
      op.batch * op.in_channels * ((op.length - Integer{1}) * op.stride + op.reach() + Integer{1});
  const bool copies = op.batch.evaluate(sizes) > 1 || op.stride.evaluate(sizes) > 1;
  return copies ? padded + op.batch * op.in_channels * op.length : padded;
}

Integer product(std::initializer_list<Integer> factors) {
  Integer result = 1;
  for (const Integer factor : factors) result = checked_multiply(result, factor);
  return result;
}

/// Floats of the inputs, without token ids.
Integer input_floats(const ModelSpec& spec, const Workload& workload) {
  const Integer batch = workload.batch_size;
  const Integer enc_seq_len = workload.enc_seq_len;
  switch (spec.embedding.input) {
    case InputKind::tokens:
      break;
    case InputKind::patches: {
      const ImageSpec& image = *spec.embedding.image;
      return product({batch, image.num_channels, image.image_size, image.image_size});
    }
    case InputKind::audio:  // two frames per encoder position
      return product({batch, 2, spec.embedding.audio->num_mel_bins, enc_seq_len});
    case InputKind::hidden_states: {  // the inputs and a working copy
      const Integer encoded = spec.reads_two_sequences() ? enc_seq_len : 0;
      return product({batch, 2, spec.hidden_size, checked_add(workload.seq_len, encoded)});
    }
  }
  return 0;
}

}  // namespace

Integer working_floats(const Graph& graph, const ModelSpec& spec, const Workload& workload) {
  const Bindings sizes = bindings_of(workload, graph);
  Integer floats = input_floats(spec, workload);
  for (const Block& block : graph.blocks) {
    for (const Node& node : block.nodes) {
      if (const auto* patches = std::get_if<PatchEmbedding>(&node.op)) {
        floats = checked_add(floats, working(*patches).evaluate(sizes));
      } else if (const auto* convolution = std::get_if<Convolution>(&node.op)) {
        floats = checked_add(floats, working(*convolution, sizes).evaluate(sizes));
      }
    }
  }
  return floats;
}

}  // namespace headroom::detail
