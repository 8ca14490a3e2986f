// Processes over MPI. Errors of MPI itself end all processes, which is MPI's default.
#include <fmt/format.h>
#include <mpi.h>

#include <array>
#include <cstdlib>
#include <limits>
#include <numeric>

#include "headroom/error.h"
#include "processes.h"
#include "traffic_counters.h"

namespace headroom::distributed {
namespace {

constexpr int kTag = 0;

/// MPI counts elements in an int.
int count_of(std::size_t elements) {
  if (elements > static_cast<std::size_t>(std::numeric_limits<int>::max())) {
    throw Error(ErrorCode::overflow,
                fmt::format("{} elements exceed the 2^31 - 1 of one MPI call", elements), {},
                "use a smaller batch or a shorter sequence");
  }
  return static_cast<int>(elements);
}

int narrow(std::int64_t value) { return static_cast<int>(value); }

std::int64_t size_of(MPI_Comm communicator) {
  int size = 0;
  MPI_Comm_size(communicator, &size);
  return size;
}

std::int64_t rank_in(MPI_Comm communicator) {
  int rank = 0;
  MPI_Comm_rank(communicator, &rank);
  return rank;
}

/// Parts of a buffer, one for each rank, in their order.
struct Parts {
  explicit Parts(std::span<const std::int64_t> elements) : begins(elements.size()) {
    const std::int64_t sum = std::accumulate(elements.begin(), elements.end(), std::int64_t{0});
    (void)count_of(static_cast<std::size_t>(sum));  // the parts begin at numbers that MPI counts
    for (const std::int64_t count : elements) {
      counts.push_back(count_of(static_cast<std::size_t>(count)));
    }
    std::exclusive_scan(counts.begin(), counts.end(), begins.begin(), 0);
  }

  std::vector<int> counts;
  std::vector<int> begins;
};

/// Texts of ranks, one after the other.
struct JoinedTexts {
  explicit JoinedTexts(std::span<const int> sizes) : begins(sizes.size()) {
    const auto sum = std::accumulate(sizes.begin(), sizes.end(), std::size_t{0});
    (void)count_of(sum);  // the texts begin at numbers that MPI counts
    std::exclusive_scan(sizes.begin(), sizes.end(), begins.begin(), 0);
    bytes.resize(sum);
  }

  [[nodiscard]] std::vector<std::string> split(std::span<const int> sizes) const {
    std::vector<std::string> texts;
    texts.reserve(sizes.size());
    for (std::size_t rank = 0; rank < sizes.size(); ++rank) {
      texts.push_back(bytes.substr(static_cast<std::size_t>(begins[rank]),
                                   static_cast<std::size_t>(sizes[rank])));
    }
    return texts;
  }

  std::vector<int> begins;
  std::string bytes{};
};

class MpiCommunicator final : public measured::Communicator {
 public:
  MpiCommunicator(MPI_Comm communicator, RankGroup group) : communicator_(communicator) {
    count_traffic_of(communicator_, group);
  }
  ~MpiCommunicator() override {
    stop_counting(communicator_);
    MPI_Comm_free(&communicator_);
  }

  [[nodiscard]] std::int64_t size() const override { return size_of(communicator_); }
  [[nodiscard]] std::int64_t rank() const override { return rank_in(communicator_); }

  void all_reduce(std::span<float> buffer) override {
    MPI_Allreduce(MPI_IN_PLACE, buffer.data(), count_of(buffer.size()), MPI_FLOAT, MPI_SUM,
                  communicator_);
  }
  void all_gather(std::span<const float> shard, std::span<float> whole) override {
    const int count = count_of(shard.size());
    MPI_Allgather(shard.data(), count, MPI_FLOAT, whole.data(), count, MPI_FLOAT, communicator_);
  }
  void reduce_scatter(std::span<const float> whole, std::span<float> shard) override {
    MPI_Reduce_scatter_block(whole.data(), shard.data(), count_of(shard.size()), MPI_FLOAT, MPI_SUM,
                             communicator_);
  }
  void all_to_all(std::span<const float> sent, std::span<const std::int64_t> sent_counts,
                  std::span<float> received,
                  std::span<const std::int64_t> received_counts) override {
    const Parts from(sent_counts);
    const Parts to(received_counts);
    MPI_Alltoallv(sent.data(), from.counts.data(), from.begins.data(), MPI_FLOAT, received.data(),
                  to.counts.data(), to.begins.data(), MPI_FLOAT, communicator_);
  }
  void exchange_counts(std::span<const std::int64_t> sent,
                       std::span<std::int64_t> received) override {
    const int count = count_of(sent.size()) / narrow(size());
    MPI_Alltoall(sent.data(), count, MPI_INT64_T, received.data(), count, MPI_INT64_T,
                 communicator_);
  }
  void send(std::span<const float> buffer, std::int64_t to) override {
    MPI_Send(buffer.data(), count_of(buffer.size()), MPI_FLOAT, narrow(to), kTag, communicator_);
  }
  void receive(std::span<float> buffer, std::int64_t from) override {
    MPI_Recv(buffer.data(), count_of(buffer.size()), MPI_FLOAT, narrow(from), kTag, communicator_,
             MPI_STATUS_IGNORE);
  }

