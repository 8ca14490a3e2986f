// Names that people type, and the presets that they mean.
#include <doctest/doctest.h>

#include <map>
#include <string>
#include <tuple>

#include "headroom/error.h"
#include "headroom/model_source.h"
#include "headroom/report.h"
#include "support/data.h"
#include "support/scratch.h"

using namespace headroom;
using namespace headroom::test;

namespace {

/// The preset that `typed` means, and how; "–" if there is none.
std::pair<std::string, NameMatch> matched(const std::string& typed) {
  const auto found = match_preset(typed);
  return found ? std::pair{found->preset.name, found->match} : std::pair{"–", NameMatch::name};
}

void check_guess(const std::string& typed, const std::string& preset) {
  CAPTURE(typed);
  CHECK(matched(typed) == std::pair{preset, NameMatch::guess});
}

void check_none(const std::string& typed) {
  CAPTURE(typed);
  CHECK(matched(typed).first == "–");
}

/// A user's preset: the config of a tiny model under another name.
std::string own_preset(const std::string& name, const std::string& alias) {
  nlohmann::json preset = nlohmann::json::parse(find_preset("bert-tiny")->json);
  preset["name"] = name;
  preset["aliases"] = {alias};
  return preset.dump();
}

}  // namespace

TEST_CASE("a repository finds its preset, exactly") {
  const std::pair<const char*, const char*> repositories[] = {
      {"Qwen/Qwen3-8B", "qwen3-8b"},
      {"google/gemma-3-4b-it", "gemma-3-4b"},
      {"openai-community/gpt2", "gpt2"},
      // Presets with other heads count the repository as well: the one with its name is meant.
      {"google-bert/bert-base-uncased", "bert-base-uncased"},
      {"distilbert/distilbert-base-uncased", "distilbert-base-uncased"},
      {"meta-llama/Llama-4-Scout-17B-16E", "llama-4-scout"}};
  for (const auto& repository : repositories) {
    const char* const typed = repository.first;
    CAPTURE(typed);
    CHECK(matched(typed) == std::pair{std::string(repository.second), NameMatch::repository});
    CHECK(load_model(typed).name_note.empty());
  }
}

TEST_CASE("every preset is found by its name and its repository") {
  int repositories = 0;
  for (const Preset& preset : list_presets()) {
    CAPTURE(preset.name);
    CHECK(matched(preset.name) == std::pair{preset.name, NameMatch::name});
    if (preset.repository.empty()) continue;
    ++repositories;
    const auto found = match_preset(preset.repository);
    REQUIRE(found.has_value());
    CHECK(found->preset.repository == preset.repository);
  }
  CHECK(repositories >= 290);
}

TEST_CASE("case and the words of a variant do not matter, and the guess is said") {
  check_guess("LLAMA-3-8B", "llama-3-8b");
  check_guess("qwen3:8b", "qwen3-8b");
  check_guess("meta-llama/Meta-Llama-3-8B-Instruct", "llama-3-8b");
  check_guess("meta-llama/Llama-2-7b-chat-hf", "llama-2-7b");
  check_guess("gemma-2-9b-it", "gemma-2-9b");
  check_guess("google/gemma-3-4b-pt", "gemma-3-4b");
  check_guess("mistralai/Mistral-7B-Instruct-v0.3", "mistral-7b-v0.3");
  check_guess("mistralai/Mistral-Nemo-Instruct-2407", "mistral-nemo-12b");
  check_guess("Qwen/Qwen3-8B-Base", "qwen3-8b");
  check_guess("deepseek-ai/DeepSeek-V3-Base", "deepseek-v3");
  check_guess("qwen/qwen3-8b", "qwen3-8b");
  check_guess("BERT-Base", "bert-base-uncased");
  CHECK(load_model("gemma-2-9b-it").name_note ==
        "gemma-2-9b-it was taken as the preset gemma-2-9b (google/gemma-2-9b)");
}

