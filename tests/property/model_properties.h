// Properties that hold for every config, whatever its figures: of reading, counting, explaining,
// sharding and running it.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "headroom/report.h"
#include "random_configs.h"

namespace headroom::test {

/// Properties that did not hold, as sentences.
class Findings {
 public:
  void require(bool holds, const std::string& property) {
    if (!holds) broken_.push_back(property);
  }
  [[nodiscard]] const std::vector<std::string>& broken() const noexcept { return broken_; }

 private:
  std::vector<std::string> broken_;
};

/// How far a config came.
enum class Reached { refused, counted, run };

struct CheckedModel {
  Reached reached = Reached::refused;
  std::string refusal;  ///< the reader's message, if it refused the config
  Findings findings;
};

/// Checks all properties of one config, under workloads that `seed` chooses.
[[nodiscard]] CheckedModel check_model(const nlohmann::json& config, std::uint64_t seed);

/// A report's figures in all formats, and its sums. For check_model.
void check_report(const ModelSpec& spec, const WorkloadRequest& request, Findings& findings);
/// Wholes and parts of every explained figure.
void check_explanations(const ModelSpec& spec, const WorkloadRequest& request, Findings& findings);
/// Parameters and FLOPs of all ranks of a random legal plan against the whole model's.
void check_shards(const ModelSpec& spec, Random& random, Findings& findings);
/// Counts of a real run against the analytic ones. Returns false if the model is too large to run.
bool check_run(const ModelSpec& spec, const WorkloadRequest& request, Findings& findings);
/// Logits of a prefill with decode steps against those of one prefill.
void check_decode(const ModelSpec& spec, Random& random, Findings& findings);

}  // namespace headroom::test
