// Manipulated files: every change makes a row fail or the file refused.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "headroom/compare.h"
#include "headroom/error.h"
#include "headroom/report.h"
#include "support/data.h"

using namespace headroom;
using nlohmann::json;

namespace {

/// A prediction of a generation by gpt2, and a measurement equal to it.
class Files {
 public:
  Files() {
    WorkloadRequest request;
    request.seq_len = 16;
    AnalyzeReport report = make_analyze_report(load_model("gpt2"), request);
    TimeRequest time;
    time.phase = MeasuredPhase::generate;
    time.new_tokens = 4;
    add_prediction(report, find_machine("t4"), time);
    predicted = json::parse(render(report, {.format = Format::json}));
    measured = json::parse(render(measurement_of(report), {.format = Format::json}));
  }

  json predicted;
  json measured;

 private:
  static Measurement measurement_of(const AnalyzeReport& report) {
    const RunFigures& run = report.run.value();
    const TimePrediction& time = report.time.value();
    Measurement measurement;
    measurement.engine = kOwnEngine;
    measurement.model = report.model;
    measurement.phase = run.phase;
    measurement.new_tokens = run.new_tokens;
    measurement.workload = report.workload;
    measurement.time = summarize({0.99 * time.total_s, time.total_s, 1.01 * time.total_s});
    measurement.ttft_s = time.ttft_s;
    measurement.tpot_s = time.tpot_s;
    measurement.context.threads = 2;
    const auto count = [](Integer value) { return static_cast<std::int64_t>(value); };
    measurement.counted = {count(run.parameters), count(run.matrix_flops), count(run.weight_bytes),
                           count(run.kv_cache_bytes.value())};
    measurement.memory.arena_peak_bytes = count(run.peak_activation_bytes);
    // Equal parts, so that a change of either exceeds the tolerance.
    measurement.memory.rss_before_bytes = count(run.rss_growth_bytes);
    measurement.memory.rss_peak_bytes = 2 * count(run.rss_growth_bytes);
    for (const OperatorTime& one : time.operators) {
      measurement.operators.push_back({one.path, one.time_s, 0, 1});
    }
    measurement.operators.front().matrix_flops = count(run.matrix_flops);
    return measurement;
  }
};

/// The result; empty if a file is refused.
std::optional<RowResult> result_of(const json& predicted, const json& measured) {
  CompareOptions options;
  // An explicit tolerance: times of a datasheet are not judged without one.
  for (const auto quantity : {Quantity::time_s, Quantity::ttft_s, Quantity::tpot_s}) {
    options.tolerances[quantity] = 0.15;
  }
  try {
    return compare(import_prediction(predicted.dump(), "predicted.json"),
                   import_measurement(measured.dump(), "measured.json"), options)
        .result;
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::invalid_input);
    CHECK_FALSE(error.hint().empty());
    return std::nullopt;
  }
}

bool is_caught(const json& predicted, const json& measured) {
  return result_of(predicted, measured).value_or(RowResult::fail) == RowResult::fail;
}

json changed(const json& value) {
  if (value.is_string()) return value.get<std::string>() + "x";
  if (value.is_number_float()) return 1.5 * value.get<double>();
  return value.get<std::int64_t>() + 1 + value.get<std::int64_t>() / 2;
}

const char* const kPredictedFigures[] = {"/schema_version",
                                         "/model/name",
                                         "/run/phase",
                                         "/run/new_tokens",
                                         "/run/parameters",
                                         "/run/matrix_flops",
                                         "/run/weight_bytes",
                                         "/run/kv_cache_bytes",
                                         "/run/rss_growth_bytes",
                                         "/run/peak_activation_bytes",
                                         "/workload/batch_size",
                                         "/workload/seq_len",
                                         "/workload/past_len",
                                         "/workload/dtype",
                                         "/workload/attention",
                                         "/time/basis",
                                         "/time/total_s",
                                         "/time/ttft_s",
                                         "/time/tpot_s",
                                         "/time/ops/0/time_s"};

const char* const kMeasuredFigures[] = {"/schema_version",
                                        "/model/name",
                                        "/workload/phase",
                                        "/workload/new_tokens",
                                        "/workload/batch_size",
                                        "/workload/seq_len",
                                        "/workload/past_len",
                                        "/workload/dtype",
                                        "/workload/attention",
                                        "/time/median_s",
                                        "/time/mad_s",
                                        "/time/samples_s/1",
                                        "/ttft_s",
                                        "/tpot_s",
                                        "/counted/parameters",
                                        "/counted/matrix_flops",
                                        "/counted/weight_bytes",
                                        "/counted/kv_cache_bytes",
                                        "/memory/arena_peak_bytes",
                                        "/memory/rss_before_bytes",
                                        "/memory/rss_peak_bytes",
                                        "/ops/0/matrix_flops"};

}  // namespace

TEST_CASE("a prediction and an equal measurement pass") {
  const Files files;
  CHECK(result_of(files.predicted, files.measured) == RowResult::pass);
}

TEST_CASE("a changed figure fails or is refused, on either side") {
  const Files files;
  for (const std::string figure : kPredictedFigures) {
    CAPTURE(figure);
    json predicted = files.predicted;
    json& value = predicted.at(json::json_pointer(figure));
    value = changed(value);
    CHECK(is_caught(predicted, files.measured));
  }
  for (const std::string figure : kMeasuredFigures) {
    CAPTURE(figure);
    json measured = files.measured;
    json& value = measured.at(json::json_pointer(figure));
    value = changed(value);
    CHECK(is_caught(files.predicted, measured));
  }
}

