// The symbol that every study varies. Internal to src/study.
#pragma once

#include "headroom/expr.h"

namespace headroom {

inline const Expr kLength = Symbol::seq_len;

}  // namespace headroom
