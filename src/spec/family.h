// Family: one record with everything that headroom knows about a family of models. Each file in
// families/ returns its records; families.cmake lists the files.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "config_reader.h"
#include "gguf/gguf_form.h"
#include "headroom/model_spec.h"
#include "model_class.h"
#include "stored/stored_names.h"

namespace headroom::detail {

/// A part that the family lacks, and the reason.
struct None {
  explicit constexpr None(std::string_view reason) : because(reason) {}
  std::string_view because;
};

/// A part of a record, or the reason for its absence; no default.
template <class Part>
using OrNone = std::variant<None, Part>;

/// Values of `model_type` in the family's configs. The first is the family's name.
struct ModelTypes {
  template <class... More>
  ModelTypes(std::string_view name, More... aliases) : names{name, std::string_view(aliases)...} {}
  std::vector<std::string_view> names;
};

/// Reads a config of the family into a ModelSpec: all but name, model_type, class and head.
struct FamilyReader {
  template <class Function>
  FamilyReader(Function function) : read(std::move(function)) {}
  std::function<void(ConfigReader& config, ModelSpec& spec)> read;
};

/// One family. No member has a default, so a record that forgets one does not compile.
struct Family {
  ModelTypes model_types;
  ModelClasses classes;
  FamilyReader reader;
  OrNone<NameTable> names;  ///< in safetensors files
  OrNone<GgufForm> gguf;
};

/// All families, in the order of families.cmake.
[[nodiscard]] std::span<const Family> families();

/// The family with this model_type, or null.
[[nodiscard]] const Family* find_family(std::string_view model_type);

}  // namespace headroom::detail
