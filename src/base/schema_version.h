// The versions of the JSON documents that headroom writes and reads.
#pragma once

namespace headroom {

/// Version of reports. Fields are only added within a version, never renamed or removed;
/// CHANGELOG.md lists the fields that each version renamed.
inline constexpr int kSchemaVersion = 2;

/// Oldest version of predictions and measurements that `compare` reads.
inline constexpr int kOldestReadVersion = 1;

/// Version of machine files, which have a format of their own.
inline constexpr int kMachineVersion = 1;

}  // namespace headroom
