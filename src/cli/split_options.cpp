#include "split_options.h"

#include <fmt/format.h>

#include <type_traits>
#include <utility>

#include "headroom/error.h"
#include "own_machine.h"
#include "plan_option_values.h"

namespace headroom::cli {
namespace {

constexpr const char* kSplitGroup = "Host memory (layers or experts that the device cannot hold)";
constexpr CountRange kLayers{0, std::int64_t{1} << 20U};

/// This machine's rates, or those of a host of which only the memory is known.
HostRates own_host(DType dtype) {
  const auto profile = valid_profile(default_backend());
  HostRates host = profile ? host_rates(*profile, dtype) : assumed_host(0);
  host.name = "here";
  host.memory_bytes = own_memory();
  return host;
}

/// Throws Error{invalid_input} for a device with memory of its own.
void require_host(const MachineProfile& machine, DType dtype) {
  if (device_rates(machine, Purpose::serve, dtype).in_host_memory) return;
  throw_invalid_input(
      fmt::format("--host: {} is a device with its own memory, not a host", machine.name),
      "name the machine that the device is in, such as epyc-9654, or give --host-memory");
}

HostRates named_host(const std::string& name, DType dtype) {
  if (name == "here") return own_host(dtype);
  const MachineProfile machine = machine_named(name, default_backend());
  require_host(machine, dtype);
  return host_rates(machine, dtype);
}

/// The host, on the link of `device` if none is given.
HostRates host_of(const SplitOptions& options, DType dtype, const DeviceRates& device) {
  HostRates host = options.host.empty() ? assumed_host(0) : named_host(options.host, dtype);
  if (options.memory_bytes) host.memory_bytes = *options.memory_bytes;
  if (options.bytes_per_s) {
    host.memory_bytes_per_s = *options.bytes_per_s;
    host.source = "given";
  }
  host.link_bytes_per_s = options.link_bytes_per_s.value_or(device.host_bytes_per_s);
  if (host.memory_bytes == 0) {
    throw Error(ErrorCode::invalid_input, "the memory of the host is unknown", options.host,
                "add --host-memory, such as --host-memory 64GiB");
  }
  return host;
}

}  // namespace

void add_split_options(Command command, SplitOptions& options) {
  const auto add = [&options](Option option) { options.all.push_back(option.group(kSplitGroup)); };
  add(command.add_text("--host", "MACHINE", options.host,
                       "Machine whose memory and processors run the rest: a name of `headroom "
                       "machines`, here, or a file"));
  const auto add_bytes = [&](const std::string& name, const char* unit, auto& target,
                             const char* description) {
    const auto set = [&target, name](const std::string& text) {
      using Value = std::decay_t<decltype(*target)>;
      target = static_cast<Value>(parse_positive_bytes(name, text));
    };
    add(command.add_text(name, unit, set, description));
  };
  add_bytes("--host-memory", "BYTES", options.memory_bytes,
            "Memory of the host, such as 64GiB (the host's)");
  add_bytes("--host-bandwidth", "BYTES/S", options.bytes_per_s,
            "Memory bandwidth that the host reaches, such as 60GB (the host's, or that of two "
            "channels of DDR5-5600)");
  add_bytes("--host-link", "BYTES/S", options.link_bytes_per_s,
            "Bandwidth between host and device in one direction (the device's)");
  add(add_count(
      command, "--gpu-layers,--n-gpu-layers", kLayers,
      [&options](std::int64_t n) { options.request.gpu_layers = n; },
      "Layers on the device, the head counted as one; also -ngl (the fastest number that fits)"));
  add(add_count(
      command, "--n-cpu-moe", kLayers,
      [&options](std::int64_t n) { options.request.cpu_moe_layers = n; },
      "First layers whose routed experts stay on the host; also -ncmoe (the fastest number that "
      "fits)"));
}

bool asks_for_split(const SplitOptions& options) {
  if (!options.host.empty() || options.memory_bytes) return true;
  refuse_given(options.all, "needs the host's memory",
               "add --host-memory, such as 64GiB, or --host with a machine");
  return false;
}

SplitReport split_report_of(const PlanOptions& plan, const SplitOptions& options) {
  PlanOptions in_llama_cpp = plan;
  in_llama_cpp.engine = Engine::llama_cpp;
  PlanQuestion question = question_of(in_llama_cpp, SpeedNeed::required);
  (void)request_of(plan);  // refuses degrees beyond one device
  if (plan.count.fewest) {
    throw_invalid_input("--count auto does not apply to a split between two memories",
                        "leave --count out: a split takes one device");
  }
  if (plan.engine) {
    throw_invalid_input("--engine does not apply to a split between two memories",
                        "leave it out: the report has llama.cpp's command line");
  }
  const DType dtype = question.query.dtype;
  HostRates host = host_of(options, dtype, question.rates);
  return make_split_report(std::move(question), std::move(host), options.request);
}

}  // namespace headroom::cli
