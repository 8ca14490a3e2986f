// Model heads: pooler, language-model head, classifier, and in training the loss.
#include <cmath>

#include "builder.h"

namespace headroom::detail {

void GraphBuilder::head(const StackContext& stack, TensorId hidden) {
  const HeadSpec& spec = spec_.head;
  begin_block("head", StackRole::single, Integer{1}, hidden);
  StackContext read = stack;
  const TensorId all_tokens = hidden;
  if (options_.logits == Logits::last && spec.language_model) {
    hidden = last_token(hidden);
    read.tokens = Integer{1};
  }
  if (spec.projects_out) hidden = project_out(read, hidden);
  if (spec.similarity) similarity_head(*spec.similarity, hidden);
  if (!spec.language_model && !spec.classifier && !spec.similarity) {
    graph_.outputs.push_back(hidden);
  }
  if (spec.language_model) language_model_head(read, hidden);
  if (spec.classifier || spec.pooler) classifier(stack, spec.language_model ? all_tokens : hidden);
  end_block(hidden);
}

TensorId GraphBuilder::project_out(const StackContext& stack, TensorId hidden) {
  const Expr width = embedding_width();
  const LinearParts out{Part::head,       "project_out",
                        WeightRole::head, kBatch * stack.tokens,
                        kHidden,          {{"project_out", width}}};
  return linear(out, hidden, {kBatch, stack.tokens, width});
}

TensorId GraphBuilder::last_token(TensorId hidden) {
  const Expr width = graph_.tensors[hidden].shape.back();
  return emit(Part::head, "last_token", SelectToken{kBatch * width, TokenPooling::last, {}},
              {hidden}, {}, {kBatch, Integer{1}, width});
}

TensorId GraphBuilder::select_token(Part part, TensorId hidden) {
  return emit(part, part == Part::pooler ? "pooler.token" : "classifier.token",
              SelectToken{kBatch * kHidden}, {hidden}, {}, {kBatch, kHidden});
}

TensorId GraphBuilder::pooler(TensorId hidden) {
  const TensorId first = select_token(Part::pooler, hidden);
  const std::int64_t size = spec_.head.pooler_size;
  const Expr width = size == 0 ? Expr(kHidden) : sized(Symbol::hidden_size, size);
  const LinearParts dense{Part::pooler, "pooler.dense", WeightRole::head,
                          kBatch,       kHidden,        {{"pooler.dense", width}},
                          true};
  const TensorId projected = linear(dense, first, {kBatch, width});
  return emit_in_place(Part::pooler, "pooler.activation",
                       Activation{spec_.head.pooler_activation, kBatch * width}, {projected});
}

TensorId GraphBuilder::language_model_transform(const Expr& rows, TensorId hidden) {
  const LanguageModelHeadSpec& head = *spec_.head.language_model;
  const Expr width = embedding_width();
  const LinearParts dense{Part::head,
                          "transform.dense",
                          WeightRole::head,
                          rows,
                          kHidden,
                          {{"transform.dense", width}},
                          head.transform_bias};
  std::vector<Expr> shape = graph_.tensors[hidden].shape;
  shape.back() = width;
  hidden = linear(dense, hidden, shape);
  hidden = emit_in_place(Part::head, "transform.activation",
                         Activation{*head.transform, rows * width}, {hidden});
  // BERT-like heads repeat the embedding's norm.
  const NormSpec spec = head.transform_norm ? *head.transform_norm : *spec_.embedding.norm;
  return norm(spec, "transform.norm", Norm{spec, rows, width, {}}, hidden);
}

TensorId GraphBuilder::adjust_logits(const LanguageModelHeadSpec& spec, TensorId logits) {
  const Expr elements = graph_.tensors[logits].elements();
  if (spec.logit_scale != 1) {
    logits = emit_in_place(Part::head, "logits.scale", Scale{elements, spec.logit_scale}, {logits});
  }
  if (spec.soft_cap > 0) {
    logits =
        emit_in_place(Part::head, "logits.soft_cap", SoftCap{elements, spec.soft_cap}, {logits});
  }
  return logits;
}

void GraphBuilder::language_model_head(const StackContext& stack, TensorId hidden) {
  const LanguageModelHeadSpec& spec = *spec_.head.language_model;
  const Expr rows = kBatch * stack.tokens;
  const Expr vocab = Symbol::vocab_size;
  if (spec.transform) hidden = language_model_transform(rows, hidden);
  if (spec.scale_by_inverse_sqrt_hidden) {
    const double factor = 1 / std::sqrt(static_cast<double>(spec_.hidden_size));
    hidden = emit_in_place(Part::head, "scale", Scale{rows * kHidden, factor}, {hidden});
  }
  const Expr width = embedding_width();
  std::vector<WeightId> weights;
  weights.push_back(
      spec.weight == WeightSharing::shared
          ? *word_embedding_
          : weight(Part::head, "language_model.weight", {vocab, width}, WeightRole::head));
  if (spec.bias) {
    weights.push_back(weight(Part::head, "language_model.bias", {vocab}, WeightRole::head));
    if (spec.bias_is_buffer) graph_.weights.back().kind = WeightKind::buffer;
  }
  const TensorId projected = emit(Part::head, "logits", Linear{rows, width, vocab, spec.bias, {}},
                                  {hidden}, std::move(weights), {kBatch, stack.tokens, vocab});
  const TensorId logits = adjust_logits(spec, projected);
  graph_.outputs.push_back(logits);
  // A causal decoder predicts the next token, so the last one of a sequence has no target.
  const Expr targets = spec_.kind == ModelKind::decoder ? stack.tokens - Integer{1} : stack.tokens;
  loss("loss", logits, kBatch * targets, vocab,
       spec.float32_logits ? SoftmaxPrecision::float32 : SoftmaxPrecision::activation);
}

TensorId GraphBuilder::pool_tokens(const StackContext& stack, TokenPooling pooling,
                                   TensorId hidden) {
  Expr width = graph_.tensors[hidden].shape.back();
  SelectToken op{kBatch * width, pooling, {}, spec_.head.classifier->token_id.value_or(0)};
  const Expr all = stack.rows() * width;
  switch (pooling) {
    case TokenPooling::first:
      return select_token(Part::head, hidden);
    case TokenPooling::second:
    case TokenPooling::last:
    case TokenPooling::first_of_id:
    case TokenPooling::last_of_id:
    case TokenPooling::last_of_other_id:
    case TokenPooling::greatest_id:
      break;
    case TokenPooling::mean: {
      const auto& image = spec_.embedding.image;
      op.averaged = all - kBatch * Integer{image ? image->prefix_tokens() : 0} * width;
      break;
    }
    case TokenPooling::first_and_mean: {
      const auto& image = spec_.embedding.image;
      const Expr left_out = Integer{image ? image->prefix_tokens() : 1};
      op.averaged = all - kBatch * left_out * width;
      width = Integer{2} * width;
      op.elements = kBatch * width;
      break;
    }
  }
  const char* const path =
      pooling == TokenPooling::second ? "classifier.second_token" : "classifier.token";
  return emit(Part::head, path, std::move(op), {hidden}, {}, {kBatch, width});
}

TensorId GraphBuilder::classifier_features(const StackContext& stack, const ClassifierSpec& spec,
                                           TensorId hidden) {
  switch (spec.input) {
    case ClassifierInput::pooled_token:
      return pooler(hidden);
    case ClassifierInput::first_token:
    case ClassifierInput::first_two_tokens:
      return pool_tokens(stack, TokenPooling::first, hidden);
    case ClassifierInput::end_token:
      return pool_tokens(stack, spec.token_id ? TokenPooling::last_of_id : TokenPooling::last,
                         hidden);
    case ClassifierInput::mean_token:
      return pool_tokens(stack, TokenPooling::mean, project_tokens(stack, spec, hidden));
    case ClassifierInput::first_and_mean:
      return pool_tokens(stack, TokenPooling::first_and_mean, hidden);
    case ClassifierInput::last_token:
    case ClassifierInput::every_token:
      break;
  }
  return hidden;
}

TensorId GraphBuilder::project_tokens(const StackContext& stack, const ClassifierSpec& spec,
                                      TensorId hidden) {
  if (spec.projection_size == 0) return hidden;
  const Expr width = Integer{spec.projection_size};
  const LinearParts parts{Part::head,
                          "classifier.projection",
                          WeightRole::head,
                          stack.rows(),
                          kHidden,
                          {{"classifier.projection", width}},
                          true};
  return linear(parts, hidden, {kBatch, stack.tokens, width});
}

TensorId GraphBuilder::classifier_dense(const ClassifierSpec& spec, TensorId features) {
  features = dropout("classifier.dense.dropout", spec.dense_dropout, features);
  const std::vector<Expr> shape = graph_.tensors[features].shape;
  const Expr elements = graph_.tensors[features].elements();
  Expr rows{Integer{1}};
  for (std::size_t i = 0; i + 1 < shape.size(); ++i) rows = rows * shape[i];
  const LinearParts dense{Part::head,       "classifier.dense",
                          WeightRole::head, rows,
                          kHidden,          {{"classifier.dense", kHidden}},
                          spec.dense_bias};
  features = linear(dense, features, shape);
  features = emit_in_place(Part::head, "classifier.activation", Activation{*spec.dense, elements},
                           {features});
  if (!spec.dense_norm) return features;
  return norm(*spec.dense_norm, "classifier.norm", Norm{*spec.dense_norm, rows, kHidden, {}},
              features);
}

TensorId GraphBuilder::last_token_logits(const ClassifierSpec& spec, TensorId logits) {
  const Expr labels = Symbol::num_labels;
  const TokenPooling pooling = spec.token_id ? TokenPooling::last_of_other_id : TokenPooling::last;
  return emit(Part::head, "classifier.token",
              SelectToken{kBatch * labels, pooling, {}, spec.token_id.value_or(0)}, {logits}, {},
              {kBatch, labels});
}

void GraphBuilder::classifier(const StackContext& stack, TensorId hidden) {
  const Expr labels = Symbol::num_labels;
  if (!spec_.head.classifier) {
    graph_.outputs.push_back(pooler(hidden));
    return;
  }
  const ClassifierSpec& spec = *spec_.head.classifier;
  TensorId features = classifier_features(stack, spec, hidden);
  if (spec.dense) features = classifier_dense(spec, features);
  features = dropout("classifier.dropout", spec.dropout, features);
  const bool per_token = graph_.tensors[features].shape.size() > 2;
  const Expr rows = per_token ? kBatch * stack.tokens : kBatch;
  std::vector<Expr> shape = graph_.tensors[features].shape;
  const Expr width = spec_.head.projects_out ? embedding_width() : shape.back();
  shape.back() = labels;
  const auto project = [&](const std::string& path, TensorId input) {
    const LinearParts out{Part::head,       path,     WeightRole::head, rows, width,
                          {{path, labels}}, spec.bias};
    return linear(out, input, shape);
  };
  TensorId logits = project("classifier", features);
  if (spec.input == ClassifierInput::first_two_tokens) {
    const TensorId second = pool_tokens(stack, TokenPooling::second, hidden);
    const Expr elements = kBatch * labels;
    logits = emit_in_place(Part::head, "classifier.sum", ResidualAdd{elements},
                           {logits, project("distillation_classifier", second)});
    logits = emit_in_place(Part::head, "classifier.mean", Scale{elements, 0.5}, {logits});
  }
  if (spec.input == ClassifierInput::last_token) logits = last_token_logits(spec, logits);
  graph_.outputs.push_back(logits);
  const Expr targets = spec.input == ClassifierInput::every_token ? rows : kBatch;
  loss("classifier.loss", logits, targets, labels, SoftmaxPrecision::activation);
}

void GraphBuilder::loss(const std::string& path, TensorId logits, const Expr& rows,
                        const Expr& classes, SoftmaxPrecision precision) {
  if (!training()) return;
  emit(Part::loss, path, CrossEntropy{rows, classes, precision}, {logits}, {}, {Integer{1}});
}

}  // namespace headroom::detail
