#include "stored_form.h"

#include <fmt/format.h>

#include "../family.h"
#include "headroom/error.h"
#include "visit.h"

namespace headroom::detail {
namespace {

[[noreturn]] void throw_unknown_conversion(const ModelSpec& spec, const std::string& file,
                                           std::string_view because) {
  throw Error(ErrorCode::invalid_input,
              fmt::format("GGUF weights of {} cannot be read: {}", spec.model_type, because), file,
              "use the safetensors files or random weights");
}

/// Every config is of a family; a ModelSpec that a program fills in may be of none.
const Family& family_of_model(const ModelSpec& spec) {
  if (const Family* const family = find_family(spec.model_type)) return *family;
  throw Error(ErrorCode::internal, "a model of no family", spec.name);
}

}  // namespace

NameTable safetensors_names(const ModelSpec& spec) {
  const auto refuse = [&](const None& none) -> NameTable {
    throw Error(ErrorCode::invalid_input,
                fmt::format("weights of type {} cannot be read: {}", spec.model_type, none.because),
                spec.name, "use random weights");
  };
  const auto names_of = [&](const Family& of) {
    return std::visit(Overloaded{refuse, [](const NameTable& names) { return names; }}, of.names);
  };
  NameTable names = names_of(family_of_model(spec));
  if (spec.text_type.empty()) return names;
  const NameTable text = names_of(*find_family(spec.text_type));
  names.rules.insert(names.rules.end(), text.rules.begin(), text.rules.end());
  names.optional_prefixes.insert(names.optional_prefixes.end(), text.optional_prefixes.begin(),
                                 text.optional_prefixes.end());
  names.extras.insert(names.extras.end(), text.extras.begin(), text.extras.end());
  return names;
}

std::vector<std::span<const NameRule>> gguf_rules(const ModelSpec& spec) {
  const auto* const form = std::get_if<GgufForm>(&family_of_model(spec).gguf);
  return form == nullptr ? std::vector<std::span<const NameRule>>{} : form->rules;
}

GgufConversion gguf_conversion(const ModelSpec& spec, const std::string& file) {
  const Family& family = family_of_model(spec);
  if (const None* const none = std::get_if<None>(&family.gguf)) {
    throw_unknown_conversion(spec, file, none->because);
  }
  const GgufConversion conversion = std::get<GgufForm>(family.gguf).conversion;
  if (conversion == GgufConversion::unknown) {
    throw_unknown_conversion(spec, file, "the converter's change to their values is not reversed");
  }
  return conversion;
}

}  // namespace headroom::detail
