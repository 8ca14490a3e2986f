// Wrappers of the MPI functions that a sharded run calls (MPI 3.1, section 14.2: every function
// MPI_X is also PMPI_X, so that a tool can define MPI_X). They count the arguments that the library
// receives, and know nothing of graphs.
#include "traffic_counters.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace headroom::distributed {
namespace {

struct CountedGroup {
  MPI_Comm communicator;
  RankGroup group;
};

std::vector<CountedGroup>& groups() {
  static std::vector<CountedGroup> all;
  return all;
}

std::vector<WireTraffic>& rows() {
  static std::vector<WireTraffic> all;
  return all;
}

void count(MPI_Comm communicator, CollectiveKind kind, int elements, MPI_Datatype type) {
  const auto known = std::ranges::find(groups(), communicator, &CountedGroup::communicator);
  if (known == groups().end()) return;
  int element_bytes = 0;
  PMPI_Type_size(type, &element_bytes);
  auto row = std::ranges::find_if(rows(), [&](const WireTraffic& other) {
    return other.group == known->group && other.kind == kind;
  });
  if (row == rows().end()) row = rows().insert(row, {known->group, kind, 0, 0});
  ++row->calls;
  row->bytes += std::int64_t{elements} * element_bytes;
}

}  // namespace

void count_traffic_of(MPI_Comm communicator, RankGroup group) {
  groups().push_back({communicator, group});
}

void stop_counting(MPI_Comm communicator) {
  std::erase_if(groups(),
                [&](const CountedGroup& known) { return known.communicator == communicator; });
}

std::vector<WireTraffic> counted_traffic() { return rows(); }

}  // namespace headroom::distributed

using headroom::CollectiveKind;
using headroom::distributed::count;

extern "C" {

int MPI_Allreduce(const void* from, void* to, int elements, MPI_Datatype type, MPI_Op op,
                  MPI_Comm communicator) {
  count(communicator, CollectiveKind::all_reduce, elements, type);
  return PMPI_Allreduce(from, to, elements, type, op, communicator);
}

int MPI_Allgather(const void* from, int sent, MPI_Datatype sent_type, void* to, int received,
                  MPI_Datatype received_type, MPI_Comm communicator) {
  count(communicator, CollectiveKind::all_gather, sent, sent_type);
  return PMPI_Allgather(from, sent, sent_type, to, received, received_type, communicator);
}

int MPI_Reduce_scatter_block(const void* from, void* to, int received, MPI_Datatype type, MPI_Op op,
                             MPI_Comm communicator) {
  count(communicator, CollectiveKind::reduce_scatter, received, type);
  return PMPI_Reduce_scatter_block(from, to, received, type, op, communicator);
}

int MPI_Alltoallv(const void* from, const int sent[], const int sent_begins[],
                  MPI_Datatype sent_type, void* to, const int received[],
                  const int received_begins[], MPI_Datatype received_type, MPI_Comm communicator) {
  int ranks = 0;
  PMPI_Comm_size(communicator, &ranks);
  count(communicator, CollectiveKind::all_to_all, std::accumulate(sent, sent + ranks, 0),
        sent_type);
  return PMPI_Alltoallv(from, sent, sent_begins, sent_type, to, received, received_begins,
                        received_type, communicator);
}

int MPI_Send(const void* from, int elements, MPI_Datatype type, int to, int tag,
             MPI_Comm communicator) {
  count(communicator, CollectiveKind::send, elements, type);
  return PMPI_Send(from, elements, type, to, tag, communicator);
}

}  // extern "C"
