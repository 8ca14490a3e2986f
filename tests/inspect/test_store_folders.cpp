// Stores of local models: where they lie, which of their files are models, and names that find one.
#include <doctest/doctest.h>

#include <algorithm>

#include "headroom/model_source.h"
#include "inspect/home_folder.h"
#include "support/data.h"

using namespace headroom;
using namespace headroom::test;
namespace fs = std::filesystem;

namespace {

constexpr const char* kHub = ".cache/huggingface/hub/";
constexpr const char* kLibrary = ".ollama/models/manifests/registry.ollama.ai/library/";

/// "NAME FORMAT BYTES" of each model.
std::vector<std::string> listed() {
  std::vector<std::string> lines;
  for (const LocalModel& model : list_local_models().models) {
    lines.push_back(model.name + " " + std::string(name_of(model.format)) + " " +
                    std::to_string(model.bytes));
  }
  return lines;
}

/// "NAME: MESSAGE" of each problem.
std::string problems() {
  std::string text;
  for (const StoreProblem& problem : list_local_models().problems) {
    text += problem.name + ": " + problem.message + "\n";
  }
  return text;
}

/// Files of a repository without refs/main, each with five bytes.
void snapshot(const Home& home, const std::string& repository,
              const std::vector<std::string>& files) {
  for (const std::string& file : files) {
    home.folder().write(kHub + repository + "/snapshots/c/" + file, "12345");
  }
}

/// The store and format of the model that `name` finds, by its place.
std::string found(const std::string& name) {
  const auto model = find_local_model(list_local_models(), name);
  return model ? model->name + " in " + std::string(name_of(model->store)) : "";
}

/// Ollama's manifest of a GGUF model with this digest.
std::string manifest_with(const std::string& digest) {
  return R"({"layers": [{"mediaType": "application/vnd.ollama.image.model", "digest": )" + digest +
         "}]}";
}

}  // namespace

TEST_CASE("the Hugging Face cache lies in XDG_CACHE_HOME, and nowhere without a home") {
  const Home home;
  home.folder().write("other/huggingface/hub/models--acme--One/snapshots/c/config.json", "{}");
  {
    const ScratchVariable cache("XDG_CACHE_HOME", (home.folder().path() / "other").string());
    CHECK(listed() == std::vector<std::string>{"acme/One config 0"});
  }
  snapshot(home, "models--acme--Two", {"config.json"});
  home.folder().write(".lmstudio/models/acme/Three/config.json", "{}");
  CHECK(listed() == std::vector<std::string>{"acme/Two config 0", "acme/Three config 0"});
  const ScratchVariable none("HOME", "");
  CHECK(listed().empty());
}

TEST_CASE("a repository without an owner has its name alone") {
  const Home home;
  snapshot(home, "models--gpt2", {"config.json"});
  CHECK(listed() == std::vector<std::string>{"gpt2 config 0"});
}

TEST_CASE("a branch main that is no commit does not count, and one without its snapshot is said") {
  const Home home;
  snapshot(home, "models--acme--One", {"config.json"});
  home.folder().write(std::string(kHub) + "models--acme--One/refs/main", "../../etc\n");
  CHECK(listed() == std::vector<std::string>{"acme/One config 0"});
  home.folder().write(std::string(kHub) + "models--acme--Two/refs/main", "0123abcd");
  CHECK(problems().find("acme/Two: ") == 0);
  CHECK(problems().find("refs/main names the commit 0123abcd, which has no snapshot") !=
        std::string::npos);
}

TEST_CASE("a folder's format is that of its weights, whose bytes count once") {
  const Home home;
  snapshot(home, "models--a--Pickles",
           {"config.json", "pytorch_model-1.bin", "pytorch_model-2.bin",
            "pytorch_model.bin.index.json", "training_args.bin"});
  snapshot(
      home, "models--b--Mistral",
      {"config.json", "consolidated.safetensors", "model-1.safetensors", "model-2.safetensors"});
  snapshot(home, "models--c--Consolidated", {"params.json", "consolidated.safetensors"});
  snapshot(home, "models--d--Deep",
           {"config.json", "deep/q/model.gguf", "text_encoder/model.safetensors"});
  snapshot(home, "models--e--NoConfig", {"pytorch_model.bin", "README.md"});
  CHECK(listed() == std::vector<std::string>{"a/Pickles pytorch 10", "b/Mistral safetensors 10",
                                             "c/Consolidated safetensors 5", "d/Deep config 0"});
}

