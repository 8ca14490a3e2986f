// Tokens on their way to experts: copies beside drawn routings, times beside DeepEP's published
// ones.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <set>
#include <vector>

#include "gpt_models.h"
#include "headroom/plan.h"
#include "support/sanitized.h"

namespace headroom::test {
namespace {

struct Routing {
  std::int64_t experts = 256;
  std::int64_t per_token = 8;
  std::int64_t groups = 1;
  std::int64_t chosen_groups = 1;
};

/// Ranks that the experts are spread over, and those of a node.
struct Spread {
  std::int64_t ranks = 8;
  std::int64_t of_node = 8;
};

/// DeepSeek-V3 with this routing.
ModelSpec model_with(const Routing& routing) {
  nlohmann::json config =
      read_json(std::filesystem::path(HEADROOM_PRESETS) / "deepseek-v3.json").at("config");
  config["num_hidden_layers"] = 4;
  config["n_routed_experts"] = routing.experts;
  config["num_experts_per_tok"] = routing.per_token;
  config["n_group"] = routing.groups;
  config["topk_group"] = routing.chosen_groups;
  return spec_of(config, "deepseek-v3");
}

constexpr double kHidden = 7168;
constexpr std::int64_t kTokensOfRank = 128;

DeviceRates rates_of(const Spread& spread) {
  DeviceRates rates = device_rates(find_machine("h800-80gb"), Purpose::serve, DType::bfloat16);
  rates.link.devices_per_node = spread.of_node;
  return rates;
}

/// The exchanges of a decode step of `tokens` sequences on every rank.
Communication exchanges(const ModelSpec& spec, const Spread& spread, ExpertExchange exchange,
                        const DeviceRates& rates, std::int64_t tokens = kTokensOfRank,
                        const PlanQuery& query = {}) {
  Planner planner(spec, query, rates);
  PlanChoice choice;
  choice.parallel.data = spread.ranks;
  choice.parallel.expert = spread.ranks;
  choice.parallel.expert_exchange = exchange;
  for (const Communication& row : planner.communication(choice, {tokens * spread.ranks, 4096})) {
    if (row.kind == CollectiveKind::all_to_all) return row;
  }
  return {};
}

/// Experts of one token: groups drawn uniformly, then experts in them.
std::vector<std::int64_t> drawn_experts(const Routing& routing, std::mt19937& random) {
  std::vector<std::int64_t> groups(static_cast<std::size_t>(routing.groups));
  std::iota(groups.begin(), groups.end(), 0);
  std::ranges::shuffle(groups, random);
  const std::int64_t of_group = routing.experts / routing.groups;
  std::vector<std::int64_t> experts;
  for (std::int64_t i = 0; i < routing.chosen_groups; ++i) {
    for (std::int64_t j = 0; j < of_group; ++j) {
      experts.push_back(groups[static_cast<std::size_t>(i)] * of_group + j);
    }
  }
  std::ranges::shuffle(experts, random);
  experts.resize(static_cast<std::size_t>(routing.per_token));
  return experts;
}

/// Copies of tokens that a rank sends, by what happens to each of 40,000 tokens.
struct DrawnCopies {
  double inside = 0;
  double outside = 0;
};

DrawnCopies drawn_copies(const Routing& routing, const Spread& spread) {
  constexpr int kDraws = 40000;
  std::mt19937 random(7);
  DrawnCopies sum;
  for (int draw = 0; draw < kDraws; ++draw) {
    const std::int64_t sender = draw % spread.ranks;
    std::set<std::int64_t> nodes;
    std::set<std::int64_t> ranks;
    for (const std::int64_t expert : drawn_experts(routing, random)) {
      const std::int64_t rank = expert / (routing.experts / spread.ranks);
      ranks.insert(rank);
      nodes.insert(rank / spread.of_node);
    }
    const std::int64_t place = sender % spread.of_node;
    for (const std::int64_t node : nodes) sum.outside += node != sender / spread.of_node ? 1 : 0;
    for (const std::int64_t rank : ranks) sum.inside += rank % spread.of_node != place ? 1 : 0;
  }
  return {sum.inside / kDraws, sum.outside / kDraws};
}

/// Copies that a rank sends over all links, from the bytes of a step's exchanges.
double sent_copies(const Communication& row) {
  return row.wire_bytes / row.count / (kTokensOfRank * kHidden * 2);
}

constexpr Spread kSpreads[] = {{8, 8}, {16, 8}, {32, 8}, {64, 8}, {128, 8}, {64, 4}, {16, 1}};

}  // namespace

TEST_CASE("an exchange by node sends the copies that drawn routings need" *
          doctest::skip(kSanitized)) {
  const Routing routings[] = {{256, 8, 1, 1}, {256, 8, 8, 4}, {128, 8, 1, 1}, {256, 6, 8, 3}};
  for (const Routing& routing : routings) {
    const ModelSpec spec = model_with(routing);
    for (const Spread& spread : kSpreads) {
      CAPTURE(routing.groups);
      CAPTURE(spread.ranks);
      CAPTURE(spread.of_node);
      const DrawnCopies drawn = drawn_copies(routing, spread);
      const Communication row = exchanges(spec, spread, ExpertExchange::by_node, rates_of(spread));
      CHECK(sent_copies(row) == doctest::Approx(drawn.inside + drawn.outside).epsilon(0.01));
    }
  }
}

TEST_CASE("each kind of links carries its own copies, both at once") {
  const Routing routing{256, 8, 8, 4};
  const ModelSpec spec = model_with(routing);
  for (const Spread& spread : {Spread{32, 8}, Spread{64, 8}}) {
    const DrawnCopies drawn = drawn_copies(routing, spread);
    DeviceRates rates = rates_of(spread);
    rates.collective_latency_s = 0;
    rates.collective_step_s = 0;
    rates.efficiency.network = 1;
    const double copy_bytes = kTokensOfRank * kHidden * 2;
    for (const double inside : {1e9, 1e15}) {
      rates.link.intra_node_bytes_per_s = inside;
      const Communication row = exchanges(spec, spread, ExpertExchange::by_node, rates);
      const double expected = copy_bytes * std::max(drawn.inside / inside, drawn.outside / 50e9);
      CHECK(row.seconds / row.count == doctest::Approx(expected).epsilon(0.01));
    }
  }
}

TEST_CASE("a direct exchange sends a copy for each expert on another rank") {
  const ModelSpec spec = model_with({256, 8, 8, 4});
  for (const Spread& spread : kSpreads) {
    const Communication row = exchanges(spec, spread, ExpertExchange::direct, rates_of(spread));
    const auto ranks = static_cast<double>(spread.ranks);
    CHECK(sent_copies(row) == doctest::Approx(8 * (ranks - 1) / ranks));
  }
}

// transformers then takes experts of other groups, too, with scores of 0.
TEST_CASE("a token of fewer eligible experts than it takes goes to all of those") {
  ModelSpec spec = model_with({64, 8, 8, 1});
  for (LayerVariant& variant : spec.decoder->variants) {  // which no config may ask for
    if (variant.ffn.experts) variant.ffn.experts->num_experts_per_tok = 9;
  }
  const Spread spread{64, 8};
  const Communication row = exchanges(spec, spread, ExpertExchange::by_node, rates_of(spread));
  // Eight experts of one group are one node: seven eighths of the tokens leave theirs.
  CHECK(sent_copies(row) == doctest::Approx(8 * 7.0 / 8 + 7.0 / 8));
}

// Equal all-to-alls leave nothing to save where every expert has a rank, and every rank a node.
TEST_CASE("without nodes of several ranks, both exchanges of sparse experts are alike") {
  const ModelSpec spec = model_with({16, 2, 1, 1});
  const Spread spread{16, 1};
  const double direct =
      exchanges(spec, spread, ExpertExchange::direct, rates_of(spread)).wire_bytes;
  CHECK(exchanges(spec, spread, ExpertExchange::by_node, rates_of(spread)).wire_bytes ==
        doctest::Approx(direct));
}

namespace {

PlanQuery float8_query() {
  PlanQuery query;
  query.arithmetic = DType::float8;
  return query;
}

/// Seconds of a dispatch and a combine together by a row of DeepEP's table.
double published_seconds(const CsvRow& row, const Routing& routing, const Spread& spread) {
  if (row.at("kernels") == "low_latency") {
    return 1e-6 * (std::stod(row.at("dispatch_us")) + std::stod(row.at("combine_us")));
  }
  // Its benchmarks count what ranks of the node receive, or copies for nodes, the own one included.
  constexpr int kDraws = 40000;
  std::mt19937 random(7);
  double copies = 0;
  for (int draw = 0; draw < kDraws; ++draw) {
    std::set<std::int64_t> places;
    for (const std::int64_t expert : drawn_experts(routing, random)) {
      const std::int64_t rank = expert / (routing.experts / spread.ranks);
      places.insert(spread.ranks > spread.of_node ? rank / spread.of_node : rank);
    }
    copies += static_cast<double>(places.size()) / kDraws;
  }
  const double tokens = 4096 * copies;
  return tokens * kHidden * (1 + 4.0 / 128) / (1e9 * std::stod(row.at("dispatch_gb_per_s"))) +
         tokens * kHidden * 2 / (1e9 * std::stod(row.at("combine_gb_per_s")));
}

/// The routing of DeepEP's benchmark: at most four nodes, of as many groups as there are nodes.
Routing benchmark_routing(const CsvRow& row, std::int64_t nodes) {
  if (row.at("kernels") == "low_latency") return {};
  return {256, 8, nodes, std::min<std::int64_t>(nodes, 4)};
}

}  // namespace

// NVLink at the share that serving reaches, and one step's latency of NCCL; a port's share is that
// of the row of 64 ranks by node, and of NCCL's benchmarks.
TEST_CASE("dispatch and combine take the times that DeepEP publishes within 5 % in the median") {
  std::vector<double> errors;
  for (const CsvRow& row : read_csv(data_folder() / "expert_parallel" / "deepep.csv")) {
    const std::int64_t ranks = number(row, "ep");
    const Spread spread{ranks, 8};
    const Routing routing = benchmark_routing(row, ranks / 8);
    const bool normal = row.at("kernels") == "normal";
    const DeviceRates rates =
        device_rates(find_machine("h800-80gb"), Purpose::serve, DType::bfloat16, DType::float8);
    const Communication exchange = exchanges(
        model_with(routing), spread, normal ? ExpertExchange::by_node : ExpertExchange::direct,
        rates, normal ? 4096 : kTokensOfRank, float8_query());
    const double published = published_seconds(row, routing, spread);
    const double error = 2 * exchange.seconds / exchange.count / published - 1;
    MESSAGE(row.at("kernels"), " EP ", ranks, ": ", 100 * error, " %");
    errors.push_back(std::abs(error));
  }
  std::ranges::sort(errors);
  CHECK(errors.size() == 10);
  CHECK((errors[4] + errors[5]) / 2 < 0.05);
  CHECK(errors.back() < 0.22);
}

}  // namespace headroom::test
