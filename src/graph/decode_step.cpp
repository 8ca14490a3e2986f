// Passes of a generation after its prompt.
#include "headroom/expr.h"
#include "headroom/workload.h"

namespace headroom {

Workload decode_step(Workload prompt, std::int64_t step) {
  prompt.phase = Phase::decode;
  prompt.past_len = checked_int64(Integer{prompt.past_len} + prompt.seq_len + step - 1);
  prompt.seq_len = 1;
  return prompt;
}

}  // namespace headroom
