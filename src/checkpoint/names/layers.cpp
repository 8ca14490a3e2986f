// Layers on their own: torch.nn.RNN, LSTM and GRU; torch.nn.Conv1d, alone or as `layers` of a
// stack.
#include "family_names.h"

namespace headroom::checkpoint {
namespace {

constexpr NameRule kRecurrent[] = {
    {"recurrent.input.%", "%_ih_l{}"},
    {"recurrent.hidden.%", "%_hh_l{}"},
};

constexpr NameRule kConvolution[] = {
    {"convolution.%", "layers.{}.%"},
    {"convolution.%", "%"},
};

}  // namespace

NameTable recurrent_names(const ModelSpec& /*spec*/) { return {{kRecurrent}, {}, {}}; }

NameTable convolution_names(const ModelSpec& /*spec*/) { return {{kConvolution}, {}, {}}; }

}  // namespace headroom::checkpoint
