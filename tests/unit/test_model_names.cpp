// Names that are no model: addresses, names that begin as a preset's, and presets of the user's
// own.
#include <doctest/doctest.h>

#include <algorithm>
#include <utility>

#include "headroom/error.h"
#include "headroom/model_source.h"
#include "support/data.h"
#include "support/scratch.h"

using namespace headroom;
using namespace headroom::test;

namespace {

/// The hint against `name`, which is refused.
std::string hint_against(const std::string& name) {
  try {
    (void)load_model(name);
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::invalid_input);
    CHECK(error.where() == name);
    return error.hint();
  }
  return "accepted";
}

/// bert-tiny's preset with other members.
std::string tiny_preset(const nlohmann::json& changes) {
  nlohmann::json preset = nlohmann::json::parse(find_preset("bert-tiny")->json);
  preset.merge_patch(changes);
  return preset.dump();
}

/// A folder of the user's presets, and no stores.
class UserPresets {
 public:
  void write(const std::string& file, const std::string& content) const {
    folder_.write("headroom/presets/models/" + file, content);
  }

 private:
  ScratchFolder folder_;
  ScratchVariable data_{"XDG_DATA_HOME", folder_.path().string()};
  ScratchVariable home_{"HOME", folder_.path().string()};
};

}  // namespace

TEST_CASE("an address is refused with the repository that it names, if it names one") {
  for (const char* const scheme : {"https://", "http://"}) {
    const std::string host = std::string(scheme) + "huggingface.co";
    CHECK(hint_against(host + "/acme/One") ==
          "name acme/One, or download its config.json and name the file");
    CHECK(hint_against(host + "/acme/One/tree/main") == hint_against(host + "/acme/One"));
    CHECK(hint_against(host + "/acme/One?x=1") == hint_against(host + "/acme/One"));
    CHECK(hint_against(host + "/acme/One#files") == hint_against(host + "/acme/One"));
    for (const char* const short_one : {"", "/", "/acme"}) {
      CHECK(hint_against(host + short_one) == "download the model's config.json and name the file");
    }
  }
  CHECK(hint_against("ftp://huggingface.co/acme/One").find("address") == std::string::npos);
}

TEST_CASE("a name that begins as several presets' suggests the longest") {
  CHECK(hint_against("llama-3-8b-my-own-tune-of-2025") == "did you mean llama-3-8b?");
  CHECK(hint_against("gpt2-medium-of-mine-and-others") == "did you mean gpt2-medium?");
  CHECK(hint_against("awq").find("did you mean") == std::string::npos);
  CHECK(hint_against("gptq-4bit").find("before it was quantised") == std::string::npos);
}

TEST_CASE("a word that ends in b is a size only behind a digit") {
  CHECK_FALSE(match_preset("b"));
  CHECK_FALSE(match_preset("climb-base"));
  CHECK_FALSE(match_preset("bob-it"));
}

TEST_CASE("files of other types among the user's presets are not read") {
  const UserPresets own;
  own.write("notes.txt", "not JSON");
  own.write("mine.json", tiny_preset({{"name", nullptr}, {"aliases", nullptr}}));
  const auto preset = find_preset("mine");
  REQUIRE(preset);
  CHECK(read_preset(*preset).spec.name == "mine");
}

TEST_CASE("a preset of the user's replaces the built-in one of its name") {
  const std::size_t before = list_presets().size();
  const UserPresets own;
  own.write("tiny.json", tiny_preset({{"name", "gpt2"}, {"reference", nullptr}}));
  const auto presets = list_presets();
  CHECK(presets.size() == before);
  CHECK(std::ranges::count(presets, "gpt2", &Preset::name) == 1);
  const Model model = load_model("gpt2");
  CHECK(model.spec.model_type == "bert");
  CHECK_FALSE(model.reference);
}

TEST_CASE("a preset needs a config") {
  const UserPresets own;
  own.write("empty.json", R"({"name": "empty"})");
  CHECK(refusal_of([] { (void)load_model("empty"); }).find("config: is missing") !=
        std::string::npos);
}

TEST_CASE("a guessed preset without a repository is named alone") {
  const UserPresets own;
  own.write("mine.json",
            tiny_preset({{"name", "Mine-7B"}, {"source", nullptr}, {"aliases", nullptr}}));
  CHECK(load_model("mine-7b-chat").name_note == "mine-7b-chat was taken as the preset Mine-7B");
}

TEST_CASE("of several presets of one repository none has its name, so all are named") {
  const UserPresets own;
  const char* const source = "Hugging Face repository acme/One, config.json";
  own.write("a.json", tiny_preset({{"name", "a"}, {"source", source}, {"aliases", nullptr}}));
  own.write("b.json", tiny_preset({{"name", "b"}, {"source", source}, {"aliases", nullptr}}));
  CHECK(hint_against("acme/One") == "name one of them: a, b");
}
