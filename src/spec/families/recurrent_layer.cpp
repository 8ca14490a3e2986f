// Recurrent layers as in torch.nn.RNN, LSTM and GRU: one direction, every layer as wide as its
// input.
#include "../common_keys.h"
#include "../family.h"

namespace headroom::detail {
namespace {

void read_recurrent_cell(ConfigReader& config, ModelSpec& spec, RecurrentCell cell) {
  spec.kind = ModelKind::recurrent_layer;
  spec.hidden_size = config.size({"hidden_size"});
  if (config.size_or({"input_size"}, spec.hidden_size) != spec.hidden_size) {
    config.fail("input_size", "differs from hidden_size", "set both to one value");
  }
  spec.embedding.input = InputKind::hidden_states;
  config.expect_flag("bidirectional", false);
  config.expect_number("proj_size", 0);
  config.expect_text("nonlinearity", "tanh");
  config.expect_number("dropout", 0);
  config.ignore({"batch_first"});

  StackSpec stack;
  stack.num_layers = config.layers_or({"num_layers", "num_hidden_layers"}, 1);
  stack.norm_placement = NormPlacement::none;
  stack.recurrent = RecurrentSpec{cell, config.flag_or({"bias"}, true)};
  spec.decoder = std::move(stack);
}

FamilyReader read_recurrent(RecurrentCell cell) {
  return [cell](ConfigReader& config, ModelSpec& spec) { read_recurrent_cell(config, spec, cell); };
}

constexpr NameRule kRecurrent[] = {
    {"recurrent.input.%", "%_ih_l{}"},
    {"recurrent.hidden.%", "%_hh_l{}"},
};

}  // namespace

std::vector<Family> recurrent_layer_families() {
  return {{.model_types = {"rnn"},
           .classes = one_class("RNN"),
           .reader = read_recurrent(RecurrentCell::rnn),
           .names = NameTable{{kRecurrent}, {}, {}},
           .gguf = None("a single layer has no GGUF file")},
          {.model_types = {"lstm"},
           .classes = one_class("LSTM"),
           .reader = read_recurrent(RecurrentCell::lstm),
           .names = NameTable{{kRecurrent}, {}, {}},
           .gguf = None("a single layer has no GGUF file")},
          {.model_types = {"gru"},
           .classes = one_class("GRU"),
           .reader = read_recurrent(RecurrentCell::gru),
           .names = NameTable{{kRecurrent}, {}, {}},
           .gguf = None("a single layer has no GGUF file")}};
}

}  // namespace headroom::detail
