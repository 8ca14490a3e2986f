// Names of architectures, and the memory that their runtimes take.
#include <algorithm>

#include "enum_table.h"
#include "headroom/machine_profile.h"

namespace headroom {
namespace {

struct ArchitectureName {
  Architecture architecture;
  std::string_view name;
};
constexpr ArchitectureName kArchitectures[] = {
    {Architecture::volta, "volta"},       {Architecture::turing, "turing"},
    {Architecture::ampere, "ampere"},     {Architecture::ada, "ada"},
    {Architecture::hopper, "hopper"},     {Architecture::blackwell, "blackwell"},
    {Architecture::cdna, "cdna"},         {Architecture::rdna, "rdna"},
    {Architecture::gaudi, "gaudi"},       {Architecture::tpu, "tpu"},
    {Architecture::trainium, "trainium"}, {Architecture::apple, "apple"},
    {Architecture::cpu, "cpu"},           {Architecture::other, "other"}};
static_assert(detail::lists_every<kArchitectures>(&ArchitectureName::architecture));

struct MemoryBasisName {
  MemoryBasis basis;
  std::string_view name;
};
constexpr MemoryBasisName kMemoryBases[] = {{MemoryBasis::reading, "reading"},
                                            {MemoryBasis::assumed, "assumed"}};
static_assert(detail::lists_every<kMemoryBases>(&MemoryBasisName::basis));

constexpr Integer kMib = Integer{1} << 20U;

/// CUDA. Context: 543 MiB of a PyTorch process that holds no tensor (pytorch/pytorch#81257).
/// Group: 1.79 GiB, by which vLLM's non-PyTorch memory grows from one device to two that share each
/// layer, 1.79 to 3.58 GiB (vllm-project/vllm#10511); one NCCL communicator took 1.6 GB after its
/// first all-reduce, several 6 GB (NVIDIA/nccl#864). Fragmentation: Megatron-LM's "max allocated
/// 84,019, reserved 84,732 MB" beside 53,199 MB of states is 2.3 % of the rest, and so is "2,589,
/// 2,608" beside 1,762.
constexpr RuntimeMemory kCuda{543 * kMib, 1833 * kMib, 0.023};
/// XLA: "reserved 260.00M" in its reports of a full TPU v6e; it plans all other memory itself.
constexpr RuntimeMemory kXla{260 * kMib, 0, 0};
/// A process on unified or host memory: a Python process with its framework, assumed. Its
/// collectives run in the network's own buffers.
constexpr RuntimeMemory kHost{512 * kMib, 0, 0.023};

}  // namespace

std::string_view name_of(Architecture architecture) noexcept {
  return kArchitectures[static_cast<std::size_t>(architecture)].name;
}

std::optional<Architecture> architecture_named(std::string_view name) noexcept {
  const auto* const found = std::ranges::find(kArchitectures, name, &ArchitectureName::name);
  if (found == std::end(kArchitectures)) return std::nullopt;
  return found->architecture;
}

std::string_view name_of(MemoryBasis basis) noexcept {
  return kMemoryBases[static_cast<std::size_t>(basis)].name;
}

RuntimeMemory runtime_memory(Architecture architecture) noexcept {
  switch (architecture) {
    case Architecture::volta:
    case Architecture::turing:
    case Architecture::ampere:
    case Architecture::ada:
    case Architecture::hopper:
    case Architecture::blackwell:
    // Assumed to take as much as CUDA.
    case Architecture::cdna:
    case Architecture::rdna:
    case Architecture::gaudi:
    case Architecture::trainium:
    case Architecture::other:
      return kCuda;
    case Architecture::tpu:
      return kXla;
    case Architecture::apple:
    case Architecture::cpu:
      break;
  }
  return kHost;
}

}  // namespace headroom