TEST_CASE("a missing or emptied figure fails or is refused, on either side") {
  const Files files;
  const auto remove = [](json& document, const std::string& figure) {
    const json::json_pointer at(figure);
    json& holder = document.at(at.parent_pointer());
    if (holder.is_object()) {
      holder.erase(at.back());
    } else {
      holder.erase(std::stoul(at.back()));
    }
  };
  for (const std::string figure : kPredictedFigures) {
    CAPTURE(figure);
    json predicted = files.predicted;
    remove(predicted, figure);
    CHECK(is_caught(predicted, files.measured));
    predicted = files.predicted;
    predicted.at(json::json_pointer(figure)) = nullptr;
    CHECK(is_caught(predicted, files.measured));
  }
  for (const std::string figure : kMeasuredFigures) {
    if (figure == "/time/samples_s/1") continue;  // two runs are a measurement, too
    CAPTURE(figure);
    json measured = files.measured;
    remove(measured, figure);
    CHECK(is_caught(files.predicted, measured));
    if (figure.starts_with("/memory/rss_")) continue;  // null where the system does not report it
    measured = files.measured;
    measured.at(json::json_pointer(figure)) = nullptr;
    CHECK(is_caught(files.predicted, measured));
  }
}

TEST_CASE("unknown keys of headroom's own files are refused, on either side") {
  const Files files;
  const auto with_key = [](json file, const char* object) {
    (*object == '\0' ? file : file.at(object))["total"] = 1;
    return file;
  };
  for (const char* const object : {"", "run", "time"}) {
    CAPTURE(object);
    CHECK(!result_of(with_key(files.predicted, object), files.measured));
  }
  for (const char* const object : {"", "time", "counted", "memory"}) {
    CAPTURE(object);
    CHECK(!result_of(files.predicted, with_key(files.measured, object)));
  }
  json of_another = with_key(files.measured, "memory");
  of_another["engine"] = "another";
  CHECK(result_of(files.predicted, of_another));
}

TEST_CASE("every key of the JSON Schema is read") {
  const Files files;
  const auto schema = [](const char* name) {
    const auto file = test::data_folder().parent_path().parent_path() / "reports" / name;
    return test::read_json(file).at("properties");
  };
  const auto completed = [](json file, const json& properties) {
    for (const auto& [key, value] : properties.items()) {
      if (!file.contains(key)) file[key] = nullptr;
    }
    return file;
  };
  CHECK(result_of(completed(files.predicted, schema("analyze.schema.json")), files.measured));
  CHECK(result_of(files.predicted, completed(files.measured, schema("measure.schema.json"))));
}

TEST_CASE("a resident memory that the system did not report is skipped") {
  const Files files;
  for (const char* const key : {"rss_before_bytes", "rss_peak_bytes"}) {
    CAPTURE(key);
    json measured = files.measured;
    measured["memory"][key] = nullptr;
    CHECK(result_of(files.predicted, measured) == RowResult::pass);
  }
}

TEST_CASE("a measurement without one of its operators is refused") {
  const Files files;
  json measured = files.measured;
  measured["ops"].erase(0);
  CHECK(is_caught(files.predicted, measured));
  measured["ops"] = json::array();
  CHECK(is_caught(files.predicted, measured));
}

TEST_CASE("a measurement whose operators take longer than its longest run is refused") {
  const Files files;
  json measured = files.measured;
  json& first = measured["ops"][0]["time_s"];
  first = first.get<double>() + measured["time"]["max_s"].get<double>();
  CHECK(!result_of(files.predicted, measured));
}

TEST_CASE("figures of the wrong kind are refused") {
  const Files files;
  for (const std::string figure : kMeasuredFigures) {
    for (const json& wrong : {json("text"), json(-1), json(1e300), json::object(), json::array()}) {
      CAPTURE(figure);
      json measured = files.measured;
      measured.at(json::json_pointer(figure)) = wrong;
      CHECK(is_caught(files.predicted, measured));
    }
  }
  for (const std::string figure : kPredictedFigures) {
    for (const json& wrong : {json("text"), json(-1), json(1e300), json::object(), json::array()}) {
      CAPTURE(figure);
      json predicted = files.predicted;
      predicted.at(json::json_pointer(figure)) = wrong;
      CHECK(is_caught(predicted, files.measured));
    }
  }
}

TEST_CASE("a count of all 64 bits is not read as negative") {
  const Files files;
  json measured = files.measured;
  measured["counted"]["parameters"] = 18446744073709551615ULL;
  CHECK(result_of(files.predicted, measured) == RowResult::fail);
}

TEST_CASE("files of other models, swapped files and one file twice are refused") {
  const Files files;
  json other = files.measured;
  other["model"]["name"] = "gpt2-medium";
  CHECK(result_of(files.predicted, other) == std::nullopt);
  CHECK(result_of(files.measured, files.predicted) == std::nullopt);
  CHECK(result_of(files.predicted, files.predicted) == std::nullopt);
  CHECK(result_of(files.measured, files.measured) == std::nullopt);
}