TEST_CASE("a GGUF file beside other weights is a model of its own name") {
  const Home home;
  snapshot(home, "models--a--Both", {"config.json", "model.safetensors", "model.gguf"});
  snapshot(home, "models--b--Pickled", {"config.json", "pytorch_model.bin", "q4/model.gguf"});
  CHECK(listed() == std::vector<std::string>{"a/Both safetensors 5", "a/Both/model.gguf gguf 5",
                                             "b/Pickled pytorch 5",
                                             "b/Pickled/q4/model.gguf gguf 5"});
}

TEST_CASE("LM Studio's publishers have folders of models, and files beside them are none") {
  const Home home;
  home.folder().write(".lmstudio/models/acme/One/config.json", "{}");
  home.folder().write(".lmstudio/models/acme/notes.txt", "");
  home.folder().write(".lmstudio/models/index.json", "{}");
  CHECK(listed() == std::vector<std::string>{"acme/One config 0"});
}

TEST_CASE("Ollama's models lie in the home folder unless a variable names another") {
  const Home home;
  const ScratchVariable unset("OLLAMA_MODELS", "");
  home.pull("registry.ollama.ai/library/llama3.2/1b", "GGUF");
  home.folder().write(std::string(kLibrary) + "llama3.2/.hidden", "");
  CHECK(listed() == std::vector<std::string>{"llama3.2:1b gguf 4"});
  CHECK(problems() == "");
}

TEST_CASE("a manifest of Ollama's names its blob by a hash, in a list of layers") {
  const Home home;
  const auto problem_with = [&](const std::string& manifest) {
    home.folder().write(std::string(kLibrary) + "x/1b", manifest);
    return problems();
  };
  CHECK(problem_with(R"({"layers": {"0": 1}})").find("has no layers") != std::string::npos);
  CHECK(problem_with(R"({"layers": []})").find("has no layer with") != std::string::npos);
  for (const char* const digest : {"\"sha256:\"", "\"sha256:xyz\"", "\"md5:00\"", "7", "null"}) {
    CAPTURE(digest);
    CHECK(problem_with(manifest_with(digest)).find("is not SHA-256") != std::string::npos);
  }
  CHECK(problem_with(manifest_with("\"sha256:00\"")).find("is missing") != std::string::npos);
  CHECK(problem_with(R"({"layers": [{"mediaType": "application/vnd.ollama.image.model"}]})")
            .find("the digest \"\" is not SHA-256") != std::string::npos);
}

TEST_CASE("a name of Ollama's finds no model of another store, and its tag may be in capitals") {
  const Home home;
  home.pull("registry.ollama.ai/library/llama3.2/1b", "GGUF");
  snapshot(home, "models--phi4", {"config.json"});
  CHECK(found("phi4") == "phi4 in hugging_face");
  CHECK(found("ollama:phi4") == "");
  CHECK(found("ollama:Llama3.2:1B") == "llama3.2:1b in ollama");
  CHECK(found("Llama3.2:1B") == "llama3.2:1b in ollama");
  CHECK(found("llama3.2:3b") == "");
  CHECK(found("llama3.2") == "");
}

TEST_CASE("of many GGUF files in one repository the first eight are named") {
  const Home home;
  std::vector<std::string> files;
  for (int i = 1; i <= 9; ++i) files.push_back("q" + std::to_string(i) + ".gguf");
  snapshot(home, "models--acme--Many", files);
  try {
    (void)found("acme/Many");
    FAIL("accepted");
  } catch (const Error& error) {
    CHECK(error.message() == "contains 9 GGUF models");
    CHECK(error.hint().ends_with("acme/Many/q7.gguf, acme/Many/q8.gguf, …"));
  }
}

TEST_CASE("stores have short names and descriptions") {
  CHECK(name_of(ModelStore::lm_studio) == "lm_studio");
  CHECK(description_of(ModelStore::ollama) == "Ollama's store");
  CHECK(description_of(ModelStore::lm_studio) == "LM Studio's folder");
}
