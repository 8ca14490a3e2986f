// Family: everything that headroom knows about one family of models, in one record. Each file in
// families/ returns the records of its families; families.cmake lists the files.
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

/// Stands where a family has no such part, and says why.
struct None {
  explicit constexpr None(std::string_view reason) : because(reason) {}
  std::string_view because;
};

/// A part of a record, or the reason for its absence. It has no default.
template <class Part>
using OrNone = std::variant<None, Part>;

/// The `model_type`s that configs give the family; the first is its name.
struct ModelTypes {
  template <class... More>
  ModelTypes(std::string_view name, More... aliases) : names{name, std::string_view(aliases)...} {}
  std::vector<std::string_view> names;
};

/// Fills a ModelSpec from a config of the family: everything but name, model_type, class and head.
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
  OrNone<NameTable> names;  ///< of its safetensors
  OrNone<GgufForm> gguf;
};

/// All families, in the order of families.cmake.
[[nodiscard]] std::span<const Family> families();

/// The family of this model_type; null when there is none.
[[nodiscard]] const Family* find_family(std::string_view model_type);

}  // namespace headroom::detail
