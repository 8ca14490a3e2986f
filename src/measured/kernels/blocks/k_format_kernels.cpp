#include "k_formats.h"
#include "tile_product.h"

namespace headroom::measured::blocks {

std::span<const FormatKernels> k_format_kernels() {
  static constexpr std::array kKernels{kernels_of<FormatQ2K>(), kernels_of<FormatQ3K>(),
                                       kernels_of<FormatQ4K>(), kernels_of<FormatQ5K>(),
                                       kernels_of<FormatQ6K>(), kernels_of<FormatIq4Xs>()};
  return kKernels;
}

}  // namespace headroom::measured::blocks
