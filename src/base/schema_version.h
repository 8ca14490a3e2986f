// The version of every JSON document that headroom writes and reads.
#pragma once

namespace headroom {

/// Fields are only added within a version, never renamed or removed.
inline constexpr int kSchemaVersion = 1;

}  // namespace headroom