 private:
  MPI_Comm communicator_;
};

/// Processes that coordinate. Does not own its communicator.
class MpiCoordinator : public measured::Coordinator {
 public:
  explicit MpiCoordinator(MPI_Comm communicator) : communicator_(communicator) {}

  [[nodiscard]] std::int64_t size() const override { return size_of(communicator_); }
  [[nodiscard]] std::int64_t rank() const override { return rank_in(communicator_); }
  void barrier() override { MPI_Barrier(communicator_); }
  void broadcast(std::span<std::int64_t> values, std::int64_t root) override {
    MPI_Bcast(values.data(), count_of(values.size()), MPI_INT64_T, narrow(root), communicator_);
  }
  [[nodiscard]] std::vector<std::string> exchange(const std::string& text) override {
    const int own = count_of(text.size());
    std::vector<int> sizes(static_cast<std::size_t>(size()));
    MPI_Allgather(&own, 1, MPI_INT, sizes.data(), 1, MPI_INT, communicator_);
    JoinedTexts all(sizes);
    MPI_Allgatherv(text.data(), own, MPI_CHAR, all.bytes.data(), sizes.data(), all.begins.data(),
                   MPI_CHAR, communicator_);
    return all.split(sizes);
  }
  [[nodiscard]] std::vector<std::string> gather(const std::string& text) override {
    const int own = count_of(text.size());
    std::vector<int> sizes(rank() == 0 ? static_cast<std::size_t>(size()) : 0);
    MPI_Gather(&own, 1, MPI_INT, sizes.data(), 1, MPI_INT, 0, communicator_);
    JoinedTexts all(sizes);
    MPI_Gatherv(text.data(), own, MPI_CHAR, all.bytes.data(), sizes.data(), all.begins.data(),
                MPI_CHAR, 0, communicator_);
    return all.split(sizes);
  }
  void send(const std::string& text, std::int64_t to) override {
    MPI_Send(text.data(), count_of(text.size()), MPI_CHAR, narrow(to), kTag, communicator_);
  }
  [[nodiscard]] std::string receive(std::int64_t from) override {
    MPI_Status status;
    MPI_Probe(narrow(from), kTag, communicator_, &status);
    int size = 0;
    MPI_Get_count(&status, MPI_CHAR, &size);
    std::string text(static_cast<std::size_t>(size), '\0');
    MPI_Recv(text.data(), size, MPI_CHAR, narrow(from), kTag, communicator_, MPI_STATUS_IGNORE);
    return text;
  }

 protected:
  [[nodiscard]] MPI_Comm& communicator() noexcept { return communicator_; }

 private:
  MPI_Comm communicator_;
};

/// Some of the processes.
class MpiSubset final : public MpiCoordinator {
 public:
  using MpiCoordinator::MpiCoordinator;
  ~MpiSubset() override { MPI_Comm_free(&communicator()); }
};

class MpiProcesses final : public Processes {
 public:
  MpiProcesses() {
    int provided = 0;
    // OpenMP's threads compute; only the main thread communicates.
    MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided);
  }
  ~MpiProcesses() override { MPI_Finalize(); }

  [[nodiscard]] measured::Coordinator& world() override { return world_; }
  [[nodiscard]] std::unique_ptr<measured::Communicator> split(RankGroup group,
                                                              std::int64_t color) override {
    return std::make_unique<MpiCommunicator>(part_of_world(color), group);
  }
  [[nodiscard]] std::unique_ptr<measured::Coordinator> subset(std::int64_t color) override {
    return std::make_unique<MpiSubset>(part_of_world(color));
  }
  [[nodiscard]] std::vector<WireTraffic> traffic() const override { return counted_traffic(); }
  [[nodiscard]] std::string host() const override {
    std::array<char, MPI_MAX_PROCESSOR_NAME> name{};
    int length = 0;
    MPI_Get_processor_name(name.data(), &length);
    return {name.data(), static_cast<std::size_t>(length)};
  }
  [[nodiscard]] std::string library() const override {
    std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
    int length = 0;
    MPI_Get_library_version(text.data(), &length);
    const std::string all(text.data(), static_cast<std::size_t>(length));
    return all.substr(0, all.find_first_of(",\n"));  // its package and build follow
  }
  [[noreturn]] void abort(int status) override {
    MPI_Abort(MPI_COMM_WORLD, status);
    std::_Exit(status);
  }

 private:
  [[nodiscard]] MPI_Comm part_of_world(std::int64_t color) const {
    MPI_Comm part = MPI_COMM_NULL;
    MPI_Comm_split(MPI_COMM_WORLD, narrow(color), narrow(world_.rank()), &part);
    return part;
  }

  MpiCoordinator world_{MPI_COMM_WORLD};
};

}  // namespace

std::unique_ptr<Processes> Processes::join() {
  int joined = 0;
  MPI_Initialized(&joined);
  if (joined != 0) {
    throw Error(ErrorCode::invalid_input, "a program joins its processes once", {},
                "start another one for the next run");
  }
  return std::make_unique<MpiProcesses>();
}

}  // namespace headroom::distributed
