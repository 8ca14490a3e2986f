#include "handshake.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "headroom/error.h"
#include "rank_context.h"

namespace headroom::distributed {

void require_one_build(measured::Coordinator& world, const std::string& build) {
  const std::vector<std::string> builds = world.exchange(build);
  const auto other =
      std::ranges::find_if(builds, [&](const std::string& text) { return text != builds.front(); });
  if (other == builds.end()) return;
  throw measured::AgreedError(
      ErrorCode::invalid_input,
      fmt::format("runs another build of headroom than rank 0: {} instead of {}", *other,
                  builds.front()),
      fmt::format("rank {} of {}", other - builds.begin(), builds.size()),
      "install the same build on every host");
}

}  // namespace headroom::distributed
