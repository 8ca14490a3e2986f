// Recurrent layers on their own, as torch.nn.RNN, LSTM and GRU have them: one direction, and every
// layer as wide as its input.
#include "../family.h"

namespace headroom::detail {
namespace {

void read_recurrent(ConfigReader& config, ModelSpec& spec, RecurrentCell cell,
                    std::string_view name) {
  read_architecture(config, spec, {{name, {}}});
  spec.kind = ModelKind::recurrent_layer;
  spec.hidden_size = config.size({"hidden_size"});
  if (config.size_or({"input_size"}, spec.hidden_size) != spec.hidden_size) {
    config.fail("input_size", "differs from hidden_size", "give both the same value");
  }
  spec.embedding.input = InputKind::hidden_states;
  config.expect("bidirectional", false);
  config.expect("proj_size", 0);
  config.expect("nonlinearity", "tanh");
  config.expect("dropout", 0);
  config.ignore({"batch_first"});

  StackSpec stack;
  stack.num_layers = config.layers_or({"num_layers", "num_hidden_layers"}, 1);
  stack.norm_placement = NormPlacement::none;
  stack.recurrent = RecurrentSpec{cell, config.flag_or({"bias"}, true)};
  spec.decoder = std::move(stack);
}

}  // namespace

void read_rnn(ConfigReader& config, ModelSpec& spec) {
  read_recurrent(config, spec, RecurrentCell::rnn, "RNN");
}

void read_lstm(ConfigReader& config, ModelSpec& spec) {
  read_recurrent(config, spec, RecurrentCell::lstm, "LSTM");
}

void read_gru(ConfigReader& config, ModelSpec& spec) {
  read_recurrent(config, spec, RecurrentCell::gru, "GRU");
}

}  // namespace headroom::detail
