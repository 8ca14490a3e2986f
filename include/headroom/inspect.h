// inspect: what a model's own files hold, and whether that is what its config says.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headroom/integer.h"
#include "headroom/model_source.h"

namespace headroom {

enum class FileFormat { safetensors, gguf };

[[nodiscard]] std::string_view name_of(FileFormat format) noexcept;

/// Sums over tensors. `values` are logical ones: a packed tensor counts what it unpacks to.
struct TensorTotals {
  std::int64_t tensors = 0;
  Integer values = 0;
  Integer bytes = 0;

  TensorTotals& operator+=(const TensorTotals& other);
  /// Stored bits for each value; empty without values.
  [[nodiscard]] std::optional<double> bits_per_value() const;
};

/// Tensors that are stored in one way: "BF16", "Q4_K", "GPTQ 4-bit".
struct TypeRow {
  std::string type;
  TensorTotals totals;
};

/// Tensors that do the same. With a config the component is that of the graph, "attention.qkv",
/// and the category what parameters are summed by; without one it is the name with {} for numbers.
struct ComponentRow {
  std::string category;
  std::string component;
  TensorTotals totals;
};

/// Tensors that are no weights of the model, by what they are.
struct ExtraRow {
  std::string kind;
  TensorTotals totals;
  std::string example;
};

enum class ProblemKind {
  missing_tensor,  ///< the config asks for it, the files do not have it
  unknown_tensor,  ///< the files have it, nothing in the config asks for it
  wrong_shape,
};

[[nodiscard]] std::string_view name_of(ProblemKind kind) noexcept;

/// Something that the config and the files do not agree about.
struct Problem {
  ProblemKind kind = ProblemKind::missing_tensor;
  std::string tensor;
  std::string detail;
};

/// The files beside the graph that their config gives.
struct Reconciliation {
  Model model;
  Integer expected_parameters = 0;  ///< of the graph
  Integer found_parameters = 0;     ///< of weights whose tensors are there, with equal shapes
  std::vector<Problem> problems;    ///< the first ones
  std::int64_t problem_count = 0;
};

struct Inspection {
  std::string path;
  FileFormat format = FileFormat::safetensors;
  std::int64_t files = 0;
  TensorTotals all;                      ///< every tensor
  TensorTotals weights;                  ///< without extras: `values` are the parameters
  std::vector<TypeRow> types;            ///< of all tensors, by falling bytes
  std::vector<ComponentRow> components;  ///< of weights
  std::vector<ExtraRow> extras;
  std::optional<Reconciliation> reconciliation;  ///< empty without a config that is understood
  std::string config_error;                      ///< why there is none, although there is a config
  std::vector<std::string> notes;

  /// Whether everything is accounted for, as far as there is something to compare with.
  [[nodiscard]] bool is_explained() const noexcept;
};

/// Reads the headers of the files at `path`: a safetensors file, a folder or its index.json, or a
/// GGUF file. Throws Error{invalid_input} when they are not valid.
[[nodiscard]] Inspection inspect(const std::string& path);

}  // namespace headroom
