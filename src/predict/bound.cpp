#include "headroom/predict.h"

namespace headroom {

std::string_view name_of(Bound bound) noexcept {
  switch (bound) {
    case Bound::compute:
      return "compute";
    case Bound::cache:
      return "cache";
    case Bound::memory:
      return "memory";
    case Bound::overhead:
      break;
  }
  return "overhead";
}

std::string_view name_of(TimeBasis basis) noexcept {
  switch (basis) {
    case TimeBasis::modelled:
      return "modelled";
    case TimeBasis::assumed:
      break;
  }
  return "assumed";
}

}  // namespace headroom
