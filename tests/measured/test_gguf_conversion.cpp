// Reference models converted to GGUF by the rules of llama.cpp's converter: read back, they have
// the parameters and every output of their safetensors files.
#include <doctest/doctest.h>

#include <algorithm>

#include "checkpoint.h"
#include "checkpoint/weight_files.h"
#include "golden_folders.h"
#include "golden_values.h"
#include "inspect/model_folder.h"
#include "measured/gguf_converter.h"
#include "session.h"
#include "support/data.h"
#include "weight_reader.h"

using namespace headroom;
using namespace headroom::checkpoint;
using namespace headroom::measured;
using namespace headroom::test;
using headroom::measured::testing::error_over_tolerance;

namespace {

/// The folder's config with the values that llama.cpp fixes.
nlohmann::json compared_config(const std::filesystem::path& folder, const GgufConverter& how) {
  nlohmann::json config = read_python_json(folder / "config.json");
  config.erase("time_step_limit");  // its Infinity is no JSON; the default of every class
  config.merge_patch(nlohmann::json::parse(how.fixed));
  return config;
}

void check_outputs(const std::filesystem::path& folder, const ModelSpec& expected_spec,
                   const ModelSpec& spec, const std::filesystem::path& file) {
  const InputFile inputs = read_inputs(folder / "inputs.json", expected_spec);
  const auto safetensors = checkpoint_weights(expected_spec, Checkpoint(folder));
  const auto gguf = stored_weights(spec, detail::read_gguf(file, spec));
  Session expected(expected_spec, *safetensors, {});
  Session got(spec, *gguf, {});
  const std::vector<NamedTensor> wanted = expected.forward(inputs.inputs);
  std::size_t compared = 0;
  for (const NamedTensor& tensor : got.forward(inputs.inputs)) {
    CAPTURE(tensor.name);
    const auto found = std::ranges::find(wanted, tensor.name, &NamedTensor::name);
    REQUIRE(found != wanted.end());
    CHECK(error_over_tolerance(tensor.values, found->values) <= 2.0);
    ++compared;
  }
  CHECK(compared == wanted.size());
}

}  // namespace

TEST_CASE("models converted by llama.cpp's rules have the parameters and outputs of safetensors") {
  std::size_t converted = 0;
  for (const auto& folder : models_with_outputs()) {
    const GgufConverter* const how = find_gguf_converter(read_python_json(folder / "config.json"));
    if (how == nullptr) continue;
    CAPTURE(folder.string());
    const nlohmann::json config = compared_config(folder, *how);
    const ModelSpec expected = spec_of(config);
    const TempFolder written;
    const auto file = written / "model.gguf";
    try {
      write_file(file, convert_to_gguf(*how, config, folder).writer().str());
      for (const std::string& problem : problems_of(inspect(file.string()))) FAIL_CHECK(problem);
      const ModelSpec spec = load_model(file.string()).spec;
      CHECK(count(spec, {}).figures.parameters == count(expected, {}).figures.parameters);
      if (!how->sizes_only) check_outputs(folder, expected, spec, file);
    } catch (const Error& error) {
      FAIL_CHECK(std::string(error.what()));
    }
    ++converted;
  }
  CHECK(converted >= 12);
}
