// The stored tensors of one packed weight. Internal to src/weights.
#pragma once

#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint.h"
#include "grouped_weights.h"
#include "packed_weights.h"

namespace headroom::detail {

/// Statements of a config's `quantization_config` that decide how tensors are read.
struct PackedSettings {
  bool is_auto_round = false;              ///< whose packing_format decides
  std::string packing_format;              ///< of AutoRound: "auto_round:auto_gptq", …
  std::string checkpoint_format;           ///< of GPTQ: "gptq", as if empty, or "gptq_v2"
  std::string version;                     ///< of AWQ: "gemm", "gemv", …
  std::optional<std::int64_t> group_size;  ///< inputs that share a scale; -1: a whole row
  std::int64_t block_rows = 128;           ///< of FP8 with a scale per block
  std::int64_t block_columns = 128;
};

/// Reads them from the config.json in `folder`; without that file, or those keys, the defaults: the
/// zero points of GPTQ files alone count as stored less one, as most files have them.
[[nodiscard]] PackedSettings packed_settings(const std::filesystem::path& folder);

class PackedPieces {
 public:
  PackedPieces(const checkpoint::Checkpoint& files, const PackedWeight& weight,
               const PackedSettings& settings)
      : files_(files), weight_(weight), settings_(settings) {}

  [[nodiscard]] const PackedWeight& weight() const noexcept { return weight_; }
  [[nodiscard]] const PackedSettings& settings() const noexcept { return settings_; }
  /// Rows and columns of a weight with two dimensions.
  [[nodiscard]] std::int64_t rows() const { return weight_.shape.front(); }
  [[nodiscard]] std::int64_t columns() const { return weight_.shape.back(); }

  /// The piece `base`.`label`; null if there is none.
  [[nodiscard]] const checkpoint::StoredTensor* find(std::string_view label) const;
  /// Likewise; throws Error{invalid_input} if it is missing.
  [[nodiscard]] const checkpoint::StoredTensor& at(std::string_view label) const;
  /// Likewise, of this type and shape.
  [[nodiscard]] const checkpoint::StoredTensor& at(std::string_view label,
                                                   checkpoint::StoredType type,
                                                   std::vector<std::int64_t> shape) const;

  /// Error{invalid_input} at the weight if it has other pieces than these: the weight would be
  /// another one without them. Scales of activations do not count.
  void require_only(std::initializer_list<std::string_view> labels) const;

  /// Error{invalid_input} at the piece: what it has does not fit.
  [[noreturn]] void fail(const checkpoint::StoredTensor& piece, const std::string& what) const;
  /// Error{invalid_input} at the weight: a form that no kernel reads.
  [[noreturn]] void refuse(const std::string& what) const;

 private:
  const checkpoint::Checkpoint& files_;
  const PackedWeight& weight_;
  const PackedSettings& settings_;
};

/// A scale's type; throws through `pieces` for any other type.
[[nodiscard]] checkpoint::ScaleKind scale_kind(const PackedPieces& pieces,
                                               const checkpoint::StoredTensor& scales);

/// Sets the scales and the group of `to`, whose sizes are set, from a tensor with one scale per
/// tensor, row, group of columns or block. Where several fit, weight_scale_inv is per block.
void set_scales(const PackedPieces& pieces, const checkpoint::StoredTensor& scales,
                checkpoint::GroupedWeights& to);

/// The matrix [rows, columns] of elements of `size` bytes, transposed.
[[nodiscard]] std::vector<std::byte> transposed(std::span<const std::byte> matrix,
                                                std::int64_t rows, std::int64_t columns,
                                                std::size_t size);

/// Unpacked matrices; each throws Error{invalid_input} for pieces that do not fit together and for
/// forms that no kernel reads.
[[nodiscard]] checkpoint::GroupedWeights unpack_gptq_or_awq(const PackedPieces& pieces);
[[nodiscard]] checkpoint::GroupedWeights unpack_compressed_tensors(const PackedPieces& pieces);
[[nodiscard]] checkpoint::GroupedWeights unpack_bitsandbytes_4bit(const PackedPieces& pieces);
[[nodiscard]] checkpoint::GroupedWeights unpack_bitsandbytes_8bit(const PackedPieces& pieces);
[[nodiscard]] checkpoint::GroupedWeights unpack_scaled(const PackedPieces& pieces);
/// NVFP4 or MXFP4 of compressed-tensors, in bytes of two values.
[[nodiscard]] checkpoint::GroupedWeights unpack_float4(const PackedPieces& pieces);
/// One of the stacked experts, as [out, in].
[[nodiscard]] checkpoint::GroupedWeights unpack_mxfp4(const PackedPieces& pieces,
                                                      std::optional<std::int64_t> expert);
/// A plain matrix, or one of its stacked experts, of 16 bits per value.
[[nodiscard]] checkpoint::GroupedWeights plain_16bit(const checkpoint::StoredTensor& tensor);

}  // namespace headroom::detail
