// Models in the stores of other programs: fake stores in a temporary folder, with the layout that
// huggingface_hub, Ollama and LM Studio document.
#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <numeric>

#include "checkpoint/weight_files.h"
#include "headroom/model_source.h"
#include "headroom/report.h"
#include "inspect/home_folder.h"
#include "path_names.h"
#include "support/data.h"
#include "support/gguf_writer.h"
#include "support/scratch.h"

using namespace headroom;
using namespace headroom::test;
namespace fs = std::filesystem;

namespace {

/// A Llama of one layer in F32 but for its embedding: 32·8 + (2·8 + 4·8² + 3·8·16) + 8 = 920
/// parameters with a tied head.
std::string small_gguf() {
  GgufWriter writer;
  writer.add("general.architecture", "llama").add("llama.context_length", 32U);
  writer.add("llama.embedding_length", 8U).add("llama.block_count", 1U);
  writer.add("llama.feed_forward_length", 16U).add("llama.attention.head_count", 2U);
  writer.add("llama.attention.layer_norm_rms_epsilon", 1e-5F);
  writer.add("llama.rope.freq_base", 10000.0F).add("llama.rope.dimension_count", 4U);
  writer.tensor("token_embd.weight", {32, 8}, checkpoint::GgmlType::f16);
  for (const char* const norm : {"blk.0.attn_norm.weight", "blk.0.ffn_norm.weight"}) {
    writer.tensor(norm, {8});
  }
  for (const char* const part : {"q", "k", "v", "output"}) {
    writer.tensor(std::string("blk.0.attn_") + part + ".weight", {8, 8});
  }
  writer.tensor("blk.0.ffn_gate.weight", {16, 8}).tensor("blk.0.ffn_up.weight", {16, 8});
  writer.tensor("blk.0.ffn_down.weight", {8, 16}).tensor("output_norm.weight", {8});
  return writer.str();
}

std::vector<std::string> names_of(const LocalModels& local) {
  std::vector<std::string> names;
  for (const LocalModel& model : local.models) names.push_back(model.name);
  return names;
}

std::string problem_of(const LocalModels& local, const std::string& name) {
  const auto found = std::ranges::find(local.problems, name, &StoreProblem::name);
  return found == local.problems.end() ? "" : found->message;
}

const fs::path& golden_gpt2() {
  static const fs::path folder = data_folder() / "golden/models/gpt2";
  return folder;
}

}  // namespace

TEST_CASE("a machine without stores has no models and no problems") {
  const Home home;
  const LocalModels local = list_local_models();
  CHECK(local.models.empty());
  CHECK(local.problems.empty());
}

TEST_CASE("a repository in the Hugging Face cache is loaded by its name") {
  const Home home;
  for (const char* const file : {"config.json", "model.safetensors"}) {
    home.cache("models--acme--Tiny-GPT2", file, golden_gpt2() / file);
  }
  const Model model = load_model("acme/Tiny-GPT2");
  CHECK(model.spec.name == "acme/Tiny-GPT2");
  CHECK(model.spec.hidden_size == load_model(golden_gpt2().string()).spec.hidden_size);
  CHECK(!model.weight_files.empty());
  CHECK(model.name_note.starts_with("acme/Tiny-GPT2 was taken from the Hugging Face cache: "));

  const LocalModelsReport report = make_local_models_report(list_local_models());
  REQUIRE(report.models.size() == 1);
  const LocalModelSummary& summary = report.models.front();
  CHECK(summary.model.format == LocalFormat::safetensors);
  CHECK(summary.model.bytes ==
        static_cast<std::int64_t>(fs::file_size(golden_gpt2() / "model.safetensors")));
  CHECK(summary.storage_type == "F32");
  Integer values = 0;
  for (const auto& [name, shape] : safetensors_shapes(golden_gpt2() / "model.safetensors")) {
    values += std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
  }
  CHECK(summary.parameters == values);
  CHECK(report.notes.empty());
}

