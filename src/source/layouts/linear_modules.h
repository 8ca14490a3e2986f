// The Linear modules of a model's class, by the names that its checkpoints give them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "headroom/model_spec.h"

namespace headroom::detail {

/// One Linear of a layer, or of the model.
struct LinearModule {
  std::string name;  ///< "layers.*.self_attn.q_proj", where * stands for layers and experts
  std::int64_t in_features = 0;
  std::int64_t out_features = 0;
  std::int64_t copies = 1;  ///< over layers and experts
  bool is_head = false;     ///< from hidden states to words or classes
};

/// All Linear modules, in the order of the forward pass. A projection that is stored as one module,
/// such as Phi-3's qkv_proj, is one here. Experts that a class stacks into one tensor are no
/// modules. Throws Error{invalid_input} if the family has no stored weights.
[[nodiscard]] std::vector<LinearModule> linear_modules(const ModelSpec& spec);

}  // namespace headroom::detail
