// Alternating updates and the low-rank residual of Gemma 3n (AltUp, arXiv 2301.13310; LAuReL, arXiv
// 2411.07501; transformers, models/gemma3n).
#include <fmt/format.h>

#include <cmath>
#include <numbers>

#include "builder.h"

namespace headroom::detail {

TensorId GraphBuilder::altup_step(const StackContext& stack, const std::string& path,
                                  AltUpStep::Kind kind, std::vector<TensorId> inputs,
                                  std::int64_t index) {
  const AltUpSpec& spec = *stack.spec->altup;
  const AltUpStep op{kind, Integer{spec.inputs}, stack.rows(), Symbol::hidden_size, index};
  const std::vector<Expr> all{Integer{spec.inputs}, kBatch, stack.tokens, Symbol::hidden_size};
  switch (kind) {
    case AltUpStep::Kind::correct:
    case AltUpStep::Kind::spread:
      return emit_in_place(Part::residual, path, op, std::move(inputs));
    case AltUpStep::Kind::stack:
    case AltUpStep::Kind::predict:
      return emit(Part::residual, path, op, std::move(inputs), {}, all);
    case AltUpStep::Kind::select:
    case AltUpStep::Kind::merge:
      break;
  }
  return emit(Part::residual, path, op, std::move(inputs), {}, hidden_shape(stack));
}

TensorId GraphBuilder::altup_inputs(const StackContext& stack, TensorId hidden) {
  begin_block("altup_inputs", stack.role, Integer{1}, hidden);
  std::vector<TensorId> streams{hidden};
  for (std::int64_t i = 1; i < stack.spec->altup->inputs; ++i) {
    streams.push_back(project(stack, Part::embeddings,
                              {fmt::format("projection.{}", i), Symbol::hidden_size},
                              WeightRole::embedding, LinearBias::absent, hidden));
  }
  return end_block(altup_step(stack, "stack", AltUpStep::Kind::stack, std::move(streams)));
}

TensorId GraphBuilder::altup_output(const StackContext& stack, TensorId streams) {
  begin_block("altup_output", stack.role, Integer{1}, streams);
  const auto select = [&](std::int64_t i) {
    return altup_step(stack, fmt::format("stream.{}", i), AltUpStep::Kind::select, {streams}, i);
  };
  std::vector<TensorId> merged{select(0)};
  for (std::int64_t i = 1; i < stack.spec->altup->inputs; ++i) {
    merged.push_back(project(stack, Part::head,
                             {fmt::format("projection.{}", i), Symbol::hidden_size},
                             WeightRole::embedding, LinearBias::absent, select(i)));
  }
  return end_block(altup_step(stack, "merge", AltUpStep::Kind::merge, std::move(merged)));
}

TensorId GraphBuilder::altup_coefficients(const StackContext& stack, const AltUpRouter& router,
                                          const std::string& name, const Expr& count,
                                          TensorId input) {
  const std::string path = "altup." + name;
  const Expr inputs = Integer{stack.spec->altup->inputs};
  TensorId x = emit_in_place(Part::mlp_router, path + ".router_norm",
                             Norm{stack.spec->norm, stack.rows(), Symbol::hidden_size, {}}, {input},
                             {router.norm});
  x = scaled(Part::mlp_router, path + ".router.input.scale",
             1 / static_cast<double>(spec_.hidden_size), x);
  x = emit(Part::mlp_router, path + ".router",
           Linear{stack.rows(), Symbol::hidden_size, inputs, false, {}}, {x}, {router.weight},
           {kBatch, stack.tokens, inputs});
  x = emit_in_place(Part::mlp_router, path + ".router.activation",
                    Activation{ActivationKind::tanh, stack.rows() * inputs}, {x});
  return project(stack, Part::mlp_router, {path, count}, WeightRole::mlp, LinearBias::absent, x);
}

TensorId GraphBuilder::laurel(const StackContext& stack, TensorId hidden) {
  const auto map = [&](const std::string& path, const Expr& out, TensorId input) {
    return project(stack, Part::attention_out, {path, out}, WeightRole::mlp, LinearBias::absent,
                   input);
  };
  TensorId low = map("laurel.left", Integer{stack.spec->laurel_rank}, hidden);
  low = map("laurel.right", Symbol::hidden_size, low);
  low = norm(stack.spec->norm, "laurel.norm", stack.rows(), low);
  return add_residual(stack, "laurel.residual", hidden, low);
}

TensorId GraphBuilder::altup_layer(const StackContext& stack, TensorId streams) {
  const AltUpSpec& altup = *stack.spec->altup;
  const NormSpec& norm_spec = stack.spec->norm;
  const Expr inputs = Integer{altup.inputs};
  const AltUpRouter router{
      weight(Part::rms_norm, "altup.router_norm.weight", {Symbol::hidden_size}, WeightRole::norm),
      weight(Part::mlp_router, "altup.router.weight", {inputs, Symbol::hidden_size},
             WeightRole::mlp)};
  const auto select = [&](const std::string& path, TensorId from) {
    return altup_step(stack, path, AltUpStep::Kind::select, {from}, altup.active);
  };
  TensorId coefficients = altup_coefficients(stack, router, "prediction", inputs * inputs,
                                             select("altup.prediction.input", streams));
  streams = altup_step(stack, "altup.predict", AltUpStep::Kind::predict, {streams, coefficients});
  const TensorId active = select("altup.active", streams);
  const TensorId normed = norm(norm_spec, "attention_norm", stack.rows(), active);
  const TensorId low = laurel(stack, normed);
  TensorId branch =
      norm(norm_spec, "attention_output_norm", stack.rows(), self_attention(stack, normed));
  TensorId hidden = add_residual(stack, "attention.residual", active, branch);
  hidden = add_residual(stack, "attention.laurel", hidden, low);
  hidden = scaled(Part::residual, "attention.laurel.scale", 1 / std::numbers::sqrt2, hidden);
  branch = feed_forward(stack, norm(norm_spec, "mlp_norm", stack.rows(), hidden));
  branch = norm(norm_spec, "mlp_output_norm", stack.rows(), branch);
  hidden = add_residual(stack, "mlp.residual", hidden, branch);
  coefficients = altup_coefficients(stack, router, "correction", inputs, hidden);
  streams = altup_step(stack, "altup.correct", AltUpStep::Kind::correct,
                       {streams, hidden, coefficients}, altup.active);
  TensorId first = select("altup.corrected", streams);
  if (altup.scales_output) {
    first = emit_in_place(
        Part::residual, "altup.output_scale", TrainedScale{stack.rows(), Symbol::hidden_size},
        {first},
        {weight(Part::residual, "altup.output_scale", {Symbol::hidden_size}, WeightRole::norm)});
  }
  return altup_step(stack, "altup.spread", AltUpStep::Kind::spread,
                    {streams, per_layer_branch(stack, first)});
}

}  // namespace headroom::detail
