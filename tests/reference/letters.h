// Symbols under the letters of the formulas.
#pragma once

#include "headroom/expr.h"

namespace headroom::test {

inline const Expr l = Symbol::num_hidden_layers;
inline const Expr b = Symbol::batch_size;
inline const Expr s = Symbol::seq_len;
inline const Expr t = Symbol::visible_keys;
inline const Expr n = Symbol::enc_seq_len;
inline const Expr d = Symbol::hidden_size;
inline const Expr h = Symbol::num_attention_heads;
inline const Expr V = Symbol::vocab_size;

}  // namespace headroom::test
