#include "packed_weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "error_place.h"
#include "safetensors.h"
#include "unpack_integers.h"

namespace headroom::detail {
namespace {

using checkpoint::ModelFiles;
using checkpoint::StoredType;
using checkpoint::TensorInfo;

/// The pieces of one base name.
struct Group {
  std::vector<std::pair<Piece, std::size_t>> pieces;

  [[nodiscard]] std::optional<std::size_t> find(std::string_view label) const {
    const auto found =
        std::ranges::find(pieces, label, [](const auto& p) { return p.first.label; });
    if (found == pieces.end()) return std::nullopt;
    return found->second;
  }
  [[nodiscard]] std::optional<std::size_t> find(PieceRole role) const {
    const auto found = std::ranges::find(pieces, role, [](const auto& p) { return p.first.role; });
    if (found == pieces.end()) return std::nullopt;
    return found->second;
  }
};

/// Some packings share names of companions: the piece with the values decides, or the scales.
Packing packing_of(const Group& group) {
  for (const PieceRole role : {PieceRole::values, PieceRole::state}) {
    const auto found =
        std::ranges::find(group.pieces, role, [](const auto& p) { return p.first.role; });
    if (found != group.pieces.end()) return found->first.packing;
  }
  for (const std::string_view label : {"SCB", "weight_scale_inv", "weight_scale"}) {
    const auto found =
        std::ranges::find(group.pieces, label, [](const auto& p) { return p.first.label; });
    if (found != group.pieces.end()) return found->first.packing;
  }
  return group.pieces.front().first.packing;
}

bool is_plain_float(const TensorInfo& tensor) {
  return tensor.type == checkpoint::DataType(StoredType::float32) ||
         tensor.type == checkpoint::DataType(StoredType::float16) ||
         tensor.type == checkpoint::DataType(StoredType::bfloat16);
}

using Result = UnpackResult;

/// Unpacks the groups of one model.
class Unpacker {
 public:
  explicit Unpacker(const ModelFiles& files) : files_(files) {}

  [[nodiscard]] Result unpack(std::string_view base, const Group& group) const {
    switch (packing_of(group)) {
      case Packing::gptq_or_awq:
        return group.find(PieceRole::values) ? gptq_or_awq(base, group) : mlx(base, group);
      case Packing::mlx:
        return mlx(base, group);
      case Packing::torchao:
        return torchao(base, group);
      case Packing::hqq:
        return hqq(base, group);
      case Packing::compressed_tensors:
        return compressed_tensors(base, group);
      case Packing::bitsandbytes_4bit:
        return bitsandbytes_4bit(base, group);
      case Packing::bitsandbytes_8bit:
        return as_stored(base, "bitsandbytes");
      case Packing::scaled:
        return scaled(base, group);
      case Packing::mxfp4:
        return mxfp4(base, group);
      case Packing::split_latent:
        return split_latent(base, group);
    }
    return std::nullopt;
  }

 private:
  [[nodiscard]] TensorInfo tensor(std::size_t index) const { return files_.tensors()[index]; }

  /// GPTQ packs along the input, [in * bits / 32, out]; AWQ along the output,
  /// [in, out * bits / 32]. Scales are [groups, out] in both.
  [[nodiscard]] Result gptq_or_awq(std::string_view base, const Group& group) const {
    const auto values = group.find(PieceRole::values);
    const auto scales = group.find("scales");
    if (!values || !scales) return std::nullopt;
    const auto packed = tensor(*values).shape;
    const auto scaled = tensor(*scales).shape;
    if (packed.size() != 2 || scaled.size() != 2) return std::nullopt;
    const std::int64_t out = scaled[1];
    std::string name = std::string(base) + ".weight";
    if (packed[1] != out) {
      const auto bits = bits_of(packed[1], out);
      if (!bits) return std::nullopt;
      return unpacked(std::move(name), fmt::format("AWQ {}-bit", *bits), {out, packed[0]});
    }
    const auto bits = gptq_bits(group, packed[0], out);
    if (!bits) return std::nullopt;
    const Integer in = Integer{packed[0]} * kWordBits / *bits;
    if (in > kLargestDimension || in * *bits != Integer{packed[0]} * kWordBits) return std::nullopt;
    return unpacked(std::move(name), fmt::format("GPTQ {}-bit", *bits),
                    {out, static_cast<std::int64_t>(in)});
  }

