// Operators of diffusion transformers: parts of Op (op.h).
#pragma once

#include <cstdint>

#include "headroom/expr.h"

namespace headroom {

/// Cosines and sines of one number per sequence, such as the time step, at `frequencies`
/// frequencies (arXiv 2006.11239, appendix B). `[batch]` -> `[batch, 2·frequencies]`
struct TimestepFeatures {
  Expr batch;
  Expr frequencies;

  [[nodiscard]] Expr elements() const { return batch * Integer{2} * frequencies; }
};

/// Adds a trained vector `[width]` to every row. Shorter rows, which divide `width`, are repeated.
/// `[rows, width / n]` -> `[rows, width]`
struct TrainedShift {
  Expr rows;
  Expr width;

  [[nodiscard]] Expr elements() const { return rows * width; }
};

/// Modulates tokens by vectors of their sequence, in place: x·(1 + scale) + shift, or x·gate
/// (adaptive layer norm, arXiv 2212.09748, section 3.2). Inputs: `[batch, tokens, width]` and
/// `[batch, vectors·width]`.
struct Modulation {
  enum class Kind { scale_and_shift, gate };
  Kind kind = Kind::scale_and_shift;
  Expr batch;
  Expr tokens;
  Expr width;
  std::int64_t first_vector = 0;  ///< of those that it reads

  [[nodiscard]] Expr elements() const { return batch * tokens * width; }
  [[nodiscard]] std::int64_t vectors() const noexcept {
    return kind == Kind::scale_and_shift ? 2 : 1;
  }
};

/// Copies rows of sequences. `join` appends each sequence of its second input to that of its first,
/// which has `first` tokens; `take` copies `tokens` tokens from number `first` on.
/// -> `[batch, tokens, width]`
struct SequenceRows {
  enum class Kind { join, take };
  Kind kind = Kind::join;
  Expr batch;
  Expr first;
  Expr tokens;
  Expr width;

  [[nodiscard]] Expr elements() const { return batch * tokens * width; }
};

}  // namespace headroom
