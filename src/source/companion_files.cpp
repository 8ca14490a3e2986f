#include "companion_files.h"

#include <fmt/format.h>

#include <array>
#include <string>
#include <string_view>

#include "headroom/error.h"

namespace headroom::detail {
namespace {

struct CompanionFile {
  std::string_view name;
  std::string_view describes;
};

// transformers 4.57, utils/__init__.py; ModelOpt, AutoGPTQ and AutoAWQ name the others.
constexpr std::array kCompanionFiles{
    CompanionFile{"generation_config.json", "how text is generated"},
    CompanionFile{"hf_quant_config.json", "how the weights are quantised"},
    CompanionFile{"quant_config.json", "how the weights are quantised"},
    CompanionFile{"quantize_config.json", "how the weights are quantised"},
    CompanionFile{"preprocessor_config.json", "how images or sound are prepared"},
    CompanionFile{"processor_config.json", "how images or sound are prepared"},
    CompanionFile{"scheduler_config.json", "the steps of a diffusion model"},
    CompanionFile{"tokenizer.json", "a tokenizer"},
    CompanionFile{"tokenizer_config.json", "a tokenizer"},
    CompanionFile{"special_tokens_map.json", "a tokenizer"},
    CompanionFile{"added_tokens.json", "a tokenizer"},
    CompanionFile{"vocab.json", "a tokenizer"},
    CompanionFile{"chat_template.json", "the text of a chat"},
};

}  // namespace

void refuse_companion_file(const std::filesystem::path& file) {
  const std::string name = file.filename().string();
  for (const CompanionFile& companion : kCompanionFiles) {
    if (name != companion.name && !name.ends_with(fmt::format(".{}", companion.name))) continue;
    throw Error(ErrorCode::invalid_input,
                fmt::format("describes {}, not a model", companion.describes), file.string(),
                "give the config.json beside it, or their folder");
  }
}

}  // namespace headroom::detail
