// FitReport -> Document and JSON: memory of the worst rank by category, time, and largest batch and
// context.
#include <fmt/format.h>

#include <algorithm>

#include "describe.h"
#include "plan_words.h"
#include "storage_report.h"
#include "units.h"
#include "visit.h"
#include "with_noun.h"
#include "writers.h"

namespace headroom::detail {
namespace {

double fraction_percent(Integer part, Integer whole) {
  return 100.0 * static_cast<double>(part) / static_cast<double>(whole);
}

Column bytes_column(const char* key, const char* title, Integer largest) {
  return number_column(key, title, in_unit(byte_unit(largest), 2));
}

Table memory_table(const PlanMemory& memory, Integer capacity) {
  Table table;
  table.columns = {words_column("category", "Memory of the worst rank"),
                   bytes_column("bytes", "Bytes", std::max(memory.total(), capacity)),
                   share_column("share_percent", "Of device", {"[%]", 1})};
  for (const MemoryCategory& category : categories_of(memory)) {
    if (category.bytes == 0) continue;
    table.rows.push_back(
        {std::string(category.title), category.bytes, fraction_percent(category.bytes, capacity)});
  }
  table.rows.push_back(
      {std::string("total"), memory.total(), fraction_percent(memory.total(), capacity)});
  table.rows.push_back({std::string("device"), capacity, 100.0});
  table.total_rows = 2;
  return table;
}

/// " as 8 replicas", a plan that nobody may have meant; empty for other plans.
std::string replicas_text(const FitReport& report) {
  const ParallelPlan& plan = report.result.choice.parallel;
  const bool replicates = plan.data > 1 && plan.data == plan.devices() && plan.expert == 1;
  if (!replicates || report.question.query.purpose != Purpose::serve) return {};
  return fmt::format(" as {} replicas", plan.data);
}

/// " · fits as tp 8": the first remedy that keeps the number of devices; empty without one.
std::string other_plan_text(const FitReport& report) {
  const std::int64_t devices = report.result.choice.parallel.devices();
  for (const Remedy& remedy : report.remedies) {
    const auto* const other = std::get_if<OtherPlan>(&remedy);
    if (other == nullptr || other->choice.parallel.devices() != devices) continue;
    return " · fits as " + describe(other->choice, report.question.query.purpose);
  }
  return {};
}

std::string verdict_of(const FitReport& report) {
  const Integer free = report.question.rates.memory_bytes - report.result.figures.memory.total();
  if (report.result.fits) return fmt::format("FITS — {} free", describe_bytes(free));
  return fmt::format("DOES NOT FIT{} — {} over{}", replicas_text(report), describe_bytes(-free),
                     other_plan_text(report));
}

/// Seconds of one prompt; empty where the report has no such time.
std::optional<RunSeconds> ttft_range(const FitReport& report) {
  return report.result.fits ? report.ttft_range : std::nullopt;
}

std::string describe_ttft(const FitReport& report) {
  std::string text =
      fmt::format("{} for one prompt", duration(report.result.figures.time.ttft_s.value()));
  if (const std::optional<RunSeconds> range = ttft_range(report)) {
    text += fmt::format(" · {} to {}, for nine of ten runs", duration(range->low_s),
                        duration(range->high_s));
  }
  return text;
}

void add_iteration(const FitReport& report, Document& document) {
  const PlanTime& time = report.result.figures.time;
  const auto add = [&](const char* label, std::string text) {
    document.blocks.push_back(Line{label, std::move(text)});
  };
  std::string parts = fmt::format("compute {}", duration(time.compute_s));
  const auto part = [&](const char* name, double seconds) {
    if (seconds > 0) parts += fmt::format(" · {} {}", name, duration(seconds));
  };
  part("communication", time.communication_s);
  part("host copies", time.host_copies_s);
  part("bubble", time.bubble_s);
  part("optimizer", time.optimizer_s);
  add(step_name(report.question.query.purpose, time),
      fmt::format("{} = {}", duration(time.iteration_s), parts));
  add("range",
      fmt::format("{} to {}, for nine of ten runs", duration(time.low_s), duration(time.high_s)));
  if (time.ttft_s) add("TTFT", describe_ttft(report));
  std::string throughput = grouped(time.tokens_per_s, 1) + " tokens/s";
  if (time.mfu) throughput += fmt::format(" · MFU {:.1f} %", 100 * *time.mfu);
  add("throughput", throughput);
}

/// The change in a few words: "2 devices".
std::string words_of(const Remedy& remedy) {
  return std::visit(
      Overloaded{[](const OtherPlan& other) {
                   const std::int64_t devices = other.choice.parallel.devices();
                   return with_noun(devices, "device");
                 },
                 [](const OtherFormats& other) {
                   return fmt::format("{} weights, {} KV-cache",
                                      other.weights ? name_of(*other.weights) : "stored",
                                      name_of(other.kv_dtype));
                 },
                 [](const OtherRecomputation& other) {
                   return fmt::format("{} recomputation", name_of(other.recompute));
                 },
                 [](const ShorterContext& shorter) {
                   return fmt::format("{} tokens", with_separators(shorter.seq_len));
                 },
                 [](const SmallerBatch& smaller) {
                   return fmt::format("a batch of {}", with_separators(smaller.batch_size));
                 }},
      remedy);
}

/// Beside a context that the model's positions limit, or that goes beyond those it was trained on.
std::string positions_text(const FitReport& report) {
  const ModelSpec& spec = report.question.model.spec;
  const auto& context = report.result.largest_context;
  if (context && context == learned_positions(spec)) {
    return ", the positions that the model has learned";
  }
  const std::int64_t trained = spec.position.max_position_embeddings;
  const bool goes_beyond = trained > 0 && (!context || *context > trained);
  if (!goes_beyond || spec.embedding.image) return {};
  return fmt::format(" by memory · the model has {} positions", with_separators(trained));
}

void add_remedies(const FitReport& report, Document& document) {
  if (report.remedies.empty()) return;
  document.blocks.push_back(Heading{"Changes that would fit"});
  for (std::size_t i = 0; i < report.remedies.size(); ++i) {
    const bool has_command = i < report.remedy_commands.size();
    document.blocks.push_back(Line{words_of(report.remedies[i]),
                                   has_command ? report.remedy_commands[i] : std::string()});
  }
}

Table communication_table(const FitReport& report) {
  Table table;
  table.columns = {words_column("group", "Group"), words_column("kind", "Collective"),
                   number_column("count", "Count", {"", 0}),
                   number_column("wire_bytes", "Sent", {"[GB]", 3, 1'000'000'000}),
                   milliseconds_column("time_s", "Time")};
  for (const Communication& row : report.communication) {
    table.rows.push_back({std::string(name_of(row.group)), std::string(name_of(row.kind)),
                          Integer{static_cast<std::int64_t>(row.count)}, row.wire_bytes,
                          row.seconds});
  }
  return table;
}

Cell limit_cell(const std::optional<std::int64_t>& limit) {
  return limit ? Cell{Integer{*limit}} : Cell{std::string("no limit")};
}

Table format_table(const FitReport& report) {
  Integer largest = 0;
  for (const FormatFit& format : report.formats) {
    largest = std::max(largest, format.total_bytes);
  }
  Table table;
  table.columns = {words_column("weights", "Weights"), words_column("kv_dtype", "KV-cache"),
                   bytes_column("total_bytes", "Total", largest), words_column("fits", "Fits"),
                   number_column("largest_batch", "Batch", {"[at most]", 0})};
  for (const FormatFit& format : report.formats) {
    table.rows.push_back({std::string(name_of(format.weights)),
                          std::string(name_of(format.kv_dtype)), format.total_bytes,
                          yes_or_no(format.fits), limit_cell(format.largest_batch)});
  }
  return table;
}

Table concurrency_table(const FitReport& report) {
  Table table;
  table.columns = {number_column("seq_len", "Context", {"[tokens]", 0}),
                   number_column("largest_batch", "Sequences", {"[at most]", 0})};
  for (const ConcurrencyPoint& point : report.concurrency) {
    table.rows.push_back({Integer{point.seq_len}, limit_cell(point.largest_batch)});
  }
  return table;
}

}  // namespace

Document to_document(const FitReport& report) {
  const PlanQuestion& question = report.question;
  Document document = document_of(question);
  const auto add = [&](const char* label, std::string text) {
    document.blocks.push_back(Line{label, std::move(text)});
  };
  if (question.query.purpose == Purpose::serve) {
    add("storage", describe_storage(report.storage, report.storage.bytes));
  }
  add("plan", describe(report.result.choice, question.query.purpose));
  add_device(question, document);
  add_host_link(question, report.result.choice, document);
  // The answer comes before its parts.
  document.add_verdict("verdict", verdict_of(report), outcome_of(report.result.fits));
  add("largest batch", fmt::format("{} at a context of {}", limit_text(report.result.largest_batch),
                                   with_separators(question.load.seq_len)));
  add("largest context",
      fmt::format("{} at a batch of {}{}", limit_text(report.result.largest_context),
                  with_separators(question.load.batch_size), positions_text(report)));
  if (report.result.fits && question.rates.have_speed()) add_iteration(report, document);
  add_engine(report.engine_command, report.engine, document);
  const PlanMemory& memory = report.result.figures.memory;
  document.blocks.push_back(memory_table(memory, question.rates.memory_bytes));
  const auto add_table = [&](const char* heading, bool is_empty, Table (*table)(const FitReport&)) {
    if (is_empty) return;
    document.blocks.push_back(Heading{heading});
    document.blocks.push_back(table(report));
  };
  add_table("Communication of one rank", report.communication.empty(), communication_table);
  add_table("Other weight and KV-cache types", report.formats.empty(), format_table);
  add_table("Concurrent sequences by context length", report.concurrency.empty(),
            concurrency_table);
  add_remedies(report, document);
  return document;
}

Json to_json(const FitReport& report) {
  Json json = question_json(report.question, "fit.schema.json");
  add_host_link(report.question, report.result.choice, json);
  json["verdict"] = verdict_json(report.result.fits, verdict_of(report));
  const bool serves = report.question.query.purpose == Purpose::serve;
  json["storage"] = serves ? to_json(report.storage, report.storage.bytes) : Json(nullptr);
  json.update(result_json(report.result, report.question));
  const std::optional<RunSeconds> range = ttft_range(report);
  json["ttft_range"] =
      range ? Json{{"low_s", range->low_s}, {"high_s", range->high_s}} : Json(nullptr);
  add_engine(report.engine_command, report.engine, json);
  json["communication"] = Json::array();
  for (const Communication& row : report.communication) {
    json["communication"].push_back({{"group", name_of(row.group)},
                                     {"kind", name_of(row.kind)},
                                     {"count", row.count},
                                     {"wire_bytes", row.wire_bytes},
                                     {"time_s", row.seconds}});
  }
  const auto limit = [](const std::optional<std::int64_t>& value) {
    return value ? Json(*value) : Json(nullptr);
  };
  json["formats"] = Json::array();
  for (const FormatFit& format : report.formats) {
    json["formats"].push_back({{"weights", name_of(format.weights)},
                               {"kv_dtype", name_of(format.kv_dtype)},
                               {"total_bytes", json_integer(format.total_bytes)},
                               {"fits", format.fits},
                               {"largest_batch", limit(format.largest_batch)}});
  }
  json["concurrency"] = Json::array();
  for (const ConcurrencyPoint& point : report.concurrency) {
    json["concurrency"].push_back(
        {{"seq_len", point.seq_len}, {"largest_batch", limit(point.largest_batch)}});
  }
  json["remedies"] = Json::array();
  for (std::size_t i = 0; i < report.remedies.size(); ++i) {
    const bool has_command = i < report.remedy_commands.size();
    json["remedies"].push_back(
        {{"change", words_of(report.remedies[i])},
         {"command", has_command ? Json(report.remedy_commands[i]) : Json(nullptr)}});
  }
  return json;
}

}  // namespace headroom::detail
