#include "figure_name.h"

namespace headroom::detail {

std::string figure_name(Subject subject) {
  switch (subject) {
    case Subject::flops:
      return "matrix FLOPs";
    case Subject::elementwise:
      return "element-wise FLOPs";
    case Subject::params:
      return "parameters";
    case Subject::activations:
      return "saved for backward";
    case Subject::kv:
      return "KV-cache";
    case Subject::training:
      return "training step";
    case Subject::states:
      break;
  }
  return "model states";
}

}  // namespace headroom::detail
