// Hyper-connections (arXiv 2409.19606; DeepSeek-V4): several residual streams `[batch, seq,
// streams, d]`, summed before each sublayer and mixed after it.
#include "builder.h"

namespace headroom::detail {
namespace {

Expr streams_of(const StackContext& stack) {
  return Integer{stack.spec->hyper_connections->streams};
}

StreamStep step(const StackContext& stack, StreamStep::Kind kind) {
  return {kind, stack.rows(), streams_of(stack), Symbol::hidden_size};
}

}  // namespace

TensorId GraphBuilder::expand_streams(const StackContext& stack, TensorId hidden) {
  begin_block(stack.path + ".streams", stack.role, Integer{1}, hidden);
  return end_block(emit(Part::hyper_connection, "expand", step(stack, StreamStep::Kind::expand),
                        {hidden}, {},
                        {kBatch, stack.tokens, streams_of(stack), Symbol::hidden_size}));
}

TensorId GraphBuilder::stream_weights(const StackContext& stack, const std::string& path,
                                      StreamWeights::Site site, TensorId streams) {
  const HyperConnectionSpec& spec = *stack.spec->hyper_connections;
  const bool in_layer = site == StreamWeights::Site::sublayer;
  const Expr outputs = Integer{in_layer ? spec.weights() : spec.streams};
  const int scales = in_layer ? (spec.mixes() ? 3 : 2) : 1;
  const Expr inputs = streams_of(stack) * Symbol::hidden_size;
  NormSpec unweighted = stack.spec->norm;
  unweighted.weight = NormWeight::none;
  const TensorId normed =
      emit(Part::hyper_connection, path + ".norm", Norm{unweighted, stack.rows(), inputs, {}},
           {streams}, {}, {kBatch, stack.tokens, inputs});
  const LinearParts logits{
      Part::hyper_connection, path + ".logits", WeightRole::attention,
      stack.rows(),           inputs,           {{path + ".function", outputs}}};
  const TensorId result = linear(logits, normed, {kBatch, stack.tokens, outputs});
  const std::vector<WeightId> weights{
      weight(Part::hyper_connection, path + ".base", {outputs}, WeightRole::attention),
      weight(Part::hyper_connection, path + ".scale", {Integer{scales}}, WeightRole::attention)};
  return emit_in_place(Part::hyper_connection, path + ".weights",
                       StreamWeights{site, stack.rows(), streams_of(stack), spec}, {result},
                       weights);
}

TensorId GraphBuilder::sum_streams(const StackContext& stack, const std::string& path,
                                   TensorId streams, TensorId weights) {
  return emit(Part::hyper_connection, path + ".sum", step(stack, StreamStep::Kind::sum),
              {streams, weights}, {}, hidden_shape(stack));
}

TensorId GraphBuilder::join_streams(const StackContext& stack, TensorId streams) {
  const std::string path = "hyper_connection";
  switch (stack.spec->hyper_connections->output) {
    case StreamOutput::mean:
      return emit(Part::hyper_connection, path + ".mean", step(stack, StreamStep::Kind::mean),
                  {streams}, {}, hidden_shape(stack));
    case StreamOutput::weighted:
      break;
  }
  return sum_streams(stack, path, streams,
                     stream_weights(stack, path, StreamWeights::Site::last_sum, streams));
}

TensorId GraphBuilder::update_streams(const StackContext& stack, const std::string& path,
                                      TensorId streams, TensorId branch, TensorId weights) {
  const bool mixes = stack.spec->hyper_connections->mixes();
  return emit_in_place(Part::hyper_connection, path + ".update",
                       step(stack, mixes ? StreamStep::Kind::update : StreamStep::Kind::add),
                       {streams, branch, weights});
}

}  // namespace headroom::detail
