// Keys that no reader knows, and that say what the model's class does anyway.
#pragma once

#include "headroom/model_spec.h"
#include "unread_keys.h"

namespace headroom::detail {

/// Removes the structural keys that turn off a bias or a norm which the text model does not have,
/// and a decoder's number of token types.
void drop_agreeing_flags(UnreadKeys& unread, const ModelSpec& spec);

}  // namespace headroom::detail
