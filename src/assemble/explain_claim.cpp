// Searches sums of terms that make a claimed figure: pairs of terms meet pairs of others.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "analyze_model.h"
#include "claim_terms.h"
#include "derivation_steps.h"
#include "headroom/claim.h"
#include "headroom/error.h"

namespace headroom {
namespace {

using detail::ClaimOption;

/// At most two options, by index in ascending order.
struct OptionPair {
  std::vector<std::size_t> options;
  Integer sum = 0;
};

class ClaimSearch {
 public:
  ClaimSearch(const std::vector<ClaimOption>& options, Integer ours, Integer claim)
      : options_(options), ours_(ours), claim_(claim) {
    pairs_.push_back({{}, 0});
    for (std::size_t i = 0; i < options.size(); ++i) {
      pairs_.push_back({{i}, options[i].term.value});
      for (std::size_t j = i + 1; j < options.size(); ++j) {
        if (options[i].choice == options[j].choice) continue;
        pairs_.push_back({{i, j}, checked_add(options[i].term.value, options[j].term.value)});
      }
    }
    for (std::size_t i = 0; i < pairs_.size(); ++i) by_sum_.emplace(pairs_[i].sum, i);
  }

  /// All explanations of the least length.
  std::vector<ClaimExplanation> run(const std::vector<ClaimScale>& scales) {
    for (const ClaimScale& scale : scales) search(scale);
    return std::move(found_);
  }

  [[nodiscard]] std::size_t sums() const noexcept { return sums_; }

 private:
  void search(const ClaimScale& scale) {
    const Integer claimed = checked_multiply(claim_, scale.denominator);
    if (claimed % scale.numerator != 0) return;
    const Integer missing = checked_add(claimed / scale.numerator, -ours_);
    for (const OptionPair& first : pairs_) {
      sums_ += pairs_.size();
      const auto [begin, end] = by_sum_.equal_range(checked_add(missing, -first.sum));
      for (auto at = begin; at != end; ++at) keep(scale, first, pairs_[at->second]);
    }
  }

  /// Every set of terms once: the first half has the lower indices, and is full if there is a
  /// second.
  void keep(const ClaimScale& scale, const OptionPair& first, const OptionPair& second) {
    if (!second.options.empty()) {
      if (first.options.size() < 2 || first.options.back() >= second.options.front()) return;
      for (const std::size_t i : first.options) {
        for (const std::size_t j : second.options) {
          if (options_[i].choice == options_[j].choice) return;
        }
      }
    }
    ClaimExplanation explanation{scale, {}};
    for (const auto& half : {first.options, second.options}) {
      for (const std::size_t i : half) explanation.terms.push_back(options_[i].term);
    }
    if (!found_.empty() && explanation.length() > found_.front().length()) return;
    if (!found_.empty() && explanation.length() < found_.front().length()) found_.clear();
    found_.push_back(std::move(explanation));
  }

  const std::vector<ClaimOption>& options_;
  Integer ours_;
  Integer claim_;
  std::vector<OptionPair> pairs_;
  std::multimap<Integer, std::size_t> by_sum_;
  std::vector<ClaimExplanation> found_;
  std::size_t sums_ = 0;
};

/// True for figures of some phases or models alone.
bool has_conditions(Subject subject) {
  switch (subject) {
    case Subject::kv:
    case Subject::training:
    case Subject::states:
      return true;
    case Subject::flops:
    case Subject::elementwise:
    case Subject::params:
    case Subject::activations:
      break;
  }
  return false;
}

}  // namespace

ClaimReport explain_claim(Model model, const WorkloadRequest& request, Subject subject,
                          Integer claim, const KvCacheRequest& kv_cache) {
  if (claim < 1) throw_invalid_input("a claimed figure is at least 1", "check the number");
  AnalyzeReport analyzed =
      detail::analyze_model(std::move(model), request, Convention::headroom, kv_cache);
  const bool trains = analyzed.workload.phase == Phase::train;
  ClaimReport report;
  report.subject = subject == Subject::flops && trains ? Subject::training : subject;
  const bool is_peak = subject == Subject::activations && !trains;
  if (is_peak) {
    throw_invalid_input("the peak of live activations is a maximum, not a sum of terms",
                        "count a training step, or explain another figure");
  }
  if (has_conditions(subject)) (void)detail::steps_of(analyzed, subject);  // refuses what it lacks
  report.unit = detail::unit_of(report.subject);
  report.claim = claim;
  report.values = bindings_of(analyzed.workload, analyzed.graph);
  std::vector<Relation> relations = relations_of(analyzed.workload);
  relations.insert(relations.end(), analyzed.graph.relations.begin(),
                   analyzed.graph.relations.end());
  const Expr ours = detail::figure_of(analyzed, report.subject);
  report.ours = {std::string(name_of(report.subject)), collapse(ours, relations),
                 ours.evaluate(report.values)};
  std::vector<ClaimOption> options = detail::claim_options(analyzed, report.subject, report.values);
  for (ClaimOption& option : options) {
    option.term.formula = collapse(option.term.formula, relations);
  }
  ClaimSearch search(options, report.ours.value, claim);
  report.explanations = search.run(detail::claim_scales(analyzed, report.subject));
  report.terms_tried = options.size();
  report.sums_tried = search.sums();
  report.workload = analyzed.workload;
  report.model = std::move(analyzed.model);
  report.notes = notes_on(report.workload, report.model.spec);
  if (!report.model.name_note.empty()) {
    report.notes.insert(report.notes.begin(), report.model.name_note);
  }
  return report;
}

}  // namespace headroom