  /// g_idx has one element per input; zero points are packed like the weight.
  [[nodiscard]] std::optional<std::int64_t> gptq_bits(const Group& group, std::int64_t words,
                                                      std::int64_t out) const {
    if (const auto order = group.find("g_idx")) {
      const auto shape = tensor(*order).shape;
      if (shape.size() == 1) return bits_of(words, shape[0]);
    }
    if (const auto zeros = group.find("qzeros")) {
      const auto shape = tensor(*zeros).shape;
      if (shape.size() == 2) return bits_of(shape[1], out);
    }
    return std::nullopt;
  }

  /// MLX stores the values under the plain name.
  [[nodiscard]] Result mlx(std::string_view base, const Group& group) const {
    const std::string module(base);
    const auto values = files_.tensors().find(module + ".weight");
    const auto scales = group.find("scales");
    if (!values || !scales) return std::nullopt;
    if (!mlx_groups_) {
      mlx_groups_.emplace(std::filesystem::path(files_.paths().front()).parent_path());
    }
    return unpack_mlx(module, tensor(*values), tensor(*scales), mlx_groups_->of(module));
  }

  [[nodiscard]] Result torchao(std::string_view base, const Group& group) const {
    const auto values = group.find(PieceRole::values);
    auto scales = group.find("_weight_scale");
    if (!scales) scales = group.find("_weight_scale_and_zero");
    if (!values || !scales) return std::nullopt;
    return unpack_torchao(std::string(base), tensor(*values), tensor(*scales));
  }

  [[nodiscard]] Result hqq(std::string_view base, const Group& group) const {
    const auto values = group.find(PieceRole::values);
    const auto shape = group.find("shape");
    if (!values || !shape) return std::nullopt;
    return unpack_hqq(std::string(base), tensor(*values), integers_in(tensor(*shape)));
  }

  /// Integers of 32 bits with their logical shape in another tensor, or bytes of two values.
  [[nodiscard]] Result compressed_tensors(std::string_view base, const Group& group) const {
    const auto values = group.find(PieceRole::values);
    if (!values) return std::nullopt;
    const TensorInfo packed = tensor(*values);
    std::string name = std::string(base) + ".weight";
    if (packed.type == checkpoint::DataType(StoredType::uint8) && !packed.shape.empty() &&
        packed.shape.back() <= kLargestDimension) {
      std::vector<std::int64_t> shape(packed.shape.begin(), packed.shape.end());
      shape.back() *= 2;
      return unpacked(std::move(name), "FP4 with scales", std::move(shape));
    }
    const auto stored_shape = group.find(PieceRole::shape);
    if (!stored_shape) return std::nullopt;
    auto shape = integers_in(tensor(*stored_shape));
    if (shape.size() != 2 || packed.shape.size() != 2 || shape[0] != packed.shape[0]) {
      return std::nullopt;
    }
    const auto bits = bits_of(packed.shape[1], shape[1]);
    if (!bits) return std::nullopt;
    return unpacked(std::move(name), fmt::format("packed {}-bit", *bits), std::move(shape));
  }

