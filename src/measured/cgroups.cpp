#include "cgroups.h"

#include <fstream>

namespace headroom::measured {
namespace {

namespace fs = std::filesystem;

/// Adds `group` of the hierarchy at `mount`, and the groups above it.
void add_hierarchy(CgroupVersion version, const fs::path& mount, const fs::path& group,
                   std::vector<Cgroup>& groups) {
  fs::path inside = group.relative_path();
  while (true) {
    groups.push_back({version, mount / inside, "/" + inside.string()});
    if (inside.empty()) return;
    inside = inside.parent_path();
  }
}

}  // namespace

// Lines of /proc/self/cgroup are "number:controllers:path"; version 2 is "0::path" (cgroups(7)).
std::vector<Cgroup> cgroups_of(const fs::path& root, std::string_view controller) {
  std::vector<Cgroup> groups;
  const fs::path mounts = root / "sys/fs/cgroup";
  const std::string wanted = "," + std::string(controller) + ",";
  std::ifstream stream(root / "proc/self/cgroup");
  for (std::string line; std::getline(stream, line);) {
    const auto first = line.find(':');
    const auto second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const fs::path group = line.substr(second + 1);
    if (controllers == ",,") {
      add_hierarchy(CgroupVersion::two, mounts, group, groups);
      add_hierarchy(CgroupVersion::two, mounts / "unified", group, groups);
    } else if (controllers.find(wanted) != std::string::npos) {
      add_hierarchy(CgroupVersion::one, mounts / controller, group, groups);
    }
  }
  return groups;
}

}  // namespace headroom::measured
