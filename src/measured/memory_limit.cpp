#include "memory_limit.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <fstream>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "cgroups.h"

namespace headroom::measured {
namespace {

namespace fs = std::filesystem;

/// User space of x86-64 and AArch64 with four levels of page tables: 47 bits of addresses.
constexpr Integer kAddressSpace = Integer{1} << 47U;
constexpr Integer kKibibyte = 1024;

/// The number at the start of `text`, after blanks; empty for "max", "unlimited" and other words.
std::optional<Integer> leading_number(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
  std::uint64_t value = 0;
  const auto [rest, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failed != std::errc{}) return std::nullopt;
  return value;
}

/// The number after `key` on its line of `file`; empty if there is no such line.
std::optional<Integer> field(const fs::path& file, std::string_view key) {
  std::ifstream stream(file);
  for (std::string line; std::getline(stream, line);) {
    if (line.starts_with(key)) return leading_number(std::string_view(line).substr(key.size()));
  }
  return std::nullopt;
}

std::optional<Integer> number_in(const fs::path& file) { return field(file, ""); }

/// Names of one version's files.
struct CgroupFiles {
  const char* limit;
  const char* usage;
  const char* inactive_cache;  ///< key of memory.stat
  const char* active_cache;    ///< key of memory.stat
};
constexpr CgroupFiles kVersion1{"memory.limit_in_bytes", "memory.usage_in_bytes",
                                "total_inactive_file ", "total_active_file "};
constexpr CgroupFiles kVersion2{"memory.max", "memory.current", "inactive_file ", "active_file "};

class Limits {
 public:
  explicit Limits(fs::path root) : root_(std::move(root)) {}

  MemoryLimit least() && {
    add_available();
    add_cgroups();
    add_rlimit("Max address space", "VmSize:", "RLIMIT_AS (ulimit -v)");
    add_rlimit("Max data size", "VmData:", "RLIMIT_DATA (ulimit -d)");
    return std::move(least_);
  }

 private:
  void add(Integer bytes, std::string source) {
    bytes = std::max<Integer>(bytes, 0);
    if (bytes < least_.bytes) least_ = {bytes, std::move(source)};
  }

  void add_available() {
    if (const auto kib = field(root_ / "proc/meminfo", "MemAvailable:")) {
      add(*kib * kKibibyte, "MemAvailable of /proc/meminfo");
    }
  }

  void add_rlimit(std::string_view limit, std::string_view used, std::string source) {
    const auto most = field(root_ / "proc/self/limits", limit);
    if (!most) return;
    const auto kib = field(root_ / "proc/self/status", used);
    add(*most - kib.value_or(0) * kKibibyte, std::move(source));
  }

  void add_cgroups() {
    for (const Cgroup& group : cgroups_of(root_, "memory")) {
      const bool first = group.version == CgroupVersion::one;
      add_group(group.folder, group.name, first ? kVersion1 : kVersion2);
    }
  }

  void add_group(const fs::path& folder, const std::string& name, const CgroupFiles& files) {
    const auto most = number_in(folder / files.limit);
    if (!most) return;
    // The kernel drops page cache before it refuses memory.
    const fs::path stat = folder / "memory.stat";
    const Integer cache =
        field(stat, files.inactive_cache).value_or(0) + field(stat, files.active_cache).value_or(0);
    const Integer used = number_in(folder / files.usage).value_or(0);
    add(*most - std::max<Integer>(used - cache, 0),
        fmt::format("{} of the cgroup {}", files.limit, name));
  }

  fs::path root_;
  MemoryLimit least_{kAddressSpace, "the address space of a process"};
};

}  // namespace

MemoryLimit memory_limit(const fs::path& root) { return Limits(root).least(); }

}  // namespace headroom::measured
