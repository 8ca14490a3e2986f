// Control groups of Linux that this process is in. Internal to src/measured.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace headroom::measured {

enum class CgroupVersion { one, two };

/// A folder with the limits of a group.
struct Cgroup {
  CgroupVersion version = CgroupVersion::two;
  std::filesystem::path folder;
  std::string name;  ///< path of the group, "/" for the root
};

/// The groups of `controller`, such as "memory" or "cpu", that this process is in, and all above
/// them: each limits it. A container sees its own group at the mount, under the path that it has
/// outside, so some folders may be absent. Files are read below `root`.
[[nodiscard]] std::vector<Cgroup> cgroups_of(const std::filesystem::path& root,
                                             std::string_view controller);

}  // namespace headroom::measured
