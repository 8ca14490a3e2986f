// Communication between the processes of a sharded run. The graph's collectives use a Communicator;
// everything else that ranks tell each other goes through a Coordinator. src/distributed implements
// both with MPI. Internal to src/measured and the program.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace headroom::measured {

/// Ranks of one dimension of a parallel plan. Every rank of the group calls the same collectives in
/// the same order. Buffers are float32; those of ranks have equal sizes, but for all_to_all.
class Communicator {
 public:
  Communicator() = default;
  virtual ~Communicator() = default;
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  [[nodiscard]] virtual std::int64_t size() const = 0;
  [[nodiscard]] virtual std::int64_t rank() const = 0;
  /// Replaces every rank's `buffer` by the sum of all.
  virtual void all_reduce(std::span<float> buffer) = 0;
  /// `whole` = the shards of all ranks, one after the other.
  virtual void all_gather(std::span<const float> shard, std::span<float> whole) = 0;
  /// `shard` = this rank's part of the sum of all `whole`.
  virtual void reduce_scatter(std::span<const float> whole, std::span<float> shard) = 0;
  /// Sends a part of `sent` to every rank, in their order, and receives one from each.
  /// `sent_counts` and `received_counts` have the elements of each part.
  virtual void all_to_all(std::span<const float> sent, std::span<const std::int64_t> sent_counts,
                          std::span<float> received,
                          std::span<const std::int64_t> received_counts) = 0;
  /// Sends an equal part of `sent` to every rank, and receives one from each: the sizes of later
  /// parts. A plan does not count it.
  virtual void exchange_counts(std::span<const std::int64_t> sent,
                               std::span<std::int64_t> received) = 0;
  virtual void send(std::span<const float> buffer, std::int64_t to) = 0;
  virtual void receive(std::span<float> buffer, std::int64_t from) = 0;
};

/// All ranks of a run, or of one replica: tokens that a generation chose, agreement on the number
/// of runs, and reports. A plan counts none of it.
class Coordinator {
 public:
  Coordinator() = default;
  virtual ~Coordinator() = default;
  Coordinator(const Coordinator&) = delete;
  Coordinator& operator=(const Coordinator&) = delete;

  [[nodiscard]] virtual std::int64_t size() const = 0;
  [[nodiscard]] virtual std::int64_t rank() const = 0;
  /// Returns once every rank has called it.
  virtual void barrier() = 0;
  /// Copies the `values` of rank `root` to all.
  virtual void broadcast(std::span<std::int64_t> values, std::int64_t root) = 0;
  /// The texts of all ranks in their order.
  [[nodiscard]] virtual std::vector<std::string> exchange(const std::string& text) = 0;
  /// The texts of all ranks in their order, on rank 0; none on the others.
  [[nodiscard]] virtual std::vector<std::string> gather(const std::string& text) = 0;
  /// Returns once `to` receives the text, or it is on its way.
  virtual void send(const std::string& text, std::int64_t to) = 0;
  [[nodiscard]] virtual std::string receive(std::int64_t from) = 0;
};

}  // namespace headroom::measured
