#include "backend_version.h"

#include <fmt/format.h>

#include <Eigen/Core>

#ifdef HEADROOM_HAS_ONEDNN
#include <oneapi/dnnl/dnnl.h>
#endif

namespace headroom::measured {
namespace {

std::string onednn_version() {
#ifdef HEADROOM_HAS_ONEDNN
  const dnnl_version_t* const version = dnnl_version();
  return fmt::format("oneDNN {}.{}.{}", version->major, version->minor, version->patch);
#else
  return "oneDNN (not in this build)";
#endif
}

}  // namespace

std::string backend_version(Backend backend) {
  if (backend == Backend::onednn) return onednn_version();
  return fmt::format("Eigen {}.{}.{}", EIGEN_WORLD_VERSION, EIGEN_MAJOR_VERSION,
                     EIGEN_MINOR_VERSION);
}

}  // namespace headroom::measured
