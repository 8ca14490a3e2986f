#include "imported_runs.h"

#include <utility>

#include "headroom/engine_log.h"
#include "headroom/error.h"
#include "json_text.h"

namespace headroom::cli {
namespace {

std::vector<ComparedRun> timed_runs(const std::string& file) {
  const std::string text = detail::read_text_file(file);
  if (is_engine_log(text)) {
    throw Error(ErrorCode::invalid_input, "is a start-up log, which prints no times", file,
                "give the file that the engine's benchmark wrote");
  }
  return import_runs(text, file);
}

std::optional<double> amount_of(const ComparedRun& run, Quantity quantity) {
  const auto found = run.amounts.find(quantity);
  if (found == run.amounts.end()) return std::nullopt;
  return std::get<double>(found->second);
}

/// Seconds of the steps that generate, and the context of the middle one.
void add_steps(const ComparedRun& run, std::vector<ImportedRun>& runs) {
  const auto step = amount_of(run, Quantity::tpot_s);
  if (!step) return;
  const RunIdentity& identity = run.identity;
  StatedLoad load{identity.batch_size, {}, {}, {}};
  if (identity.seq_len) load.seq_len = *identity.seq_len + identity.new_tokens.value_or(0) / 2;
  runs.push_back({load, {{RunFigure::tpot, *step, 0}}});
}

/// Of a generation: the prefill of one prompt and the steps, or the whole of one.
void add_generation_parts(const ComparedRun& run, std::vector<ImportedRun>& runs) {
  const RunIdentity& identity = run.identity;
  const StatedLoad one{1, identity.seq_len, {}, {}};
  add_steps(run, runs);
  if (identity.batch_size != 1) return;
  const auto first = amount_of(run, Quantity::ttft_s);
  const auto whole = amount_of(run, Quantity::time_s);
  const std::int64_t new_tokens = identity.new_tokens.value_or(0);
  if (first) {
    runs.push_back({one, {{RunFigure::ttft, *first, 0}}});
  } else if (runs.empty() && whole && new_tokens > 1 && !run.time_of_all_requests) {
    runs.push_back({one, {{RunFigure::generation, *whole, new_tokens}}});
  }
}

/// A pass over prompts, or a decode step. No fit command has a prompt after cached tokens.
void add_pass(const ComparedRun& run, std::vector<ImportedRun>& runs) {
  const RunIdentity& identity = run.identity;
  const auto seconds = amount_of(run, Quantity::time_s);
  const std::int64_t past_len = identity.past_len.value_or(0);
  if (!seconds) return;
  if (identity.phase == MeasuredPhase::decode) {
    StatedLoad load{identity.batch_size, {}, {}, {}};
    if (identity.past_len) load.seq_len = past_len + 1;
    runs.push_back({load, {{RunFigure::tpot, *seconds, 0}}});
  } else if (past_len == 0) {
    const StatedLoad load{identity.batch_size, identity.seq_len, {}, {}};
    runs.push_back({load, {{RunFigure::pass, *seconds, 0}}});
  }
}

ImportedRun service_of(const ComparedRun& run) {
  const RunIdentity& identity = run.identity;
  ImportedRun imported{
      {identity.batch_size, identity.seq_len, identity.new_tokens, identity.requests}, {}};
  // They all came at once.
  if (run.time_of_all_requests) imported.load.batch_size = identity.requests;
  const auto add = [&](Quantity quantity, RunFigure figure) {
    const auto seconds = amount_of(run, quantity);
    if (seconds) imported.figures.push_back({figure, *seconds, 0});
  };
  add(Quantity::ttft_s, RunFigure::ttft);
  add(Quantity::tpot_s, RunFigure::tpot);
  add(Quantity::time_s, run.time_of_all_requests ? RunFigure::time : RunFigure::end_to_end);
  return imported;
}

}  // namespace

std::vector<ImportedRun> runs_for_fit(const std::string& file) {
  std::vector<ImportedRun> runs;
  for (const ComparedRun& run : timed_runs(file)) {
    std::vector<ImportedRun> parts;
    if (run.identity.phase == MeasuredPhase::generate) {
      add_generation_parts(run, parts);
    } else {
      add_pass(run, parts);
    }
    for (ImportedRun& part : parts) runs.push_back(std::move(part));
  }
  if (runs.empty()) {
    throw Error(ErrorCode::invalid_input, "has no run that a fit command predicts", file,
                "give a serve command, with --users and --requests as many as ran at once");
  }
  return runs;
}

std::vector<ImportedRun> runs_for_serve(const std::string& file) {
  std::vector<ImportedRun> runs;
  for (const ComparedRun& run : timed_runs(file)) {
    if (run.identity.phase != MeasuredPhase::generate) continue;
    runs.push_back(service_of(run));
  }
  if (runs.empty()) {
    throw Error(ErrorCode::invalid_input, "has single passes, not requests", file,
                "give a fit command");
  }
  return runs;
}

}  // namespace headroom::cli
