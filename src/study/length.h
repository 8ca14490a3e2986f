// The variable of every study: the sequence length. Internal to src/study.
#pragma once

#include "headroom/expr.h"

namespace headroom {

inline const Expr kLength = Symbol::seq_len;

}  // namespace headroom
