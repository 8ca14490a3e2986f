#include "stored_form.h"

#include <fmt/format.h>

#include "../family.h"
#include "headroom/error.h"
#include "headroom/visit.h"

namespace headroom::detail {
namespace {

[[noreturn]] void throw_unknown_conversion(const ModelSpec& spec, const std::string& file,
                                           std::string_view because) {
  throw Error(ErrorCode::invalid_input,
              fmt::format("GGUF weights of {} cannot be read: {}", spec.model_type, because), file,
              "use the safetensors files or random weights");
}

}  // namespace

NameTable safetensors_names(const ModelSpec& spec) {
  const auto refuse = [&](const None& none) -> NameTable {
    throw Error(ErrorCode::invalid_input,
                fmt::format("weights of type {} cannot be read: {}", spec.model_type, none.because),
                spec.name, "use random weights");
  };
  const Family* const family = find_family(spec.model_type);
  if (family == nullptr) throw Error(ErrorCode::internal, "a model of no family", spec.name);
  return std::visit(Overloaded{refuse, [](const NameTable& names) { return names; }},
                    family->names);
}

GgufConversion gguf_conversion(const ModelSpec& spec, const std::string& file) {
  const Family* const family = find_family(spec.model_type);
  if (family == nullptr) throw Error(ErrorCode::internal, "a model of no family", spec.name);
  if (const None* const none = std::get_if<None>(&family->gguf)) {
    throw_unknown_conversion(spec, file, none->because);
  }
  const GgufConversion conversion = std::get<GgufForm>(family->gguf).conversion;
  if (conversion == GgufConversion::unknown) {
    throw_unknown_conversion(spec, file, "the converter's change to their values is not reversed");
  }
  return conversion;
}

}  // namespace headroom::detail
