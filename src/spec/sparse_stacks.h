// Experts in layers of both an encoder and a decoder: NLLB-MoE, Switch Transformers.
#pragma once

#include <string_view>
#include <vector>

#include "config_reader.h"
#include "headroom/model_spec.h"

namespace headroom::detail {

/// Gives `experts`, of the inner width of the stack's dense network, to the layers where `sparse`
/// is true.
void set_sparse_layers(StackSpec& stack, const std::vector<bool>& sparse, ExpertsSpec experts);

/// Throws Error{invalid_input} at `key` if one stack of two has experts. The decoder may be absent.
void require_experts_in_both(const ConfigReader& config, const ModelSpec& spec,
                             std::string_view key);

}  // namespace headroom::detail
