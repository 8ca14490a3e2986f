// Stored tensors by name, whatever the format of their files, with values as float32.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "checkpoint.h"
#include "headroom/model_spec.h"
#include "names.h"

namespace headroom::detail {

class WeightReader {
 public:
  virtual ~WeightReader() = default;

  /// The sizes of the tensor of this name; empty when there is none.
  [[nodiscard]] virtual std::optional<std::vector<std::int64_t>> shape(
      const std::string& name) const = 0;
  /// The names of all tensors, sorted.
  [[nodiscard]] virtual std::vector<std::string> names() const = 0;
  /// The file that holds the tensor; for a name that is not there, the file that would list it.
  [[nodiscard]] virtual const std::string& location(const std::string& name) const = 0;
  /// Writes the tensor's values, or those of one of the experts that it stacks, to `out`, which has
  /// room for exactly them. Throws Error{invalid_input} for a type that cannot be read, or when a
  /// value is not finite.
  virtual void read(const std::string& name, std::optional<std::int64_t> expert,
                    std::span<float> out) const = 0;
  /// The names that the model's weights have in these files.
  [[nodiscard]] virtual NameTable name_table(const ModelSpec& spec) const = 0;
};

[[nodiscard]] std::unique_ptr<WeightReader> read_checkpoint(checkpoint::Checkpoint checkpoint);

/// The tensors of a GGUF file, and of the others of its split, as the family's own checkpoints have
/// them: what the converter changed is changed back. Throws Error{invalid_input} when the file is
/// not valid, or where what the converter changes is not known of the family.
[[nodiscard]] std::unique_ptr<WeightReader> read_gguf(const std::filesystem::path& file,
                                                      const ModelSpec& spec);

/// The stretch of rotary angles that a GGUF file holds as a tensor (Llama 3.1) and its metadata do
/// not tell; `rope` as it is where there is none.
[[nodiscard]] RopeSpec with_stored_factors(RopeSpec rope, const std::filesystem::path& file);

}  // namespace headroom::detail
