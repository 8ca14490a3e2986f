// Parts of a model that a run loads.
#pragma once

#include "headroom/model_spec.h"

namespace headroom::detail {

/// `spec` without the parts that a run does not load, such as a tower that only counts.
[[nodiscard]] inline ModelSpec loaded_parts_of(ModelSpec spec) {
  std::erase_if(spec.counted_only,
                [](const CountedWeight& weight) { return !is_loaded(weight.use); });
  return spec;
}

}  // namespace headroom::detail
