#include "stated_types.h"

#include <fmt/format.h>

#include "methods.h"

namespace headroom::detail {

std::optional<StatedType> stated_type(const ConfigReader& config, std::string_view type,
                                      std::int64_t bits) {
  if (bits >= 16) return std::nullopt;
  const bool is_float = type == "float";
  if (is_float || type == "int") {
    if (bits == 8) return is_float ? StatedType::float8 : StatedType::int8;
    if (bits == 4) return is_float ? StatedType::float4 : StatedType::int4;
  }
  config.fail("num_bits",
              fmt::format("values of type \"{}\" with {} bits are not supported", type, bits),
              "use \"int\" or \"float\" with 4 or 8 bits");
}

std::optional<StatedType> read_kv_cache_type(ConfigReader& config) {
  // A word there is ModelOpt's, as in Qwen3-32B-FP8-Static-PerTensor.
  const bool named = config.is_text("kv_cache_scheme");
  if (!named && config.has("kv_cache_scheme")) {
    auto scheme = config.object("kv_cache_scheme");
    return stated_type(*scheme, scheme->text_or({"type"}, "int"),
                       whole_number(*scheme, {"num_bits"}, 8));
  }
  using Type = std::optional<StatedType>;
  return config.choice_or<Type>({named ? "kv_cache_scheme" : "kv_cache_quant_algo"},
                                {{"FP8", StatedType::float8},
                                 {"NVFP4", StatedType::nvfp4},
                                 {"INT8", StatedType::int8},
                                 {"NONE", std::nullopt},
                                 {"none", std::nullopt},
                                 {"", std::nullopt}},
                                std::nullopt);
}

}  // namespace headroom::detail
