#include "block_formats.h"
#include "tile_product.h"

namespace headroom::measured::blocks {

std::span<const FormatKernels> plain_format_kernels() {
  static constexpr std::array kKernels{kernels_of<FormatQ8_0>(), kernels_of<FormatQ4_0>(),
                                       kernels_of<FormatQ4_1>(), kernels_of<FormatQ5_0>(),
                                       kernels_of<FormatQ5_1>(), kernels_of<FormatIq4Nl>(),
                                       kernels_of<FormatMxfp4>()};
  return kKernels;
}

const FormatKernels* find_kernels(checkpoint::GgmlType type) noexcept {
  for (const auto kernels : {plain_format_kernels(), k_format_kernels()}) {
    for (const FormatKernels& one : kernels) {
      if (one.type == type) return &one;
    }
  }
  return nullptr;
}

}  // namespace headroom::measured::blocks
