#include "ffn_crossover.h"

#include <fmt/format.h>

#include "headroom/expr.h"

namespace headroom::detail {

std::string describe(const FfnCrossover& crossover) {
  const std::string attention = format(crossover.attention);
  const std::string ffn = format(crossover.ffn);
  // Attention's cost per position never falls with the length, the FFN's is constant: attention
  // that does not overtake it in the end has never been above it.
  if (!crossover.seq_len) {
    return fmt::format("stays below the FFN at every length: {} ≤ {}", attention, ffn);
  }
  if (*crossover.seq_len == 1) {
    return fmt::format("is above the FFN at every length: {} > {}", attention, ffn);
  }
  return fmt::format("overtakes the FFN at {} = {}: {} > {}", info(Symbol::seq_len).unicode,
                     with_separators(*crossover.seq_len), attention, ffn);
}

}  // namespace headroom::detail
