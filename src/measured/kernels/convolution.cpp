#include "convolution.h"

#include "parallel.h"

namespace headroom::measured {

void extract_windows(const ConvolutionArguments& args, const float* x, float* rows) {
  const std::int64_t inputs = args.stride * args.length;
  const std::int64_t width = args.channels * args.kernel;
  const bool channels_first = args.layout == SoundLayout::channels_first;
  const std::int64_t channel_step = channels_first ? inputs : 1;
  const std::int64_t time_step = channels_first ? 1 : args.channels;
#pragma omp parallel for collapse(2) \
    schedule(static) if (args.batch * args.length * width >= kSerialElements)
  for (std::int64_t item = 0; item < args.batch; ++item) {
    for (std::int64_t place = 0; place < args.length; ++place) {
      const float* const from = x + item * inputs * args.channels;
      float* to = rows + (item * args.length + place) * width;
      for (std::int64_t channel = 0; channel < args.channels; ++channel) {
        for (std::int64_t k = 0; k < args.kernel; ++k) {
          const std::int64_t time = place * args.stride + k - args.kernel / 2;
          const bool inside = time >= 0 && time < inputs;
          *to++ = inside ? from[channel * channel_step + time * time_step] : 0.0F;
        }
      }
    }
  }
}

}  // namespace headroom::measured
