#include "expert_exchange.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace headroom::measured {
namespace {

std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }

std::vector<std::int64_t> times(const std::vector<std::int64_t>& rows, std::int64_t width) {
  std::vector<std::int64_t> elements = rows;
  for (std::int64_t& count : elements) count *= width;
  return elements;
}

std::int64_t sum(const std::vector<std::int64_t>& counts) {
  return std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
}

/// The first `floats` of a buffer that grows to the most that were asked for.
std::span<float> grown(AlignedVector<float>& buffer, std::int64_t floats) {
  if (buffer.size() < index(floats)) buffer.resize(index(floats));
  return std::span(buffer).first(index(floats));
}

}  // namespace

ExpertExchange::ExpertExchange(Communicator& group, std::shared_ptr<const ExpertPlan> own,
                               std::int64_t room)
    : group_(group),
      own_(std::move(own)),
      room_(room),
      local_experts_((std::ssize(own_->first) - 1) / group.size()),
      round_(std::make_shared<ExpertPlan>(0, local_experts_, own_->per_token)),
      sent_rows_(index(group.size())),
      received_rows_(index(group.size())),
      first_(index(local_experts_ + 1)),
      inbox_(std::make_shared<AlignedVector<float>>()),
      outbox_(std::make_shared<AlignedVector<float>>()) {}

std::vector<std::shared_ptr<const AlignedVector<float>>> ExpertExchange::buffers() const {
  return {inbox_, outbox_};
}

void ExpertExchange::send(const float* rows, std::int64_t width, float* arrived) {
  width_ = width;
  arrived_ = arrived;
  exchange_counts();
  group_.all_to_all({rows, own_->row.size() * index(width)}, times(sent_rows_, width),
                    grown(*inbox_, sum(received_rows_) * width), times(received_rows_, width));
  load(0);
}

void ExpertExchange::exchange_counts() {
  std::vector<std::int64_t> own(own_->first.size() - 1);
  for (std::size_t expert = 0; expert < own.size(); ++expert) {
    own[expert] = own_->first[expert + 1] - own_->first[expert];
  }
  std::vector<std::int64_t> counts(own.size());  // [rank, local expert]
  group_.exchange_counts(own, counts);
  for (std::int64_t rank = 0; rank < group_.size(); ++rank) {
    const auto of_rank = [&](const std::vector<std::int64_t>& all) {
      const auto begin = all.begin() + rank * local_experts_;
      return std::accumulate(begin, begin + local_experts_, std::int64_t{0});
    };
    sent_rows_[index(rank)] = of_rank(own);
    received_rows_[index(rank)] = of_rank(counts);
  }
  sort_segments(counts);
}

/// Ranks send their selections by expert, so that one expert's are apart by rank on arrival.
void ExpertExchange::sort_segments(const std::vector<std::int64_t>& counts) {
  std::vector<std::int64_t> arrived(counts.size());
  std::exclusive_scan(counts.begin(), counts.end(), arrived.begin(), std::int64_t{0});
  segments_.clear();
  std::int64_t sorted = 0;
  for (std::int64_t expert = 0; expert < local_experts_; ++expert) {
    first_[index(expert)] = sorted;
    for (std::int64_t rank = 0; rank < group_.size(); ++rank) {
      const std::size_t i = index(rank * local_experts_ + expert);
      segments_.push_back({arrived[i], sorted, counts[i]});
      sorted += counts[i];
    }
  }
  first_.back() = sorted;
}

template <class Copy>
void ExpertExchange::for_each_run(std::int64_t round, Copy copy) const {
  const std::int64_t begin = round * room_;
  for (const Segment& segment : segments_) {
    const std::int64_t from = std::max(segment.sorted, begin);
    const std::int64_t to = std::min(segment.sorted + segment.count, begin + room_);
    if (from < to) copy(segment.arrived + from - segment.sorted, from - begin, to - from);
  }
}

void ExpertExchange::load(std::int64_t round) {
  for_each_run(round, [&](std::int64_t from, std::int64_t to, std::int64_t rows) {
    std::copy_n(inbox_->data() + from * width_, rows * width_, arrived_ + to * width_);
  });
  for (std::size_t expert = 0; expert < first_.size(); ++expert) {
    round_->first[expert] = std::clamp<std::int64_t>(first_[expert] - round * room_, 0, room_);
  }
}

void ExpertExchange::store(std::int64_t round, const float* computed, std::int64_t width) {
  float* const outputs = grown(*outbox_, first_.back() * width).data();
  for_each_run(round, [&](std::int64_t to, std::int64_t from, std::int64_t rows) {
    std::copy_n(computed + from * width, rows * width, outputs + to * width);
  });
}

StepCount ExpertExchange::run_other_rounds(std::int64_t layer, const float* computed,
                                           std::int64_t width) {
  store(0, computed, width);
  StepCount sum_of_rounds;
  for (std::int64_t round = 1; round * room_ < first_.back(); ++round) {
    load(round);
    for (const Run& step : steps_) {
      const StepCount count = step(layer);
      sum_of_rounds.matrix_flops += count.matrix_flops;
      sum_of_rounds.bytes += count.bytes;
    }
    store(round, computed, width);
  }
  return sum_of_rounds;
}

void ExpertExchange::return_to(float* returned, std::int64_t width) {
  group_.all_to_all(grown(*outbox_, first_.back() * width), times(received_rows_, width),
                    {returned, own_->row.size() * index(width)}, times(sent_rows_, width));
}

}  // namespace headroom::measured
