// Token lists of an input file's JSON objects; every error names the file and the key. Internal to
// src/measured.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "headroom/model_spec.h"
#include "headroom/workload.h"
#include "inputs.h"

namespace headroom::measured {

class TokenReader {
 public:
  TokenReader(const nlohmann::json& object, std::string file, std::string pointer,
              const ModelSpec& spec);

  [[nodiscard]] bool has(const char* key) const;

  /// Throws Error{invalid_input} for a key that is not among `known`.
  void refuse_others(const std::vector<std::string>& known) const;

  /// Returns ids [batch, seq_len]; a flat list is one sequence.
  [[nodiscard]] TokenInputs tokens(const char* key) const;

  /// Values of the shape of `tokens`, each from 0 to below `limit`.
  [[nodiscard]] std::vector<std::int64_t> values_like(const char* key, const TokenInputs& tokens,
                                                      std::int64_t limit) const;

  /// Sizes of images, [height, width] each; empty if absent.
  [[nodiscard]] std::vector<ImageSize> image_sizes() const;

  /// Numbers of the canvases of images, from 1; empty if absent.
  [[nodiscard]] std::vector<std::int64_t> aspect_ratio_ids() const;

  /// Grids of patches of images: [frames, rows, columns] each, [rows, columns] each, or the
  /// [column, row] of each patch in raster order, [-1, -1] for padding.
  [[nodiscard]] std::vector<ImageGrid> image_grids() const;

  /// Throws Error{invalid_input} if the mask `key` is there and masks anything.
  void require_unpadded(const char* key) const;

  [[nodiscard]] std::string place_of(const char* key) const;

  [[noreturn]] void fail(const char* key, const std::string& message) const;

 private:
  using Rows = std::vector<std::vector<std::int64_t>>;

  void require_lengths(const std::vector<std::int64_t>& sides, const char* key) const;
  [[nodiscard]] ImageGrid grid_from(const nlohmann::json& image) const;
  [[nodiscard]] Rows integer_rows(const char* key) const;
  [[nodiscard]] std::vector<std::int64_t> integers(const nlohmann::json& row,
                                                   const char* key) const;
  [[nodiscard]] std::vector<std::int64_t> flatten(const Rows& rows, const char* key) const;
  void require_below(std::int64_t value, std::int64_t limit, const char* key) const;

  const nlohmann::json& object_;
  std::string file_;
  std::string pointer_;
  const ModelSpec& spec_;
};

}  // namespace headroom::measured
