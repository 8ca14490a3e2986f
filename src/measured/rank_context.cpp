#include "rank_context.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <new>
#include <optional>
#include <sstream>
#include <utility>

#include "headroom/error.h"
#include "op_exprs.h"
#include "visit.h"

namespace headroom::measured {
namespace {

/// Separates the parts of an error in the text that ranks exchange.
constexpr char kSeparator = '\x1f';

std::string as_text(const Error& error) {
  return fmt::format("{}{}{}{}{}{}{}", static_cast<int>(error.code()), kSeparator, error.message(),
                     kSeparator, error.where(), kSeparator, error.hint());
}

std::array<std::string, 4> parts_of(const std::string& text) {
  std::array<std::string, 4> parts;
  std::istringstream stream(text);
  for (std::string& part : parts) std::getline(stream, part, kSeparator);
  return parts;
}

ErrorCode code_of(const std::string& text) {
  return static_cast<ErrorCode>(std::stoi(parts_of(text).front()));
}

int status_of(const std::string& text) { return exit_status(code_of(text)); }

/// The error of rank `worst`, which it names unless all ranks fail alike.
AgreedError error_of(const std::vector<std::string>& failures, std::size_t worst) {
  const auto [code, message, where, hint] = parts_of(failures[worst]);
  const bool alike = std::ranges::count(failures, failures[worst]) == std::ssize(failures);
  const std::string place = alike ? where
                                  : fmt::format("rank {} of {}{}{}", worst, failures.size(),
                                                where.empty() ? "" : ": ", where);
  return {code_of(failures[worst]), message, place, hint};
}

[[noreturn]] void refuse(const Block& block, const Node& node, const char* why, const char* hint) {
  throw Error(ErrorCode::invalid_input, why, block.path + "." + node.path, hint);
}

/// Returns whether `op` computes each row by itself, so that it runs on a shard of the tokens.
bool computes_by_row(const Op& op) {
  return std::visit(
      Overloaded{
          [](const OneOf<Linear, Norm, HeadNorm, Clamp, Concatenate, OutputGate, Activation,
                         GatedActivation, ResidualAdd, RouterSelect, ExpertLinear, ExpertCombine,
                         RowGate, PositionEmbedding, TokenEmbedding, Dropout, Scale, TrainedScale,
                         TrainedShift, SoftCap, Rotary, VisualTokens, Collective> auto&) {
            return true;
          },
          [](const OneOf<
              PatchEmbedding, PatchRows, Convolution, GridConvolution, RelativePositionBias,
              PositionTableRows, DisentangledBias, RelativeSinusoids, TransformerXlBias,
              GatedPositionBias, LocalAttention, TemperatureScale, LatentConcat, HeadLinear,
              GroupedLinear, KeyCompression, IndexScores, KeySelect, PoolTokens, StreamWeights,
              StreamStep, KvCacheAppend, AttentionScores, Softmax, AttentionContext, FusedAttention,
              GlobalRows, FeatureMap, LinearAttention, ShortConvolution, StateSpaceScan, GatedDelta,
              GatedLinearRecurrence, TokenShift, TokenMix, ValueBonus, WeightedKeyValue, Recurrence,
              ChannelScale, SelectToken, UnitLength, RepeatedRow, SimilarityLogits, AltUpStep,
              TimestepFeatures, Modulation, SequenceRows, CrossEntropy> auto&) { return false; }},
      op);
}

/// Returns whether a norm needs other sums over the ranks than those of squares: those of a layer
/// norm, or of groups that begin and end within a rank.
bool needs_other_sums(const Node& node, std::int64_t ranks) {
  const auto* const op = std::get_if<Collective>(&node.op);
  if (op == nullptr || !op->squares) return false;
  constexpr Integer kSumBytes = sizeof(float);
  const RowSquares& squares = *op->squares;
  return ranks % squares.groups != 0 || !(op->bytes == kSumBytes * squares.groups * squares.rows);
}

/// Returns whether ranks divide the query heads of a layer and leave all its key-value heads, of
/// which there is a number of its own: a rank's queries then have no consecutive ones.
bool leaves_key_value_heads(const Node& node) {
  return std::visit(
      [](const auto& op) {
        if constexpr (requires { op.shape.kv_heads; }) {
          const Expr& own = op.shape.kv_heads;
          const bool divides = op.shape.heads.degree(Symbol::num_attention_heads) > 0;
          const bool follows = own.degree(Symbol::num_attention_heads) > 0 ||
                               own.degree(Symbol::num_key_value_heads) > 0;
          return divides && !follows && !(own == Expr(Integer{1}));
        } else {
          return false;
        }
      },
      node.op);
}

bool has_token_shards(const Tensor& tensor) {
  return tensor.elements().degree(Symbol::sequence_shard_len) > 0;
}

}  // namespace

void run_together(Coordinator& world, const std::function<void()>& step) {
  std::string failure;
  try {
    step();
  } catch (const Error& error) {
    failure = as_text(error);
  } catch (const std::bad_alloc&) {
    failure = as_text({ErrorCode::missing_resource, "out of memory"});
  }
  const std::vector<std::string> failures = world.exchange(failure);
  std::optional<std::size_t> worst;
  for (std::size_t rank = 0; rank < failures.size(); ++rank) {
    if (failures[rank].empty()) continue;
    const bool is_worse = !worst || status_of(failures[rank]) > status_of(failures[*worst]);
    if (is_worse) worst = rank;
  }
  if (worst) throw error_of(failures, *worst);
}

Graph graph_of_rank(Graph whole, const RankContext* rank) {
  return rank == nullptr ? std::move(whole) : rank->shard(whole);
}

bool shards_tokens(const RankContext* rank, Phase phase) noexcept {
  return rank != nullptr && rank->sequence == SequenceShards::on && phase != Phase::decode;
}

void set_token_shards(Bindings& sizes, std::int64_t seq_len, Phase phase, const RankContext* rank) {
  const std::int64_t shards = shards_tokens(rank, phase) ? rank->tensor.ranks : 1;
  sizes.set(Symbol::sequence_shard_len, seq_len / shards);
}

void require_rank_runs(const Graph& sharded, const RankContext& rank) {
  const bool shards_tokens = rank.sequence == SequenceShards::on;
  for (const Block& block : sharded.blocks) {
    for (const Node& node : block.nodes) {
      if (rank.tensor.ranks > 1 && leaves_key_value_heads(node)) {
        refuse(block, node, "a run does not divide a number of key-value heads of a layer's own",
               "use pipeline, data or expert parallelism");
      }
      if (needs_other_sums(node, rank.tensor.ranks)) {
        refuse(block, node, "a run has no such sums of a norm over several ranks",
               "use pipeline parallelism, or another number of tensor-parallel ranks");
      }
      const bool sharded_output = shards_tokens && has_token_shards(sharded.tensors[node.output]);
      if (sharded_output && !computes_by_row(node.op)) {
        refuse(block, node, "reads tokens that sequence parallelism leaves on other ranks",
               "leave out sequence parallelism");
      }
    }
  }
}

}  // namespace headroom::measured
