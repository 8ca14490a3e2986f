// Data parallelism: every replica of a model runs some of the sequences. The micro-batches of a
// pipeline are divided alike. Internal to src/measured and the program.
#pragma once

#include <vector>

#include "headroom/workload.h"
#include "inputs.h"
#include "rank_context.h"
#include "session.h"

namespace headroom::measured {

/// The sequences of `whole` that a replica runs: an equal share of the batch, in its order. The
/// replicas must divide the batch. Throws Error{invalid_input} for images or sound in a text, which
/// belong to no one sequence.
[[nodiscard]] ModelInputs inputs_of_replica(ModelInputs whole, GroupPosition replica);

/// `whole` with the batch of one replica.
[[nodiscard]] Workload workload_of_replica(Workload whole, GroupPosition replica);

/// The part of an output of all sequences that belongs to a replica's.
[[nodiscard]] NamedTensor output_of_replica(const NamedTensor& whole, GroupPosition replica);

/// Appends an output of the next replica's sequences.
void append_replica(const NamedTensor& next, NamedTensor& whole);
/// Likewise to the one of that name in `all`, or as a new one.
void append_replica(NamedTensor next, std::vector<NamedTensor>& all);

}  // namespace headroom::measured
