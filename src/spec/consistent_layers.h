// Rules between the layers of a model that no single key states.
#pragma once

#include <string>

#include "headroom/model_spec.h"

namespace headroom::detail {

/// Throws Error{invalid_input} at `file` if a token uses more experts than a layer has, if query
/// heads cannot share key-value heads equally, if RoPE rotates more than a head, or if a layer
/// shares the keys of an earlier layer with its kind of window and none has any.
void require_consistent_layers(const ModelSpec& spec, const std::string& file);

}  // namespace headroom::detail
