#include "rank_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <span>

#include "headroom/error.h"
#include "options.h"
#include "plan_option_values.h"
#include "rank_reports.h"
#include "replicas.h"

namespace headroom::cli {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

constexpr CountRange kRanks{1, 4096};
constexpr CountRange kSequences{1, std::int64_t{1} << 30};

/// FNV-1a, 64 bits (Fowler, Noll and Vo; RFC 9923).
class Hash {
 public:
  void add(std::string_view bytes) noexcept {
    for (const char byte : bytes) {
      value_ = (value_ ^ static_cast<unsigned char>(byte)) * 0x100000001b3ULL;
    }
  }
  [[nodiscard]] std::string text() const { return fmt::format("{:016x}", value_); }

 private:
  std::uint64_t value_ = 0xcbf29ce484222325ULL;
};

void add_sample(const fs::path& file, Hash& hash) {
  constexpr std::uintmax_t kPlaces = 64;
  constexpr std::size_t kBlock = 4096;
  const std::uintmax_t size = fs::file_size(file);
  hash.add(fmt::format("{} {} ", file.filename().string(), size));
  std::ifstream stream(file, std::ios::binary);
  std::string block(kBlock, '\0');
  for (std::uintmax_t place = 0; place < kPlaces; ++place) {
    stream.clear();
    stream.seekg(static_cast<std::streamoff>(size / kPlaces * place));
    stream.read(block.data(), kBlock);
    hash.add(std::string_view(block).substr(0, static_cast<std::size_t>(stream.gcount())));
  }
}

/// A line of JSON with names and shapes, then all values.
std::string as_bytes(const std::vector<measured::NamedTensor>& tensors) {
  json header = json::array();
  for (const measured::NamedTensor& tensor : tensors) {
    header.push_back({{"name", tensor.name},
                      {"shape", tensor.shape},
                      {"count", tensor.values.size()},
                      {"batch_dimension", tensor.batch_dimension}});
  }
  std::string bytes = header.dump() + "\n";
  for (const measured::NamedTensor& tensor : tensors) {
    const auto values = std::as_bytes(std::span(tensor.values));
    const std::size_t end = bytes.size();
    bytes.resize(end + values.size());
    std::memcpy(bytes.data() + end, values.data(), values.size());
  }
  return bytes;
}

std::vector<measured::NamedTensor> tensors_of(const std::string& bytes) {
  std::size_t place = bytes.find('\n');
  std::vector<measured::NamedTensor> tensors;
  const json header = json::parse(std::string_view(bytes).substr(0, place++));
  for (const json& entry : header) {
    measured::NamedTensor tensor{
        entry.at("name"), entry.at("shape"), {}, entry.at("batch_dimension")};
    tensor.values.resize(entry.at("count"));
    const std::size_t size = tensor.values.size() * sizeof(float);
    std::memcpy(tensor.values.data(), bytes.data() + place, size);
    place += size;
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

}  // namespace

void add_rank_options(Command command, ParallelPlan& plan, measured::MeasureOptions& run) {
  const auto add = [&](const char* name, std::int64_t& degree, const char* description) {
    add_count(
        command, name, kRanks, [&degree](std::int64_t count) { degree = count; }, description)
        .group("Processes");
  };
  add("--tp", plan.tensor, "Tensor-parallel processes, which mpirun starts: mpirun -n 2 …");
  add("--pp", plan.pipeline, "Pipeline stages; as many processes as --tp times --pp times --dp");
  add("--dp", plan.data, "Replicas, each with its share of the batch");
  add("--ep", plan.expert, "Replicas that share the routed experts; a divisor of --dp");
  const Choices<ExpertTensor> expert_tensors{{"tp", ExpertTensor::divided},
                                             {"1", ExpertTensor::whole}};
  add_choice(command, "--etp", plan.expert_tensor, expert_tensors,
             "Tensor-parallel degree of routed experts: as --tp, or 1, which also spreads --ep "
             "over the tensor-parallel ranks (tp)")
      .group("Processes");
  add_count(
      command, "--micro-batch", kSequences, [&run](std::int64_t count) { run.micro_batch = count; },
      "Sequences that go through the pipeline of --pp together (all)")
      .group("Processes");
  const auto set_sequence = [&plan](const std::string& word) {
    plan.sequence = parse_sequence_parallel("--sp", word);
  };
  command
      .add_optional_text("--sp", "on|off", set_sequence,
                         "Sequence parallelism in a prefill (off; --sp alone is on)")
      .group("Processes");
}

void require_plan_runs(const ParallelPlan& plan, const measured::MeasureOptions& run,
                       const ModelSpec& spec, const Workload& workload) {
  distributed::require_runs(plan, spec, workload);
  if (run.micro_batch) {
    distributed::require_micro_batches_run(*run.micro_batch, plan, workload);
  }
}

std::string describe(const ParallelPlan& plan, const measured::MeasureOptions& run) {
  std::string degrees = headroom::describe(plan);
  if (!run.micro_batch) return degrees;
  return fmt::format("{} · micro-batch {}", degrees, *run.micro_batch);
}

std::string sample_of(const fs::path& files) {
  std::vector<fs::path> all;
  if (fs::is_directory(files)) {
    for (const auto& entry : fs::directory_iterator(files)) {
      const bool holds_weights =
          entry.path().extension() == ".safetensors" || entry.path().extension() == ".json";
      if (entry.is_regular_file() && holds_weights) all.push_back(entry.path());
    }
    std::ranges::sort(all);
  } else {
    all.push_back(files);
  }
  Hash hash;
  for (const fs::path& file : all) add_sample(file, hash);
  return hash.text();
}

RankRun::RankRun(const ParallelPlan& plan, const measured::MeasureOptions& run)
    : plan_(describe(plan, run)) {
  JoinedProcesses::run([&] {
    together([&] { rank_ = std::make_unique<distributed::PlannedRank>(processes(), plan); });
  });
}

void RankRun::require_equal(const RankIdentity& identity) {
  const json own = {identity.model, identity.weights, identity.command};
  const std::vector<std::string> texts = processes().world().exchange(own.dump());
  constexpr const char* kWords[] = {"another model", "other weights", "another workload"};
  const json first = json::parse(texts.front());
  for (std::size_t rank = 1; rank < texts.size(); ++rank) {
    const json other = json::parse(texts[rank]);
    for (std::size_t i = 0; i < std::size(kWords); ++i) {
      if (other[i] == first[i]) continue;
      throw measured::AgreedError(
          ErrorCode::invalid_input,
          fmt::format("runs {} than rank 0: {} instead of {}", kWords[i],
                      other[i].get<std::string>(), first[i].get<std::string>()),
          fmt::format("rank {} of {}", rank, texts.size()),
          "start the same build with the same arguments and files on every host");
    }
  }
}

void RankRun::gather(Measurement& measurement) {
  RankMeasurement& own = measurement.ranks.value().ranks.front();
  own.host = processes().host();
  std::vector<RankMeasurement> ranks = gathered(own, processes().world());
  if (reports()) measurement.ranks = RanksMeasurement{plan_, std::move(ranks)};
}

std::vector<measured::NamedTensor> RankRun::gather(std::vector<measured::NamedTensor> tensors) {
  if (!context().tensor.is_first()) tensors.clear();  // equal on the ranks of a stage
  std::vector<measured::NamedTensor> all;
  for (const std::string& text : processes().world().gather(as_bytes(tensors))) {
    for (measured::NamedTensor& tensor : tensors_of(text)) {
      measured::append_replica(std::move(tensor), all);
    }
  }
  return all;
}

std::vector<std::vector<std::int64_t>> RankRun::gather(
    const std::vector<std::vector<std::int64_t>>& ids) {
  const bool speaks = context().tensor.is_first() && context().pipeline.is_first();
  const json own = speaks ? json(ids) : json::array();
  std::vector<std::vector<std::int64_t>> all;
  for (const std::string& text : processes().world().gather(own.dump())) {
    for (const json& of_one : json::parse(text)) all.push_back(of_one);
  }
  return all;
}

void require_one_process(const ParallelPlan& plan, const measured::MeasureOptions& run) {
  if (run.micro_batch) {
    throw_invalid_input("--micro-batch divides the batch of a pipeline, and the plan has one stage",
                        "add --pp, or leave it out");
  }
  if (plan.expert > 1) {
    throw_invalid_input(
        fmt::format("--ep {} shares experts between replicas, and the plan has one", plan.expert),
        fmt::format("add --dp {}", plan.expert));
  }
  if (plan.sequence == SequenceParallel::on || plan.expert_tensor == ExpertTensor::whole) {
    throw_invalid_input(fmt::format("{} concerns tensor-parallel processes, and the plan has one",
                                    plan.sequence == SequenceParallel::on ? "--sp" : "--etp 1"),
                        "add --tp, or leave it out");
  }
  const std::int64_t launched = distributed::launched_processes();
  if (launched == 1) return;
  throw_invalid_input(
      fmt::format("{} processes were started, and the plan has one", launched),
      fmt::format("add --tp {}, --pp or --dp, or start headroom without mpirun", launched));
}

}  // namespace headroom::cli
