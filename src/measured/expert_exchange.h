// Routed experts that are spread over ranks: a rank sends every selection of its tokens to the rank
// of the expert, and gets the expert's output back (arXiv 2006.16668, section 3.1). Internal to
// src/measured.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <vector>

#include "communicator.h"
#include "kernels/aligned.h"
#include "kernels/experts.h"
#include "program.h"

namespace headroom::measured {

/// The tokens of one layer on their way to the experts and back.
///
/// A plan gives every rank as many selections as its own tokens have, and the arena has room for
/// so many. A rank whose experts are chosen more often runs them in several rounds, each of at most
/// that number; the other selections wait in a buffer.
class ExpertExchange {
 public:
  /// `own` orders the selections of this rank's tokens by all experts. `room` selections fit in one
  /// round.
  ExpertExchange(Communicator& group, std::shared_ptr<const ExpertPlan> own, std::int64_t room);

  [[nodiscard]] const std::shared_ptr<const ExpertPlan>& own() const noexcept { return own_; }
  /// Order of the selections in the current round by this rank's experts; only `first` is set.
  [[nodiscard]] std::shared_ptr<const ExpertPlan> round_plan() const noexcept { return round_; }
  /// Buffers, which grow to the most selections that came.
  [[nodiscard]] std::vector<std::shared_ptr<const AlignedVector<float>>> buffers() const;

  /// Sends `rows` [own slots, width] to the ranks of their experts, and loads the first round into
  /// `arrived` [room, width].
  void send(const float* rows, std::int64_t width, float* arrived);
  /// Returns the outputs of all rounds to their tokens' ranks. `returned` [own slots, width].
  void return_to(float* returned, std::int64_t width);

  /// Operators that run on the experts' ranks, in their order; `experts` is the last.
  using Run = std::function<StepCount(std::int64_t layer)>;
  void add_step(Run run) { steps_.push_back(std::move(run)); }
  /// Keeps the first round's outputs, `computed` [room, width], and runs the others.
  [[nodiscard]] StepCount run_other_rounds(std::int64_t layer, const float* computed,
                                           std::int64_t width);

  /// Tensors between both collectives.
  std::set<TensorId> tensors;

 private:
  /// Selections of one expert that one rank sent: consecutive in the order of arrival, and in that
  /// by expert.
  struct Segment {
    std::int64_t arrived = 0;
    std::int64_t sorted = 0;
    std::int64_t count = 0;
  };

  void exchange_counts();
  void sort_segments(const std::vector<std::int64_t>& counts);
  void load(std::int64_t round);
  void store(std::int64_t round, const float* computed, std::int64_t width);
  /// Calls copy(row in the order of arrival, row of the round, rows) for the selections of a round.
  template <class Copy>
  void for_each_run(std::int64_t round, Copy copy) const;

  Communicator& group_;
  std::shared_ptr<const ExpertPlan> own_;
  std::int64_t room_;
  std::int64_t local_experts_;
  std::shared_ptr<ExpertPlan> round_;
  std::vector<Run> steps_;
  // Of the last layer that was sent.
  std::vector<std::int64_t> sent_rows_;      ///< by rank
  std::vector<std::int64_t> received_rows_;  ///< by rank
  std::vector<Segment> segments_;
  std::vector<std::int64_t> first_;  ///< [local experts + 1], of all rounds
  std::int64_t width_ = 0;
  float* arrived_ = nullptr;
  std::shared_ptr<AlignedVector<float>> inbox_;
  std::shared_ptr<AlignedVector<float>> outbox_;
};

}  // namespace headroom::measured