TEST_CASE("spaces, underscores and a dash more or less do not matter, and the guess is said") {
  check_guess("gpt-2", "gpt2");
  check_guess("phi4", "phi-4");
  check_guess("phi4-mini", "phi-4-mini");
  check_guess("Llama 3.1 8B", "llama-3.1-8b");
  check_guess("Mistral 7B Instruct v0.3", "mistral-7b-v0.3");
  check_guess("qwen_3_8b", "qwen3-8b");
  check_guess("llama4:scout", "llama-4-scout");
  // Digits stay apart.
  check_none("llama-38b");
  check_none("qwen-38b");
}

TEST_CASE("an organisation's former name, and those that publish others' files again, are known") {
  check_guess("zai-org/glm-4-9b-chat-hf", "glm-4-9b");
  check_guess("CohereLabs/c4ai-command-r-v01", "command-r-35b");
  check_guess("NousResearch/Meta-Llama-3.1-8B-Instruct", "llama-3.1-8b");
  check_guess("unsloth/Llama-3.2-1B-Instruct", "llama-3.2-1b");
  check_guess("unsloth/Qwen3-4B", "qwen3-4b");
  check_guess("prajjwal1/bert-tiny", "bert-tiny");
  check_guess("prajjwal1/bert-medium", "bert-medium");
  check_none("unsloth/Llama-3.2-1B-Instruct-bnb-4bit");
  check_none("zai-org/Llama-3.2-1B");
}

TEST_CASE("a name of another model finds no preset") {
  check_none("");
  check_none("llama");
  check_none("llama-3-9b");
  check_none("bart");                       // -base is a size of bart-base
  check_none("opus-mt-en-it");              // to Italian
  check_none("Qwen/Qwen2-VL-7B-Instruct");  // with a tower
  check_none("Qwen/Qwen2.5-7B-Instruct-AWQ");
  check_none("Qwen/Qwen3-4B-Instruct-2507");
  check_none("microsoft/Phi-3-mini-128k-instruct");
  check_none("somebody/Llama-3-8B");  // another organisation's model
}

TEST_CASE("the name of a quantised copy is refused, and the model before it is suggested") {
  const std::pair<const char*, const char*> copies[] = {
      {"Qwen/Qwen2.5-7B-Instruct-AWQ", "qwen2.5-7b"},
      {"mlx-community/Qwen3-8B-4bit", "qwen3-8b"},
      {"unsloth/Qwen3-4B-unsloth-bnb-4bit", "qwen3-4b"},
      {"RedHatAI/Llama-3.3-70B-Instruct-FP8-dynamic", "llama-3.3-70b"},
      {"neuralmagic/Meta-Llama-3.1-8B-Instruct-quantized.w8a8", "llama-3.1-8b"},
      {"lmstudio-community/Qwen3-8B-GGUF", "qwen3-8b"}};
  for (const auto& pair : copies) {
    const std::string copy = pair.first;
    CAPTURE(copy);
    CHECK(matched(copy).first == "–");
    try {
      (void)load_model(copy);
      FAIL("accepted");
    } catch (const Error& error) {
      CHECK(error.hint() ==
            "did you mean " + std::string(pair.second) + ", the model before it was quantised?");
    }
  }
}

TEST_CASE("a name that several presets could have is refused with all of them") {
  const ScratchFolder data;
  const ScratchVariable home("XDG_DATA_HOME", data.path().string());
  data.write("headroom/presets/models/one.json", own_preset("one", "Zeta-7B"));
  data.write("headroom/presets/models/two.json", own_preset("two", "ZETA-7b"));
  CHECK(matched("Zeta-7B") == std::pair{std::string("one"), NameMatch::name});
  for (const char* const typed : {"zeta-7b", "zeta-7b-chat"}) {
    try {
      (void)match_preset(typed);
      FAIL("accepted: " << typed);
    } catch (const Error& error) {
      CHECK(error.where() == typed);
      CHECK(error.hint() == "name one of them: one, two");
    }
  }
}

