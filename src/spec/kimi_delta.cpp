#include "kimi_delta.h"

#include "decoder.h"

namespace headroom::detail {

GatedDeltaSpec kimi_delta(const KimiDeltaSizes& sizes) {
  GatedDeltaSpec delta;
  delta.num_key_heads = sizes.num_heads;
  delta.num_value_heads = sizes.num_heads;
  delta.key_head_dim = sizes.head_dim;
  delta.value_head_dim = sizes.head_dim;
  delta.conv_kernel_dim = sizes.conv_kernel_dim;
  delta.decay = DeltaDecay::each_key_dim;
  delta.gate = ActivationKind::sigmoid;
  return delta;
}

void spread_kimi_delta(StackSpec& stack, const std::vector<bool>& latent,
                       const GatedDeltaSpec& delta) {
  vary_layers(stack, latent, [&](LayerVariant& variant) {
    AttentionSpec& attention = variant.self_attention;
    attention.kind = AttentionKind::gated_delta;
    attention.gated_delta = delta;
    attention.latent.reset();
    attention.indexer.reset();
    attention.output_gate = ContextGate::none;
    attention.output_bias = false;
  });
}

}  // namespace headroom::detail
