// Reads stored tensors by name, for all file formats: as float32, in ggml's blocks, or in the
// codes of quantised safetensors.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "checkpoint.h"
#include "ggml_type.h"
#include "grouped_weights.h"
#include "headroom/expr.h"
#include "headroom/model_spec.h"
#include "stored/names.h"
#include "stored/stored_layout.h"

namespace headroom::detail {

class WeightReader {
 public:
  virtual ~WeightReader() = default;

  /// The shape of the tensor; empty if it does not exist.
  [[nodiscard]] virtual std::optional<std::vector<std::int64_t>> shape(
      const std::string& name) const = 0;
  /// The names of all tensors, sorted.
  [[nodiscard]] virtual std::vector<std::string> names() const = 0;
  /// The file that stores the tensor; for a missing tensor, the file that would list it.
  [[nodiscard]] virtual const std::string& location(const std::string& name) const = 0;
  /// Writes the values of the tensor, or of one of its stacked experts, to `out`, whose size must
  /// match. Throws Error{invalid_input} if the type is not supported or a value is not finite.
  virtual void read(const std::string& name, std::optional<std::int64_t> expert,
                    std::span<float> out) const = 0;
  /// Writes `out.size()` values of the tensor, or of one of its stacked experts, row-major, from
  /// number `first` on. Throws as read does.
  virtual void read_part(const std::string& name, std::optional<std::int64_t> expert,
                         std::int64_t first, std::span<float> out) const;
  /// The ggml type of a tensor; empty in files of other formats.
  [[nodiscard]] virtual std::optional<checkpoint::GgmlType> ggml_type(
      const std::string& /*name*/) const {
    return std::nullopt;
  }
  /// Returns whether read_blocks can return the tensor: its rows are those of the original
  /// checkpoint, in any order, with their values in the original order.
  [[nodiscard]] virtual bool has_original_rows(const std::string& /*name*/) const { return false; }
  /// The tensor, or one of its stacked experts, in its blocks and as `read` orders the rows. Throws
  /// as read does.
  [[nodiscard]] virtual std::vector<std::byte> read_blocks(
      const std::string& name, std::optional<std::int64_t> expert) const;
  /// The format of a tensor that read_groups returns; empty for all others.
  [[nodiscard]] virtual std::optional<std::string> group_format(const std::string& /*name*/) const {
    return std::nullopt;
  }
  /// The tensor, a matrix, or one of its stacked experts, in groups of codes. Throws
  /// Error{invalid_input} for tensors that do not fit together and forms that no kernel runs.
  [[nodiscard]] virtual checkpoint::GroupedWeights read_groups(
      const std::string& name, std::optional<std::int64_t> expert) const;
  /// The order in which `read` returns the matrix that read_groups returns as [out, in].
  [[nodiscard]] virtual StoredOrder groups_are(const std::string& /*name*/) const {
    return StoredOrder::as_is;
  }
  /// Bytes of the tensor in its files, its scales and zero points included; empty if the reader
  /// counts none.
  [[nodiscard]] virtual std::optional<Integer> file_bytes(const std::string& /*name*/) const {
    return std::nullopt;
  }
  /// The stored type of the tensor, for display; empty if the reader names none.
  [[nodiscard]] virtual std::string type_name(const std::string& /*name*/) const { return {}; }
  /// Throws Error{invalid_input} if a file was changed since it was opened: what was read is not to
  /// be used.
  virtual void require_unchanged() const = 0;
  /// The stored names of the model's weights in these files.
  [[nodiscard]] virtual NameTable name_table(const ModelSpec& spec) const = 0;
};

[[nodiscard]] std::unique_ptr<WeightReader> read_checkpoint(checkpoint::Checkpoint checkpoint);

/// Returns whether safetensors at `files`, a file, an index or a folder, have packed weights:
/// several tensors that are one weight. False for files that cannot be read.
[[nodiscard]] bool has_packed_weights(const std::filesystem::path& files);

/// Reads such safetensors, packed weights under the names and shapes that they unpack to. The
/// config.json beside them decides where tensors alone do not. Throws Error{invalid_input}.
[[nodiscard]] std::unique_ptr<WeightReader> read_packed(const std::filesystem::path& files);

/// Reads a GGUF file and the rest of its split as the family's original checkpoints: the
/// converter's changes are reversed. Throws Error{invalid_input} if the file is not valid or the
/// converter's changes for the family are unknown.
[[nodiscard]] std::unique_ptr<WeightReader> read_gguf(const std::filesystem::path& file,
                                                      const ModelSpec& spec);

/// Returns `rope` with the RoPE factors that a GGUF file stores as a tensor instead of metadata
/// (Llama 3.1); `rope` itself if the file has none.
[[nodiscard]] RopeSpec with_stored_factors(RopeSpec rope, const std::filesystem::path& file);

}  // namespace headroom::detail
