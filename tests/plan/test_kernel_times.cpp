// GEMMs by datasheets, beside single kernels that engines measured.
#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "gpt_models.h"
#include "headroom/predict.h"

namespace headroom::test {
namespace {

double microseconds(const CsvRow& row) { return std::stod(row.at("microseconds")); }

bool is_float8(const CsvRow& row) { return row.at("type") == "float8"; }

/// One layer whose FFN begins with the GEMM of `row`.
ModelSpec layer_with(const CsvRow& row) {
  const std::int64_t in_features = number(row, "in_features");
  return spec_of({{"model_type", "gpt2"},
                  {"architectures", {"GPT2LMHeadModel"}},
                  {"n_embd", in_features},
                  {"n_inner", number(row, "out_features")},
                  {"torch_dtype", is_float8(row) ? "float8_e4m3fn" : "bfloat16"},
                  {"n_head", in_features / 128},
                  {"n_layer", 1},
                  {"n_positions", 8192},
                  {"vocab_size", 512}},
                 "layer");
}

/// Microseconds that a serving step gives the GEMM of `row`.
double predicted_gemm(const CsvRow& row) {
  Workload workload;
  workload.seq_len = number(row, "rows");
  workload.dtype = workload.kv_dtype = is_float8(row) ? DType::float8 : DType::bfloat16;
  const TimePrediction time =
      predict_time(layer_with(row), workload, find_machine(row.at("machine")), {});
  const auto found =
      std::ranges::find(time.operators, "decoder.layers.mlp.up", &OperatorTime::path);
  REQUIRE(found != time.operators.end());
  return 1e6 * found->time_s;
}

double median(std::vector<double> values) {
  REQUIRE_FALSE(values.empty());
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

/// Microseconds that the GEMM of `row` takes beyond its weights at the bandwidth that serving
/// reaches.
double beyond_weights(const CsvRow& row) {
  const auto sheet = std::get<DatasheetRates>(find_machine(row.at("machine")).rates);
  const auto elements = static_cast<double>(number(row, "in_features")) *
                        static_cast<double>(number(row, "out_features"));
  const double bytes = elements * (is_float8(row) ? 1 : 2);
  const double share = efficiency_of(sheet, Purpose::serve, DType::bfloat16).fractions.memory;
  return microseconds(row) - 1e6 * bytes / (share * sheet.memory_bytes_per_s);
}

}  // namespace

TEST_CASE("GEMMs of few rows take longer in float8, beyond their bytes") {
  std::map<std::string, std::vector<double>> beyond;
  for (const CsvRow& row : read_csv(data_folder() / "kernels" / "gemms.csv")) {
    if (number(row, "rows") > 8) continue;
    beyond[row.at("machine") + (is_float8(row) ? ", float8" : "")].push_back(beyond_weights(row));
  }
  for (const std::string machine : {"h100-80gb", "h200-141gb", "b200", "b300", "gb200"}) {
    CAPTURE(machine);
    const double longer = median(beyond[machine + ", float8"]) - median(beyond[machine]);
    const Architecture architecture =
        std::get<DatasheetRates>(find_machine(machine).rates).architecture;
    const double predicted = 1e6 * (serving_kernel_seconds(architecture, DType::float8) -
                                    serving_kernel_seconds(architecture, DType::bfloat16));
    MESSAGE(machine, ": ", longer, " µs longer, predicted ", predicted);
    CHECK(std::abs(predicted - longer) < 1.7);
  }
}

// Whole runs reach less than single kernels on an idle device, so that the large GEMMs of 16 bits
// are predicted slower than these.
TEST_CASE("GEMMs by datasheets take the times that engines measured, to a fifth in the median") {
  std::map<std::string, std::vector<double>> errors;
  for (const CsvRow& row : read_csv(data_folder() / "kernels" / "gemms.csv")) {
    const double error = std::abs(predicted_gemm(row) / microseconds(row) - 1);
    errors["all"].push_back(error);
    errors[row.at("machine") + ", " + row.at("type")].push_back(error);
  }
  CHECK(errors.size() == 16);
  CHECK(median(errors["all"]) < 0.2);
  for (const auto& [group, of_group] : errors) {
    MESSAGE(group, ": ", 100 * median(of_group), " %");
    CHECK(median(of_group) < 0.4);
  }
}

}  // namespace headroom::test