  /// The values of a short integer tensor; empty for any other.
  [[nodiscard]] std::vector<std::int64_t> integers_in(const TensorInfo& list) const {
    constexpr std::size_t kMostDimensions = 8;
    const auto bytes = files_.data(list);
    std::vector<std::int64_t> values;
    const bool wide = list.type == checkpoint::DataType(StoredType::int64);
    if (list.elements() > std::int64_t{kMostDimensions} ||
        (!wide && list.type != checkpoint::DataType(StoredType::int32))) {
      return values;
    }
    const std::size_t size = wide ? sizeof(std::int64_t) : sizeof(std::int32_t);
    for (std::size_t at = 0; at < bytes.size(); at += size) {
      std::int64_t value = 0;  // little-endian: upper bytes of a shorter integer stay 0
      std::memcpy(&value, &bytes[at], size);
      if (value < 0 || value > kLargestDimension) return {};
      values.push_back(value);
    }
    return values;
  }

  /// Two values per byte; the state, a JSON text, has the shape.
  [[nodiscard]] Result bitsandbytes_4bit(std::string_view base, const Group& group) const {
    std::string name = std::string(base) + ".weight";
    const auto values = files_.tensors().find(name);
    const auto state = group.find(PieceRole::state);
    if (!values || !state) return std::nullopt;
    const auto bytes = files_.data(tensor(*state));
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    const auto json = nlohmann::json::parse(text, nullptr, false);
    if (!json.is_object() || !json.contains("shape") || !json.at("shape").is_array()) {
      return std::nullopt;
    }
    std::vector<std::int64_t> shape;
    Integer count = 1;
    for (const auto& size : json.at("shape")) {
      if (!size.is_number_unsigned() ||
          size.get<std::uint64_t>() > std::uint64_t{kLargestDimension} || shape.size() >= 4) {
        return std::nullopt;
      }
      shape.push_back(size.get<std::int64_t>());
      count = checked_multiply(count, shape.back());
    }
    if ((count + 1) / 2 != tensor(*values).elements()) return std::nullopt;
    return unpacked(std::move(name), "bitsandbytes 4-bit", std::move(shape));
  }

  /// A weight of one byte per value, or of a float type, with separate scales.
  [[nodiscard]] Result as_stored(std::string_view base, std::string_view how) const {
    std::string name = std::string(base) + ".weight";
    const auto values = files_.tensors().find(name);
    if (!values) return std::nullopt;
    const TensorInfo stored = tensor(*values);
    std::string type = fmt::format("{}, {}", checkpoint::name_of(stored.type), how);
    return unpacked(std::move(name), std::move(type), {stored.shape.begin(), stored.shape.end()});
  }

  /// Scales of activations alone leave a float weight plain.
  [[nodiscard]] Result scaled(std::string_view base, const Group& group) const {
    const auto values = files_.tensors().find(std::string(base) + ".weight");
    if (!values) return std::nullopt;
    const auto is_of_activations = [](const auto& piece) {
      return piece.first.role == PieceRole::activations;
    };
    const bool only_activations = std::ranges::all_of(group.pieces, is_of_activations);
    if (only_activations && is_plain_float(tensor(*values))) return std::nullopt;
    return group.find("weight_scale_2") ? nvfp4(base) : as_stored(base, "scaled");
  }

  /// ModelOpt's NVFP4 has two values per byte along the input. Only it scales the scales.
  [[nodiscard]] Result nvfp4(std::string_view base) const {
    const auto values = files_.tensors().find(std::string(base) + ".weight");
    if (!values) return std::nullopt;
    const TensorInfo packed = tensor(*values);
    const bool halves = packed.type == checkpoint::DataType(StoredType::uint8) &&
                        !packed.shape.empty() && packed.shape.back() <= kLargestDimension;
    if (!halves) return as_stored(base, "scaled");
    std::vector<std::int64_t> shape(packed.shape.begin(), packed.shape.end());
    shape.back() *= 2;
    return unpacked(std::string(base) + ".weight", "NVFP4", std::move(shape));
  }

