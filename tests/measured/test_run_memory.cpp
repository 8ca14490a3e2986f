// Memory of a run and the limits on it, before anything is allocated.
#include <doctest/doctest.h>
#include <omp.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>

#include "headroom/error.h"
#include "measure.h"
#include "memory_limit.h"
#include "processors.h"
#include "run_memory.h"
#include "support/data.h"
#include "support/scratch.h"
#include "weight_layout.h"
#include "weights.h"

using namespace headroom;
using namespace headroom::measured;

namespace fs = std::filesystem;

namespace {

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
constexpr Integer kMib = 1 << 20;

/// A folder with the files of a system.
class FakeSystem {
 public:
  void write(const char* file, const std::string& text) const {
    const fs::path path = folder_.path() / file;
    fs::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  [[nodiscard]] MemoryLimit limit() const { return memory_limit(folder_.path()); }
  [[nodiscard]] std::optional<double> quota() const { return cpu_quota(folder_.path()); }
  [[nodiscard]] int processors() const { return usable_processors(folder_.path()); }

 private:
  test::ScratchFolder folder_;
};

ModelSpec spec_named(const char* name) { return load_model(name).spec; }

PlannedRun run_of(const ModelSpec& spec, const WorkloadRequest& request) {
  return {resolve(request, spec)};
}

Error refusal(const ModelSpec& spec, const PlannedRun& run, const MemoryLimit& limit) {
  try {
    require_run_fits(spec, run, limit);
  } catch (const Error& error) {
    return error;
  }
  return {ErrorCode::internal, "was not refused"};
}

}  // namespace

TEST_CASE("without any file of the system, the address space limits memory") {
  const FakeSystem system;
  CHECK(system.limit().bytes == Integer{1} << 47U);
  CHECK(system.limit().source == "the address space of a process");
}

TEST_CASE("MemAvailable limits memory") {
  const FakeSystem system;
  system.write("proc/meminfo", "MemTotal:       2048 kB\nMemAvailable:    1024 kB\n");
  CHECK(system.limit().bytes == kMib);
  CHECK(system.limit().source == "MemAvailable of /proc/meminfo");
}

TEST_CASE("a cgroup of version 2 limits memory to what it has left besides page cache") {
  const FakeSystem system;
  system.write("proc/meminfo", "MemAvailable: 999999999 kB\n");
  system.write("proc/self/cgroup", "0::/ci/job\n");
  system.write("sys/fs/cgroup/ci/job/memory.max", "max\n");
  system.write("sys/fs/cgroup/ci/memory.max", "314572800\n");
  system.write("sys/fs/cgroup/ci/memory.current", "115343360\n");
  system.write("sys/fs/cgroup/ci/memory.stat",
               "anon 10485760\ninactive_file 94371840\nactive_file 10485760\n");
  CHECK(system.limit().bytes == 290 * kMib);
  CHECK(system.limit().source == "memory.max of the cgroup /ci");
}

TEST_CASE("a container's cgroup of version 1 is found at the mount") {
  const FakeSystem system;
  system.write("proc/self/cgroup", "7:cpu,cpuacct:/docker/abc\n4:memory:/docker/abc\n");
  system.write("sys/fs/cgroup/memory/memory.limit_in_bytes", "104857600\n");
  system.write("sys/fs/cgroup/memory/memory.usage_in_bytes", "1048576\n");
  CHECK(system.limit().bytes == 99 * kMib);
  CHECK(system.limit().source == "memory.limit_in_bytes of the cgroup /");
}

TEST_CASE("a cgroup that uses more than its limit leaves nothing") {
  const FakeSystem system;
  system.write("proc/self/cgroup", "0::/\n");
  system.write("sys/fs/cgroup/memory.max", "1000\n");
  system.write("sys/fs/cgroup/memory.current", "2000\n");
  CHECK(system.limit().bytes == 0);
}

TEST_CASE("the least CPU quota of a cgroup and those above it limits the processors") {
  const FakeSystem system;
  CHECK_FALSE(system.quota().has_value());
  CHECK(system.processors() == omp_get_num_procs());
  system.write("proc/self/cgroup", "0::/ci/job\n");
  system.write("sys/fs/cgroup/ci/job/cpu.max", "max 100000\n");
  CHECK_FALSE(system.quota().has_value());
  system.write("sys/fs/cgroup/ci/cpu.max", "150000 100000\n");
  CHECK(system.quota() == doctest::Approx(1.5));
  CHECK(system.processors() == 1);
  system.write("sys/fs/cgroup/ci/job/cpu.max", "20000 50000\n");
  CHECK(system.quota() == doctest::Approx(0.4));
  CHECK(system.processors() == 1);  // at least
  system.write("sys/fs/cgroup/ci/job/cpu.max", "garbage\n");
  CHECK(system.quota() == doctest::Approx(1.5));
}

TEST_CASE("a container's CPU quota of version 1 is found at the mount") {
  const FakeSystem system;
  system.write("proc/self/cgroup", "5:cpu,cpuacct:/docker/abc\n4:memory:/docker/abc\n");
  system.write("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  system.write("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
  CHECK_FALSE(system.quota().has_value());
  system.write("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "6400000\n");
  CHECK(system.quota() == doctest::Approx(64));
  CHECK(system.processors() == std::min(64, omp_get_num_procs()));
}

TEST_CASE("resource limits count what is in use") {
  const FakeSystem system;
  system.write("proc/self/status", "VmSize:\t    1024 kB\nVmData:\t     512 kB\n");
  system.write("proc/self/limits",
               "Limit                     Soft Limit           Hard Limit           Units\n"
               "Max data size             unlimited            unlimited            bytes\n"
               "Max address space         4194304              unlimited            bytes\n");
  CHECK(system.limit().bytes == 3 * kMib);
  CHECK(system.limit().source == "RLIMIT_AS (ulimit -v)");
  system.write("proc/self/limits", "Max data size   1572864   unlimited   bytes\n");
  CHECK(system.limit().bytes == kMib);
  CHECK(system.limit().source == "RLIMIT_DATA (ulimit -d)");
}

TEST_CASE("garbage in the system's files sets no limit") {
  const FakeSystem system;
  system.write("proc/meminfo", "MemAvailable: many kB\n");
  system.write("proc/self/cgroup", "nonsense\n0:\n::\n");
  system.write("proc/self/limits", "Max address space  -1 -1 bytes\n");
  CHECK(system.limit().bytes == Integer{1} << 47U);
}

TEST_CASE("a run needs its weights, activations, cache and inputs") {
  const ModelSpec spec = spec_named("gpt2");
  WorkloadRequest request;
  request.seq_len = 5;
  request.past_len = 59;
  request.phase = Phase::decode;
  const RunMemory memory = memory_of(spec, run_of(spec, request));
  CHECK(memory.weights == Integer{124439808} * 4);           // the published parameters
  CHECK(memory.kv_cache == Integer{2} * 12 * 64 * 768 * 4);  // 64 keys and values, 12 layers
  CHECK(memory.inputs == 5 * 8);
  CHECK(memory.activations >= Integer{5} * 50257 * 4);  // the logits
  CHECK(memory.outputs == 0);
  PlannedRun kept = run_of(spec, request);
  kept.outputs = KeptOutputs::all;
  CHECK(memory_of(spec, kept).outputs == Integer{13} * 5 * 768 * 4);
}

TEST_CASE("a generation has room for all new tokens but the last") {
  const ModelSpec spec = spec_named("gpt2");
  WorkloadRequest request;
  request.seq_len = 8;
  PlannedRun run = run_of(spec, request);
  run.new_tokens = 25;
  CHECK(memory_of(spec, run).kv_cache == Integer{2} * 12 * 32 * 768 * 4);
}

TEST_CASE("bfloat16 weights need half the memory in decode, in prefill and to generate") {
  const ModelSpec spec = spec_named("gpt2");
  // Weights that no GEMM reads stay in float32: positions and 25 norms. Biases do, too.
  const Integer plain = 1024 * 768 + 25 * 2 * 768;
  const Integer biases = 12 * (3 + 1 + 4 + 1) * 768;
  const Integer packed = Integer{124439808} - plain - biases;
  WorkloadRequest step;
  step.phase = Phase::decode;
  PlannedRun run = run_of(spec, step);
  run.storage = HeldType::bfloat16;
  const Integer decode = memory_of(spec, run).weights;
  CHECK(decode == 2 * packed + 4 * (plain + biases));
  run = run_of(spec, {});
  run.storage = HeldType::bfloat16;
  CHECK(memory_of(spec, run).weights == decode);
  run.new_tokens = 2;
  CHECK(memory_of(spec, run).weights == decode);
  run.activations = ActivationPath::bfloat16;
  CHECK(memory_of(spec, run).weights == decode);
  // oneDNN's layout for many rows alone returns no rows of the table tied to the head.
  run.new_tokens = 0;
  run.backend = Backend::onednn;
  CHECK(memory_of(spec, run).weights == decode + Integer{50257} * 768 * 4);
}

TEST_CASE("weights that multiply bfloat16 activations are counted as they are held") {
  if (!has_bfloat16_products(Backend::onednn)) return;
  const ModelSpec spec = spec_named("pythia-14m");
  for (const RowRange rows : {RowRange::few, RowRange::many, RowRange::both}) {
    const auto source = random_weights(1);
    const ModelWeights weights(
        spec, *source, {Backend::onednn, HeldType::bfloat16, rows, 128, ActivationPath::bfloat16});
    const Integer counted = held_weight_bytes(
        spec, {HeldType::bfloat16, rows, rows, Backend::onednn, ActivationPath::bfloat16});
    CHECK(static_cast<double>(weights.held_bytes()) ==
          doctest::Approx(static_cast<double>(counted)).epsilon(0.01));
  }
}

TEST_CASE("a generation holds float32 weights in one layout") {
  const ModelSpec spec = spec_named("gpt2");
  PlannedRun run = run_of(spec, {});
  run.new_tokens = 32;
  CHECK(memory_of(spec, run).weights == Integer{124439808} * 4);  // the published parameters
  run.workload.logits = Logits::last;
  CHECK(memory_of(spec, run).weights == Integer{124439808} * 4);
}

TEST_CASE("weights counted before a run are those that it holds, for every family") {
  for (const auto& folder : test::golden_models()) {
    CAPTURE(folder.string());
    const ModelSpec spec = load_model(folder.string()).spec;
    if (!spec.not_run.empty()) continue;
    for (const RowRange rows : {RowRange::few, RowRange::both}) {
      const auto source = random_weights(1);
      const ModelWeights weights(spec, *source, {Backend::eigen, HeldType::float32, rows});
      const auto held = static_cast<double>(weights.held_bytes());
      const auto counted = static_cast<double>(
          held_weight_bytes(spec, {HeldType::float32, rows, rows, Backend::eigen}));
      CHECK(counted <= held);        // layouts pad inputs to whole steps
      CHECK(held <= 1.6 * counted);  // of tiny models by up to half
    }
  }
}

TEST_CASE("sizes above 64 bits are refused with their figure and the limit's source") {
  WorkloadRequest request;
  request.batch_size = std::int64_t{1} << 62U;
  request.seq_len = 4;
  const ModelSpec spec = spec_named("gpt2");
  const Error error = refusal(spec, run_of(spec, request), {kMib, "the test"});
  CHECK(error.code() == ErrorCode::missing_resource);
  // The logits alone: 2^64 rows of 50257 floats.
  CHECK(memory_of(spec, run_of(spec, request)).total() >= (Integer{1} << 66U) * 50257);
  CHECK(error.message().find("but 1.00 MiB are available (the test)") != std::string::npos);
}

TEST_CASE("weights that fill the memory are to be held in fewer bytes, other runs to be smaller") {
  const ModelSpec spec = spec_named("llama-2-7b");  // 25.0 GiB
  PlannedRun run = run_of(spec, {});
  constexpr Integer kGib = Integer{1} << 30U;
  const std::string lighter = "hold random weights in fewer bytes";
  CHECK(refusal(spec, run, {20 * kGib, "the test"}).hint().find(lighter) == 0);
  // In 4.5 bits per weight, 25.0 GiB of float32 become 3.5 GiB.
  CHECK(refusal(spec, run, {3 * kGib, "the test"}).hint() == "use a smaller model");
  run.storage = HeldType::bfloat16;
  CHECK(refusal(spec, run, {10 * kGib, "the test"}).hint().find(lighter) == std::string::npos);
  WorkloadRequest request;
  request.batch_size = 4096;
  const ModelSpec gpt2 = spec_named("gpt2");
  const Error error = refusal(gpt2, run_of(gpt2, request), {4 * kGib, "the test"});
  CHECK(error.hint().find("use a smaller batch") == 0);
}

TEST_CASE("a past of 2^63 - 1 tokens is refused, by positions or by memory") {
  WorkloadRequest request;
  request.phase = Phase::decode;
  request.past_len = kMost;
  const ModelSpec gpt2 = spec_named("gpt2");
  const Error positions = refusal(gpt2, run_of(gpt2, request), {kMib, "the test"});
  CHECK(positions.message() == "9223372036854775808 tokens exceed the 1024 positions of the model");
  const ModelSpec llama = spec_named("llama-2-7b");
  const Error memory = refusal(llama, run_of(llama, request), {kMib, "the test"});
  CHECK(memory.code() == ErrorCode::missing_resource);
}

TEST_CASE("a measurement that does not fit allocates nothing") {
  Model model = load_model("layer-self-attention");
  WorkloadRequest request;
  request.batch_size = std::int64_t{1} << 62U;
  request.seq_len = 4;
  const Workload workload = resolve(request, model.spec);
  const auto source = random_weights(1);
  CHECK_THROWS_AS((void)measure(std::move(model), workload, *source, std::nullopt, {},
                                [](int, int) { return true; }),
                  Error);
}