TEST_CASE("a repository's folder in the Hugging Face cache is its snapshot") {
  const Home home;
  home.cache("models--acme--Tiny-GPT2", "config.json", golden_gpt2() / "config.json");
  const fs::path repository =
      home.folder().path() / ".cache/huggingface/hub/models--acme--Tiny-GPT2";
  CHECK(load_model(repository.string()).spec.model_type == "gpt2");
  fs::remove(repository / "refs/main");
  fs::create_directories(repository / "snapshots/other");
  CHECK(refusal_of([&] { (void)load_model(repository.string()); }).find("has 2 snapshots") !=
        std::string::npos);
}

TEST_CASE("adapters and diffusers pipelines in the Hugging Face cache are models") {
  const Home home;
  const std::string hub = ".cache/huggingface/hub/models--acme--";
  const auto recorded = read_json(data_folder() / "diffusion/pixart_tiny.json");
  const std::string lora = hub + "Lora/snapshots/c/";
  home.folder().write(lora + "adapter_config.json",
                      R"({"peft_type": "LORA", "base_model_name_or_path": "tinyllama-1.1b",
                          "r": 4, "target_modules": ["q_proj"]})");
  home.folder().write(hub + "Sigma/snapshots/c/model_index.json",
                      R"({"_class_name": "PixArtSigmaPipeline",
                          "transformer": ["diffusers", "PixArtTransformer2DModel"]})");
  const std::string transformer = hub + "Sigma/snapshots/c/transformer/";
  home.folder().write(transformer + "config.json", recorded.at("config").dump());
  home.folder().write(transformer + "diffusion_pytorch_model.safetensors", "12345");
  const LocalModelsReport report = make_local_models_report(list_local_models());
  REQUIRE(report.models.size() == 2);
  CHECK(report.models[0].model.name == "acme/Lora");
  // Of each layer's q_proj, [2048, 2048].
  CHECK(report.models[0].parameters == Integer{1'100'048'384 + 22 * 4 * (2048 + 2048)});
  CHECK(report.models[1].model.name == "acme/Sigma");
  CHECK(report.models[1].model.bytes == 5);
  CHECK(report.models[1].parameters == Integer{recorded.at("parameters").get<std::int64_t>()});
}

TEST_CASE("variables name another Hugging Face cache") {
  const Home home;
  const std::string repository = "models--acme--One/snapshots/" + std::string(kHubCommit);
  home.folder().write("elsewhere/hub/" + repository + "/config.json", "{}");
  CHECK(list_local_models().models.empty());
  {
    const ScratchVariable hf_home("HF_HOME", (home.folder().path() / "elsewhere").string());
    CHECK(names_of(list_local_models()) == std::vector<std::string>{"acme/One"});
  }
  const ScratchVariable hub("HF_HUB_CACHE", (home.folder().path() / "elsewhere/hub").string());
  CHECK(names_of(list_local_models()) == std::vector<std::string>{"acme/One"});
}

TEST_CASE("a repository of a preset is taken from the cache, its preset's name is not") {
  const Home home;
  home.cache("models--Qwen--Qwen3-8B", "config.json", golden_gpt2() / "config.json");
  CHECK(load_model("Qwen/Qwen3-8B").spec.model_type == "gpt2");
  CHECK(load_model("qwen3-8b").spec.model_type == "qwen3");
}

TEST_CASE("GGUF files of a repository are told apart by their names") {
  const Home home;
  const fs::path gguf = home.folder().write("small.gguf", small_gguf());
  home.cache("models--acme--One-GGUF", "one-F32.gguf", gguf);
  home.cache("models--acme--One-GGUF", "mmproj-one-F32.gguf", gguf);  // a tower
  home.cache("models--acme--One-GGUF", "config.json", golden_gpt2() / "config.json");
  home.cache("models--acme--Two-GGUF", "two-F16.gguf", gguf);
  home.cache("models--acme--Two-GGUF", "two-F32.gguf", gguf);
  CHECK(names_of(list_local_models()) == std::vector<std::string>{"acme/One-GGUF",
                                                                  "acme/Two-GGUF/two-F16.gguf",
                                                                  "acme/Two-GGUF/two-F32.gguf"});
  CHECK(load_model("acme/One-GGUF").spec.hidden_size == 8);
  CHECK(load_model("acme/Two-GGUF/two-F32.gguf").spec.hidden_size == 8);
  CHECK(refusal_of([] { (void)load_model("acme/Two-GGUF"); }) ==
        "acme/Two-GGUF: contains 2 GGUF models");
  CHECK(refusal_of([] { (void)load_model("acme"); }).starts_with("acme: is not a preset"));
}

TEST_CASE("the parts of a split GGUF are one model with the bytes of all") {
  const Home home;
  const std::string folder = ".lmstudio/models/acme/Big-GGUF/";
  home.folder().write(folder + "big-00001-of-00002.gguf", "GGUF");
  home.folder().write(folder + "big-00002-of-00002.gguf", "GGUF+");
  home.folder().write(".lmstudio/models/acme/Rest-GGUF/rest-00002-of-00002.gguf", "GGUF");
  const LocalModels local = list_local_models();
  REQUIRE(names_of(local) == std::vector<std::string>{"acme/Big-GGUF"});
  CHECK(local.models.front().bytes == 9);
  CHECK(local.models.front().path.ends_with("big-00001-of-00002.gguf"));
  CHECK(problem_of(local, "acme/Rest-GGUF") == "lacks the first file of rest--of-00002.gguf");
}

TEST_CASE("a model of Ollama is loaded by its name and tag") {
  const Home home;
  home.pull("registry.ollama.ai/library/llama3.2/1b", small_gguf());
  home.pull("registry.ollama.ai/library/llama3.2/latest", small_gguf());
  home.pull("registry.ollama.ai/acme/own/latest", small_gguf());
  home.pull("hf.co/acme/One-GGUF/Q4_K_M", small_gguf());
  CHECK(names_of(list_local_models()) ==
        std::vector<std::string>{"acme/own:latest", "hf.co/acme/One-GGUF:Q4_K_M", "llama3.2:1b",
                                 "llama3.2:latest"});
  for (const char* const name : {"llama3.2:1b", "ollama:llama3.2:1b", "ollama:llama3.2",
                                 "ollama:hf.co/acme/One-GGUF:Q4_K_M", "ollama:acme/own"}) {
    CAPTURE(name);
    const Model model = load_model(name);
    CHECK(model.spec.hidden_size == 8);
    CHECK(model.name_note.find("was taken from Ollama's store: ") != std::string::npos);
  }
  const LocalModelsReport report = make_local_models_report(list_local_models());
  CHECK(report.models.front().parameters == Integer{920});
  CHECK(report.models.front().storage_type == "F32");
  CHECK(report.models.front().model.bytes == static_cast<std::int64_t>(small_gguf().size()));
}

TEST_CASE("a name of Ollama needs no tag, and upper and lower case may differ") {
  const Home home;
  home.pull("registry.ollama.ai/library/llama3.2/1b", small_gguf());
  home.pull("registry.ollama.ai/library/llama3.2/latest", small_gguf());
  home.folder().write(".lmstudio/models/acme/One-GGUF/one-F32.gguf", small_gguf());
  CHECK(load_model("llama3.2").spec.name == "llama3.2:latest");
  CHECK(load_model("Acme/one-gguf").spec.name == "acme/One-GGUF");
  home.folder().write(".lmstudio/models/ACME/One-GGUF/one-F32.gguf", small_gguf());
  CHECK_THROWS_AS((void)load_model("Acme/one-gguf"), Error);  // two models
}

TEST_CASE("a folder of a GGUF model and its tower is the model, as in a store") {
  const ScratchFolder folder;
  folder.write("model-F32.gguf", small_gguf());
  folder.write("mmproj-F32.gguf", small_gguf());
  folder.write("imatrix.gguf", small_gguf());
  CHECK(inspect_headers(folder.path().string()).files == 1);
  CHECK(load_model(folder.path().string()).spec.model_type == "llama");
  CHECK_FALSE(read_unknown_model(folder.path().string(), {}).has_value());
  folder.write("model-F16.gguf", small_gguf());
  CHECK(refusal_of([&] {
          (void)inspect_headers(folder.path().string());
        }).find("contains 2 GGUF models") != std::string::npos);
}

TEST_CASE("LM Studio's folders hold GGUF files and folders of safetensors") {
  const Home home;
  home.folder().write(".lmstudio/models/acme/One-GGUF/one-F32.gguf", small_gguf());
  const fs::path folder = home.folder().path() / ".cache/lm-studio/models/mlx/Tiny-GPT2";
  fs::create_directories(folder);
  for (const char* const file : {"config.json", "model.safetensors"}) {
    fs::copy_file(golden_gpt2() / file, folder / file);
  }
  CHECK(names_of(list_local_models()) ==
        std::vector<std::string>{"acme/One-GGUF", "mlx/Tiny-GPT2"});
  CHECK(load_model("acme/One-GGUF").name_note.find("LM Studio's folder") != std::string::npos);
  CHECK(load_model("mlx/Tiny-GPT2").spec.model_type == "gpt2");
}

TEST_CASE("what is broken in a store is a note, and other models are listed") {
  const Home home;
  const ScratchFolder& folder = home.folder();
  home.cache("models--acme--Dangling", "config.json", golden_gpt2() / "config.json");
  home.cache("models--acme--Dangling", "model.safetensors", "missing");
  folder.write(".cache/huggingface/hub/models--acme--Stale/refs/main", "0123abcd\n");
  folder.write(".cache/huggingface/hub/models--acme--Stale/snapshots/feed/config.json", "{}");
  folder.write(".cache/huggingface/hub/models--acme--Empty/refs/other", "");
  folder.write(".cache/huggingface/hub/version.txt", "1");
  home.pull("registry.ollama.ai/library/no-blob/1b", "");
  const std::string library = ".ollama/models/manifests/registry.ollama.ai/library/";
  folder.write(library + "no-json/1b", "{");
  folder.write(library + "no-layers/1b", "[1]");
  folder.write(library + "no-model/1b", R"({"layers": [7, {"mediaType": 1}]})");
  folder.write(library + "odd-digest/1b", R"({"layers": [{"digest": "../../etc/passwd",
               "mediaType": "application/vnd.ollama.image.model"}]})");
  folder.write(".lmstudio/models/acme/Bad-GGUF/bad.gguf", "not a GGUF file");

  const LocalModels local = list_local_models();
  CHECK(names_of(local) == std::vector<std::string>{"acme/Dangling", "acme/Bad-GGUF"});
  const std::pair<const char*, const char*> problems[] = {
      {"acme/Dangling", "is a link to a missing file"},
      {"acme/Stale", "refs/main names the commit 0123abcd, which has no snapshot"},
      {"no-blob:1b", "is missing"},
      {"no-json:1b", "no-json/1b"},
      {"no-layers:1b", "has no layers"},
      {"no-model:1b", "has no layer with a GGUF model"},
      {"odd-digest:1b", "the digest \"../../etc/passwd\" is not SHA-256"}};
  for (const auto& problem : problems) {
    const auto& name = problem.first;
    CAPTURE(name);
    CHECK(problem_of(local, name).find(problem.second) != std::string::npos);
  }
  CHECK(local.problems.size() == std::size(problems));

  const LocalModelsReport report = make_local_models_report(local);
  REQUIRE(report.models.size() == 2);
  CHECK(report.models.front().parameters.has_value());  // by its config
  CHECK(!report.models.back().parameters.has_value());
  CHECK(report.notes.size() == std::size(problems) + 1);
  CHECK(refusal_of([] { (void)load_model("acme/Stale"); }) ==
        "acme/Stale: cannot be read from its store");
}

TEST_CASE("a name whose first part is a folder here is a path, not an owner's model") {
  const TempFolder folder;
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::create_directory(folder / "acme");
  std::filesystem::current_path(folder.path());
  const bool beside = headroom::detail::names_a_file("acme/none");
  const bool elsewhere = headroom::detail::names_a_file("other/none");
  std::filesystem::current_path(before);
  CHECK(beside);
  CHECK_FALSE(elsewhere);
}
