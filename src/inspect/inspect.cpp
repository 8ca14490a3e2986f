#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>

#include "component_sums.h"
#include "headroom/error.h"
#include "headroom/model_source.h"
#include "logical_tensors.h"
#include "model_files.h"
#include "reconcile.h"
#include "stored/names.h"

namespace headroom {
namespace {

namespace fs = std::filesystem;
using checkpoint::ModelFiles;
using detail::LogicalTensor;
using detail::LogicalTensors;

// The safetensors library rejects files with a longer header.
constexpr std::uint64_t kLongestLoadedHeader = 100'000'000;

/// The config.json next to the weights, if there is one.
std::optional<fs::path> config_of(const fs::path& path) {
  std::error_code failed;
  const fs::path folder = fs::is_directory(path, failed) ? path : fs::absolute(path).parent_path();
  if (!fs::is_regular_file(folder / "config.json", failed)) return std::nullopt;
  return folder / "config.json";
}

void sum_types(const LogicalTensors& tensors, Inspection& inspection) {
  detail::ComponentSums sums;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (tensors.is_piece(i)) continue;
    const LogicalTensor tensor = tensors[i];
    sums.add({}, tensor.type, tensor.totals);
    inspection.all += tensor.totals;
  }
  for (ComponentRow& row : std::move(sums).rows()) {
    inspection.types.push_back({std::move(row.component), row.totals});
  }
  std::ranges::stable_sort(inspection.types, std::ranges::greater{},
                           [](const TypeRow& row) { return row.totals.bytes; });
}

/// Sums tensors by name pattern, for models without a config.
void sum_names(const LogicalTensors& tensors, Inspection& inspection) {
  detail::NameTable names;
  const auto extras = detail::common_extras();
  names.extras.assign(extras.begin(), extras.end());
  detail::ComponentSums sums;
  std::string pattern;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (tensors.is_piece(i)) continue;
    const LogicalTensor tensor = tensors[i];
    if (const auto kind = detail::extra_kind(names, tensor.name)) {
      detail::add_extra(inspection.extras, *kind, tensor);
      continue;
    }
    detail::name_pattern(tensor.name, pattern);
    sums.add({}, pattern, tensor.totals);
  }
  inspection.components = std::move(sums).rows();
}

void reconcile_with(Model model, const LogicalTensors& tensors, detail::NameTable names,
                    Inspection& inspection) {
  detail::Reconciled reconciled = detail::reconcile(tensors, std::move(model), std::move(names));
  inspection.components = std::move(reconciled.components);
  inspection.extras = std::move(reconciled.extras);
  inspection.reconciliation = std::move(reconciled.result);
}

/// Reconciles the tensors with the config. Returns false without a readable config.
bool reconcile_if_possible(const std::string& path, const LogicalTensors& tensors,
                           Inspection& inspection) {
  const bool gguf = inspection.format == FileFormat::gguf;
  const auto config =
      gguf ? std::optional<fs::path>(tensors.files().paths().front()) : config_of(path);
  if (!config) {
    inspection.notes.emplace_back("no config.json next to the weights: tensors are not reconciled");
    return false;
  }
  try {
    Model model = load_model(config->string());
    detail::NameTable names =
        gguf ? detail::gguf_name_table(model.spec) : detail::name_table(model.spec);
    reconcile_with(std::move(model), tensors, std::move(names), inspection);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::internal) throw;
    inspection.config_error = error.what();
    return false;
  }
  return true;
}

/// The sums that need no names.
Inspection sums_of(const std::string& path, const ModelFiles& files,
                   const LogicalTensors& tensors) {
  Inspection inspection;
  inspection.path = path;
  inspection.format = files.gguf().empty() ? FileFormat::safetensors : FileFormat::gguf;
  inspection.files = static_cast<std::int64_t>(files.paths().size());
  sum_types(tensors, inspection);
  return inspection;
}

/// Sums the components, and notes what is odd about the files.
void finish(const ModelFiles& files, Inspection& inspection) {
  files.require_unchanged();
  for (const ComponentRow& row : inspection.components) inspection.weights += row.totals;
  if (files.is_part()) {
    inspection.notes.emplace_back(
        "this is one file of several: tensors of the others are not reported as missing");
  }
  if (files.longest_header_bytes() > kLongestLoadedHeader) {
    inspection.notes.push_back(
        fmt::format("a header has {} bytes: the safetensors library rejects more than {}",
                    files.longest_header_bytes(), kLongestLoadedHeader));
  }
}

}  // namespace

std::string_view name_of(FileFormat format) noexcept {
  switch (format) {
    case FileFormat::safetensors:
      return "safetensors";
    case FileFormat::gguf:
      break;
  }
  return "gguf";
}

std::string_view name_of(ProblemKind kind) noexcept {
  switch (kind) {
    case ProblemKind::missing_tensor:
      return "missing tensor";
    case ProblemKind::unknown_tensor:
      return "unknown tensor";
    case ProblemKind::wrong_shape:
      break;
  }
  return "wrong shape";
}

TensorTotals& TensorTotals::operator+=(const TensorTotals& other) {
  tensors += other.tensors;
  values = checked_add(values, other.values);
  bytes = checked_add(bytes, other.bytes);
  return *this;
}

std::optional<double> TensorTotals::bits_per_value() const {
  if (values == 0) return std::nullopt;
  return 8 * static_cast<double>(bytes) / static_cast<double>(values);
}

bool Inspection::is_explained() const noexcept {
  return config_error.empty() && (!reconciliation || reconciliation->problem_count == 0);
}

Inspection inspect(const std::string& path) {
  const ModelFiles files{fs::path(path)};
  const LogicalTensors tensors(files);
  Inspection inspection = sums_of(path, files, tensors);
  if (!reconcile_if_possible(path, tensors, inspection)) sum_names(tensors, inspection);
  finish(files, inspection);
  return inspection;
}

Inspection inspect_headers(const std::string& path) {
  const ModelFiles files{fs::path(path)};
  const LogicalTensors tensors(files);
  Inspection inspection = sums_of(path, files, tensors);
  sum_names(tensors, inspection);
  finish(files, inspection);
  return inspection;
}

}  // namespace headroom