  /// Blocks [experts, out, in / 32, 16 bytes of two values]; unpacked [experts, in, out].
  [[nodiscard]] Result mxfp4(std::string_view base, const Group& group) const {
    const auto blocks = group.find("blocks");
    const auto scales = group.find("scales");
    if (!blocks || !scales) return std::nullopt;
    const auto shape = tensor(*blocks).shape;
    const auto scaled = tensor(*scales).shape;
    if (shape.size() < 3 || scaled.size() + 1 != shape.size() ||
        !std::ranges::equal(scaled, shape.first(scaled.size()))) {
      return std::nullopt;
    }
    std::vector<std::int64_t> logical(shape.begin(), shape.end() - 1);
    if (logical.back() > kLargestDimension || shape.back() > kWordBits) return std::nullopt;
    logical.back() *= 2 * shape.back();
    std::swap(logical.back(), logical[logical.size() - 2]);
    return unpacked(std::string(base), "MXFP4", std::move(logical));
  }

  /// MLA's up-projection: K transposed, [heads, rank, key dim], and V, [heads, value dim, rank];
  /// merged [heads * (key dim + value dim), rank].
  [[nodiscard]] Result split_latent(std::string_view base, const Group& group) const {
    const auto keys = group.find("attn_k_b.weight");
    const auto values = group.find("attn_v_b.weight");
    if (!keys || !values) return std::nullopt;
    const auto key_shape = tensor(*keys).shape;
    const auto value_shape = tensor(*values).shape;
    if (key_shape.size() != 3 || value_shape.size() != 3) return std::nullopt;
    const std::int64_t heads = key_shape[0];
    const std::int64_t rank = key_shape[1];
    if (value_shape[0] != heads || value_shape[2] != rank) return std::nullopt;
    const Integer rows = checked_multiply(heads, checked_add(key_shape[2], value_shape[1]));
    if (rows > kLargestDimension) return std::nullopt;
    const auto key_type = checkpoint::name_of(tensor(*keys).type);
    const auto value_type = checkpoint::name_of(tensor(*values).type);
    std::string type = key_type == value_type ? std::string(key_type)
                                              : fmt::format("{} and {}", key_type, value_type);
    return unpacked(std::string(base) + ".attn_kv_b.weight", std::move(type),
                    {static_cast<std::int64_t>(rows), rank});
  }

  const ModelFiles& files_;
  mutable std::optional<MlxGroups> mlx_groups_;  ///< read when a module needs it
};

}  // namespace

std::vector<PackedWeight> find_packed_weights(const ModelFiles& files) {
  const checkpoint::TensorTable& tensors = files.tensors();
  std::vector<std::pair<std::string_view, Group>> groups;
  std::unordered_map<std::string_view, std::size_t> by_base;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const auto piece = piece_of(tensors[i].name);
    if (!piece) continue;
    const auto [found, added] = by_base.try_emplace(piece->base, groups.size());
    if (added) groups.emplace_back(piece->base, Group{});
    groups[found->second].second.pieces.emplace_back(*piece, i);
  }
  std::vector<PackedWeight> packed;
  const Unpacker unpacker(files);
  for (auto& named : groups) {
    const std::string_view base = named.first;
    Group& group = named.second;
    const TensorInfo first = tensors[group.pieces.front().second];
    const std::string place = checkpoint::tensor_place(files.paths()[first.file], first.name);
    auto result = at_place(place, [&] { return unpacker.unpack(base, group); });
    if (!result) continue;
    PackedWeight& weight = packed.emplace_back();
    weight.packing = packing_of(group);
    weight.base = base;
    weight.name = std::move(result->name);
    weight.type = std::move(result->type);
    weight.shape = std::move(result->shape);
    weight.values = result->values;
    for (const auto& [piece, index] : group.pieces) {
      weight.pieces.push_back(index);
      if (piece.role != PieceRole::activations) weight.labels.push_back(piece.label);
    }
    const auto plain =
        tensors.find(weight.name);  // some packings store the values under the plain name
    if (plain) {
      weight.pieces.push_back(*plain);
      weight.labels.emplace_back("weight");
    }
    for (const std::size_t index : weight.pieces) {
      weight.bytes += static_cast<Integer>(tensors[index].bytes);
    }
  }
  return packed;
}

}  // namespace headroom::detail
