// A plan's memory against its device, the loads that fit, and the parts of its time.
#include <fmt/format.h>

#include <algorithm>

#include "describe.h"
#include "picture.h"
#include "pictures.h"
#include "plan_words.h"
#include "units.h"
#include "with_noun.h"

namespace headroom::detail {
namespace {

struct MemoryPart {
  const char* name;
  Integer bytes;
};

/// Parts of a rank's memory; those that are alike together.
std::vector<MemoryPart> parts_of(const PlanMemory& memory) {
  const RuntimeBytes& runtime = memory.runtime;
  std::vector<MemoryPart> parts{
      {"weights", memory.weights},
      {"gradients", memory.gradients},
      {"optimizer and master weights", memory.optimizer},
      {"embedding and head of this stage", memory.embedding_states},
      {"activations", memory.activations + memory.embedding_and_loss},
      {"KV-cache", memory.kv_cache},
      {"buffers of the backward pass", memory.buffers.total()},
      {"communication library", runtime.communication},
      {"reserve: driver, context, allocator", runtime.total() - runtime.communication}};
  std::erase_if(parts, [](const MemoryPart& part) { return part.bytes == 0; });
  return parts;
}

double scaled(Integer bytes, const Unit& unit) {
  return static_cast<double>(bytes) / static_cast<double>(unit.size);
}

Bar plan_bar(const FitReport& report, const Unit& unit) {
  const PlanMemory& memory = report.result.figures.memory;
  Bar bar{"this plan", {}, describe_bytes(memory.total())};
  for (const MemoryPart& part : parts_of(memory)) {
    const double share =
        static_cast<double>(part.bytes) / static_cast<double>(report.question.rates.memory_bytes);
    bar.parts.push_back({part.name, scaled(part.bytes, unit),
                         fmt::format("{}: {}, {:.1f} % of the device", part.name,
                                     describe_bytes(part.bytes), 100 * share)});
  }
  return bar;
}

Bar format_bar(const FormatFit& format, const Unit& unit) {
  const std::string name =
      fmt::format("{} weights, {} KV", name_of(format.weights), name_of(format.kv_dtype));
  const std::string total = describe_bytes(format.total_bytes);
  return {name,
          {{"total with other types", scaled(format.total_bytes, unit),
            fmt::format("{}: {}, {}", name, total, format.fits ? "fits" : "does not fit")}},
          total};
}

std::string memory_bars(const FitReport& report) {
  const Integer capacity = report.question.rates.memory_bytes;
  const Integer total = report.result.figures.memory.total();
  if (capacity <= 0) return {};
  Integer largest = std::max(capacity, total);
  for (const FormatFit& format : report.formats) largest = std::max(largest, format.total_bytes);
  const Unit unit = byte_unit(largest);
  Bars content{"Memory of the worst rank against the device",
               fmt::format("{} of {}, {}.", describe_bytes(total), describe_bytes(capacity),
                           report.result.fits ? "which fits" : "which does not fit"),
               {std::string(unit.name)},
               {plan_bar(report, unit)},
               PlotPoint{scaled(capacity, unit), 0, "device: " + describe_bytes(capacity)}};
  for (const FormatFit& format : report.formats) content.bars.push_back(format_bar(format, unit));
  return bars(content);
}

std::string load_text(std::int64_t batch, std::int64_t context) {
  return fmt::format("{} of {}", with_noun_grouped(batch, "sequence"),
                     with_noun_grouped(context, "token"));
}

PlotPoint load_point(std::int64_t batch, std::int64_t context) {
  return {static_cast<double>(context), static_cast<double>(batch), load_text(batch, context)};
}

/// The largest batch of each context, the limits of this load, and the load.
std::string concurrency_plot(const FitReport& report) {
  PlotSeries frontier{"largest that fits", Drawn::line};
  for (const ConcurrencyPoint& point : report.concurrency) {
    if (!point.largest_batch || *point.largest_batch == 0) continue;  // none on these axes
    frontier.points.push_back(load_point(*point.largest_batch, point.seq_len));
  }
  if (frontier.points.size() < 2) return {};
  const Load& load = report.question.load;
  PlotSeries limits{"limits of the load asked for", Drawn::points};
  const PlanResult& result = report.result;
  if (result.largest_batch.value_or(0) > 0) {
    limits.points.push_back(load_point(*result.largest_batch, load.seq_len));
  }
  if (result.largest_context.value_or(0) > 0) {
    limits.points.push_back(load_point(load.batch_size, *result.largest_context));
  }
  const PlotPoint asked = load_point(load.batch_size, load.seq_len);
  std::vector<PlotSeries> series{std::move(frontier), std::move(limits)};
  std::erase_if(series, [](const PlotSeries& one) { return one.points.empty(); });
  return plot({"Concurrent sequences that fit by context length",
               fmt::format("Loads on the line or below it fit. Asked for: {}.", asked.name),
               {"context [tokens]", AxisScale::logarithmic},
               {"sequences", AxisScale::logarithmic},
               std::move(series),
               PlotPoint{asked.x, asked.y, "asked for: " + asked.name}});
}

std::string time_bar(const FitReport& report) {
  if (!report.result.fits || !report.question.rates.have_speed()) return {};
  const PlanTime& time = report.result.figures.time;
  Bar bar{step_name(report.question.query.purpose, time), {}, duration(time.iteration_s)};
  const auto add = [&](const char* name, double seconds) {
    if (seconds > 0) {
      bar.parts.push_back({name, 1e3 * seconds, fmt::format("{}: {}", name, duration(seconds))});
    }
  };
  add("compute", time.compute_s);
  add("communication", time.communication_s);
  add("host copies", time.host_copies_s);
  add("bubble", time.bubble_s);
  add("optimizer", time.optimizer_s);
  if (bar.parts.size() < 2) return {};
  const std::string title = fmt::format("Time of a {}", bar.name);
  return bars({title,
               fmt::format("{}: nine of ten runs lie from {} to {}.", bar.text,
                           duration(time.low_s), duration(time.high_s)),
               {"ms"},
               {std::move(bar)},
               {}});
}

}  // namespace

std::vector<std::string> pictures_of(const FitReport& report) {
  return {memory_bars(report), concurrency_plot(report), time_bar(report)};
}

}  // namespace headroom::detail