TEST_CASE("a preset's exact name wins over a path, a guess does not") {
  const ScratchFolder folder;
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(folder.path());
  const std::string config =
      nlohmann::json::parse(find_preset("bert-base-uncased")->json)["config"].dump();
  folder.write("gpt2/config.json", config);
  folder.write("Qwen/Qwen3-8B/config.json", config);
  const Model preset = load_model("gpt2");
  const Model path = load_model("Qwen/Qwen3-8B");
  const Model plain = load_model("./gpt2");
  std::filesystem::current_path(before);
  CHECK(preset.spec.model_type == "gpt2");
  CHECK(preset.name_note == "gpt2 is a preset and a path: took the preset; ./gpt2 is the path");
  CHECK(path.spec.model_type == "bert");
  CHECK(path.name_note == "Qwen/Qwen3-8B is a path: took it, not the preset qwen3-8b");
  CHECK(plain.spec.model_type == "bert");
  CHECK(plain.name_note.empty());
}

TEST_CASE("presets are searched by name, alias and repository, by family and by size") {
  const auto names = [](const PresetQuery& query) {
    std::vector<std::string> found;
    for (const PresetSummary& summary : find_presets(query).presets) {
      found.push_back(summary.preset.name);
    }
    return found;
  };
  CHECK(names({.text = "CODE-LLAMA"}) ==
        std::vector<std::string>{"codellama-13b", "codellama-34b", "codellama-7b"});
  CHECK(names({.text = "zai-org/glm-5"}) ==
        std::vector<std::string>{"glm-5", "glm-5.1", "glm-5.2-fp8"});
  CHECK(names({.family = "mixtral"}) == std::vector<std::string>{"mixtral-8x22b", "mixtral-8x7b"});
  CHECK(
      names({.text = "qwen3", .max_parameters = 2'000'000'000, .order = PresetOrder::parameters}) ==
      std::vector<std::string>{"qwen3-0.6b", "qwen3-1.7b"});
  CHECK(names({.text = "mixtral", .order = PresetOrder::parameters}).front() == "mixtral-8x7b");
}

TEST_CASE("a search without a result suggests what is there") {
  const auto hint_of = [](const auto& search) {
    try {
      search();
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::invalid_input);
      return error.hint();
    }
    return std::string("found");
  };
  CHECK(hint_of([] { (void)find_presets({.text = "mixtrl-8x7b"}); }) ==
        "did you mean mixtral-8x7b or mixtral-8x22b?");
  CHECK(hint_of([] { (void)find_presets({.text = "qewn3"}); }).find("qwen3") != std::string::npos);
  CHECK(hint_of([] { (void)load_model("Qwen/Qwen2.5-7B-Instruct-2601"); }) ==
        "did you mean qwen2.5-7b?");
  CHECK(hint_of([] { (void)find_presets({.family = "mixtrl"}); }) ==
        "did you mean mixtral or mistral?");
  CHECK(hint_of([] { (void)find_machines("H100-80"); }) == "found");
  CHECK(hint_of([] { (void)find_machines("h100-80gbb"); }).starts_with("did you mean h100-80gb"));
  CHECK(hint_of([] { (void)find_machines("abacus"); }) == "`headroom machines` lists all");
}

TEST_CASE("a preset's overrides are read in place of its config's keys") {
  const Preset bert = find_preset("bert-base-uncased").value();
  const auto published = nlohmann::json::parse(bert.json).at("config");
  CHECK(published.at("architectures") == nlohmann::json{"BertForMaskedLM"});
  CHECK(published ==
        nlohmann::json::parse(find_preset("bert-base-uncased-mlm").value().json).at("config"));
  CHECK(read_preset(bert).spec.architecture == "BertModel");
  // FLUX.1's file states no type.
  const Preset flux = find_preset("flux.1-dev").value();
  CHECK_FALSE(nlohmann::json::parse(flux.json).at("config").contains("torch_dtype"));
  CHECK(read_preset(flux).spec.torch_dtype == "bfloat16");
}

TEST_CASE("overrides that are no object are refused") {
  Preset preset = find_preset("bert-base-uncased").value();
  auto document = nlohmann::json::parse(preset.json);
  document["overrides"] = "BertModel";
  preset.json = document.dump();
  CHECK_THROWS_AS(std::ignore = read_preset(preset), Error);
}
