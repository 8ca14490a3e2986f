// Weights of a checkpoint: finds the tensors of each, checks their shapes, and takes parts of them.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>
#include <utility>

#include "expert_table.h"
#include "headroom/error.h"
#include "kernels/source_rows.h"
#include "random_numbers.h"
#include "stored_runs.h"
#include "weight_places.h"
#include "weight_reader.h"
#include "weights.h"

namespace headroom::measured {
namespace {

using checkpoint::Checkpoint;
using checkpoint::tensor_place;
using detail::PlaceList;
using detail::WeightPlace;
using detail::WeightReader;

constexpr const char* kMismatchHint = "check that config.json matches the weights";

/// Divides rows of `width` values by their lengths, which are at least 1e-12 as in torch's
/// normalize.
void unit_rows(std::span<float> values, std::int64_t width) {
  const auto size = static_cast<std::size_t>(width);
  for (std::size_t first = 0; first < values.size(); first += size) {
    const std::span<float> row = values.subspan(first, size);
    const double squares = std::inner_product(row.begin(), row.end(), row.begin(), 0.0);
    const auto scale = static_cast<float>(1 / std::max(std::sqrt(squares), 1e-12));
    for (float& value : row) value *= scale;
  }
}

/// Throws unless `values` number experts: the router takes them as indices.
void require_experts(std::span<const float> values, const std::string& where) {
  constexpr float kMost = 0x1p24F;  // whole numbers that a float holds
  const auto is_number = [](float value) {
    return value >= 0 && value < kMost && std::trunc(value) == value;
  };
  if (std::ranges::all_of(values, is_number)) return;
  throw Error(ErrorCode::invalid_input, "a token has an expert that is no whole number from 0",
              where, kMismatchHint);
}

class StoredWeights final : public WeightSource {
 public:
  StoredWeights(const ModelSpec& spec, std::unique_ptr<WeightReader> reader)
      : positions_(spec.position.table),
        head_has_unit_rows_(spec.head.language_model && spec.head.language_model->unit_rows),
        places_(spec, build_graph(spec, {}), reader->name_table(spec)),
        reader_(std::move(reader)) {}

  AlignedVector<float> load(const Weight& weight, const std::vector<std::int64_t>& shape,
                            std::int64_t layer) override {
    AlignedVector<float> values(static_cast<std::size_t>(element_count(shape)));
    std::span<float> rest(values);
    if (is_omitted_table(weight)) {
      std::ranges::copy(sinusoidal_halves(shape.front(), shape.back()), values.begin());
      return values;
    }
    for (const WeightPlace& listed : places_of(weight, layer)) {
      const WeightPlace place = listed.joined > 1 ? sized_by_file(listed, rest.size()) : listed;
      const auto size = static_cast<std::size_t>(place.wanted.rows * place.wanted.columns);
      copy(place, weight.path, rest.first(size));
      rest = rest.subspan(size);
    }
    if (!rest.empty()) throw_missing_rows(weight, layer);
    if (has_unit_rows(weight, layer)) unit_rows(values, shape.back());
    if (is_expert_table(weight)) require_experts(values, weight.path);
    return values;
  }

  AlignedVector<float> load_part(const Weight& weight, const std::vector<std::int64_t>& shape,
                                 std::int64_t layer, std::span<const WeightSlice> slices) override {
    const PlaceList places = places_of(weight, layer);
    if (!reads_parts(weight, shape, layer, places)) {
      return WeightSource::load_part(weight, shape, layer, slices);
    }
    AlignedVector<float> values(elements_of(slices));
    for_each_block(slices, [&](WeightBlock block) {
      const std::int64_t rows = places.front().wanted.rows;  // of each place
      for (const std::int64_t end = block.row + block.rows; block.row < end;) {
        const WeightPlace& place = places[static_cast<std::size_t>(block.row / rows)];
        WeightBlock own = block;
        own.row %= rows;
        own.rows = std::min(end - block.row, rows - own.row);
        copy_part_of(place, own, values);
        block.row += own.rows;
        block.target = block.target_of(own.rows);
      }
    });
    if (is_expert_table(weight)) require_experts(values, weight.path);
    return values;
  }

  /// Blocks stay if every tensor of the weight has the same type, and rows as the weight's.
  [[nodiscard]] SourceType type_of(const Weight& weight, const std::vector<std::int64_t>& /*shape*/,
                                   std::int64_t layer) const override {
    if (is_omitted_table(weight)) return {};
    if (const auto grouped = type_in_groups(weight, layer)) return *grouped;
    std::optional<checkpoint::GgmlType> type;
    bool stays = true;
    for (const WeightPlace& place : places_of(weight, layer)) {
      const auto found = find(place.name);
      const auto own = found ? reader_->ggml_type(found->name) : std::nullopt;
      if (!own || !place.fits(found->shape)) return {};  // load() refuses what does not fit
      stays = stays && own == type.value_or(*own) && reader_->has_original_rows(found->name) &&
              detail::has_whole_rows(place.layout);
      type = own;
    }
    if (!type || *type == checkpoint::GgmlType::f32) return {};
    stays = stays && has_block_kernels(*type);
    return {std::string(checkpoint::info(*type).name), stays ? type : std::nullopt,
            stays ? StoredForm::blocks : StoredForm::values_only};
  }

  StoredBlocks load_blocks(const Weight& weight, const std::vector<std::int64_t>& shape,
                           std::int64_t layer) override {
    StoredBlocks all;
    std::int64_t rows = element_count(shape) / shape.back();
    for (const WeightPlace& listed : places_of(weight, layer)) {
      const auto found = find(listed.name);
      const WeightPlace place = listed.joined > 1 ? listed.sized_as(found->shape) : listed;
      all.type = *reader_->ggml_type(found->name);
      std::vector<std::byte> stored = reader_->read_blocks(found->name, place.expert);
      if (is_whole(place)) {
        move_bytes(stored, all.bytes);
      } else {
        const auto row_bytes = stored.size() / static_cast<std::size_t>(place.stored.rows);
        const std::vector<std::byte> part =
            detail::rows_of_part(stored, place.layout, place.range, place.wanted.rows, row_bytes);
        all.bytes.insert(all.bytes.end(), part.begin(), part.end());
      }
      rows -= place.wanted.rows;
      used_.insert(found->name);
    }
    if (rows != 0) throw_missing_rows(weight, layer);
    return all;
  }

  StoredGroups load_groups(const Weight& weight, const std::vector<std::int64_t>& shape,
                           std::int64_t layer) override {
    StoredGroups all;
    std::int64_t rows = element_count(shape) / shape.back();
    for (const WeightPlace& listed : places_of(weight, layer)) {
      const auto found = find(listed.name);
      const WeightPlace place = listed.joined > 1 ? listed.sized_as(found->shape) : listed;
      all.push_back(part_of(place, reader_->read_groups(found->name, place.expert)));
      rows -= place.wanted.rows;
      used_.insert(found->name);
    }
    if (rows != 0) throw_missing_rows(weight, layer);
    return all;
  }

  std::optional<std::int64_t> count_file_bytes(const Weight& weight, std::int64_t layer) override {
    std::int64_t bytes = 0;
    for (const WeightPlace& place : places_of(weight, layer)) {
      const auto found = find(place.name);
      if (!found) continue;  // a table that the file omits
      const auto in_files = reader_->file_bytes(found->name);
      if (!in_files) return std::nullopt;
      if (counted_.insert(found->name).second) bytes += static_cast<std::int64_t>(*in_files);
    }
    return bytes;
  }

  void finish() override {
    reader_->require_unchanged();
    for (const std::string& name : reader_->names()) {
      if (used_.contains(name) || detail::extra_kind(places_.table(), name)) continue;
      throw Error(ErrorCode::invalid_input, "the model has no weight for this tensor",
                  tensor_place(reader_->location(name), name), kMismatchHint);
    }
  }

 private:
  struct FoundTensor {
    std::string name;
    std::vector<std::int64_t> shape;
  };

  [[nodiscard]] std::optional<FoundTensor> find(const std::string& name) const {
    if (auto shape = reader_->shape(name)) return FoundTensor{name, std::move(*shape)};
    for (const std::string_view prefix : places_.table().optional_prefixes) {
      const std::string longer = std::string(prefix) + name;
      if (auto shape = reader_->shape(longer)) return FoundTensor{longer, std::move(*shape)};
    }
    return std::nullopt;
  }

  /// The type of a weight whose tensors are all in groups of codes, or of 16 bits, with rows as the
  /// weight's; only the name if kernels need its values. Empty if the reader names no type, and for
  /// a tensor that is missing or has another shape.
  [[nodiscard]] std::optional<SourceType> type_in_groups(const Weight& weight,
                                                         std::int64_t layer) const {
    SourceType type{.form = StoredForm::groups};
    for (const WeightPlace& place : places_of(weight, layer)) {
      const auto found = find(place.name);
      if (!found || !place.fits(found->shape)) return std::nullopt;  // load() refuses it
      type.name = reader_->type_name(found->name);
      if (type.name.empty()) return std::nullopt;
      const bool stays = reader_->group_format(found->name).has_value() &&
                         place.layout.order == reader_->groups_are(found->name) &&
                         (place.layout.stacking == detail::Stacking::alone ||
                          place.layout.axis == detail::StackAxis::out);
      if (!stays || has_unit_rows(weight, layer)) type.form = StoredForm::values_only;
    }
    if (type.name == "F32") type.name.clear();
    return type;
  }

  /// The rows of `whole`, [out, in], that `place` selects.
  static checkpoint::GroupedWeights part_of(const WeightPlace& place,
                                            checkpoint::GroupedWeights whole) {
    if (place.layout.stacking == detail::Stacking::alone) return whole;
    std::vector<std::int64_t> rows;
    rows.reserve(static_cast<std::size_t>(place.wanted.rows));
    for (const StoredRun& run : runs_of(place, detail::StackAxis::out, 0, place.wanted.rows)) {
      for (std::int64_t i = 0; i < run.count; ++i) rows.push_back(run.stored + i);
    }
    return checkpoint::select_rows(whole, rows);
  }

  /// Returns whether the class divides the weight's rows by their lengths, and the file does not.
  [[nodiscard]] bool has_unit_rows(const Weight& weight, std::int64_t layer) const {
    if (!head_has_unit_rows_ || weight.path != "head.language_model.weight") return false;
    const auto found = find(places_of(weight, layer).front().name);
    return found && !reader_->ggml_type(found->name);
  }

  /// Returns whether the tensors of the weight are matrices of its rows and columns, so that a part
  /// of them can be read alone. load() reads the others, and refuses what is missing.
  [[nodiscard]] bool reads_parts(const Weight& weight, const std::vector<std::int64_t>& shape,
                                 std::int64_t layer, const PlaceList& places) const {
    if (is_omitted_table(weight) || has_unit_rows(weight, layer)) return false;
    const std::int64_t columns = shape.size() > 1 ? shape.back() : 1;
    const std::int64_t rows = element_count(shape) / columns / std::ssize(places);
    return std::ranges::all_of(places, [&](const WeightPlace& place) {
      const auto found = find(place.name);
      return found && place.fits(found->shape) && place.joined == 1 && place.wanted.rows == rows &&
             place.wanted.columns == columns;
    });
  }

  /// Returns whether the rows of all experts follow one another in a tensor of two dimensions.
  static bool has_rows_of_experts(const WeightPlace& place, const FoundTensor& found) {
    return place.expert && found.shape.size() == 2 && found.shape[1] == place.stored.columns &&
           found.shape[0] == place.experts * place.stored.rows;
  }

  /// Number of the expert's first value in such a tensor.
  static std::int64_t first_of_expert(const WeightPlace& place) {
    return *place.expert * place.stored.rows * place.stored.columns;
  }

  void read_whole(const WeightPlace& place, const FoundTensor& found, std::span<float> out) const {
    if (!has_rows_of_experts(place, found)) return reader_->read(found.name, place.expert, out);
    reader_->read_part(found.name, std::nullopt, first_of_expert(place), out);
  }

  /// Copies a block of the matrix that `place` stores.
  void copy_part_of(const WeightPlace& place, const WeightBlock& block, std::span<float> out) {
    const FoundTensor found = find(place.name).value();
    used_.insert(found.name);
    const auto read = [&](std::int64_t row, std::int64_t column, std::span<float> to) {
      const std::int64_t first = row * place.stored.columns + column;
      if (has_rows_of_experts(place, found)) {
        reader_->read_part(found.name, std::nullopt, first_of_expert(place) + first, to);
      } else {
        reader_->read_part(found.name, place.expert, first, to);
      }
    };
    copy_block(place, block, read, out);
  }

  /// A joined tensor's place with the rows that it has. A tensor with more than `room` elements, or
  /// none at all, is left to copy(), which refuses it.
  [[nodiscard]] WeightPlace sized_by_file(const WeightPlace& place, std::size_t room) const {
    const auto found = find(place.name);
    if (!found || !place.fits(found->shape)) {
      WeightPlace none = place;
      none.wanted.rows = 0;
      return none;
    }
    WeightPlace sized = place.sized_as(found->shape);
    const bool too_many = std::cmp_greater(sized.wanted.rows * sized.wanted.columns, room);
    if (too_many) throw_other_rows(found->name);
    return sized;
  }

  [[noreturn]] void throw_missing_rows(const Weight& weight, std::int64_t layer) const {
    throw_other_rows(places_of(weight, layer).back().name);
  }

  [[noreturn]] void throw_other_rows(const std::string& name) const {
    throw Error(ErrorCode::invalid_input,
                "the tensors of queries, keys and values do not have the weight's rows together",
                tensor_place(reader_->location(name), name), kMismatchHint);
  }

  /// Returns whether the weight is a sinusoidal position table that the file omits.
  [[nodiscard]] bool is_omitted_table(const Weight& weight) const {
    if (positions_ == PositionTable::trained) return false;
    const bool is_table = weight.path.ends_with("embeddings.position_embeddings.weight");
    return is_table && !find(places_of(weight, 0).front().name);
  }

  /// First alternative whose tensors exist with the right shape; else the first whose tensors
  /// exist.
  [[nodiscard]] PlaceList places_of(const Weight& weight, std::int64_t layer) const {
    std::vector<PlaceList> alternatives = places_.of(weight, layer);
    std::optional<std::size_t> first_present;
    for (std::size_t i = 0; i < alternatives.size(); ++i) {
      const WeightPlace& first = alternatives[i].front();
      const auto found = find(first.name);
      if (!found) continue;
      if (first.fits(found->shape)) return std::move(alternatives[i]);
      if (!first_present) first_present = i;
    }
    return std::move(alternatives[first_present.value_or(0)]);
  }

  /// Appends `from`, whose pages return to the system meanwhile, to `to`.
  static void move_bytes(std::span<const std::byte> from, AlignedVector<std::byte>& to) {
    to.reserve(to.size() + from.size());
    for_source_rows(from, SourceMemory::released, std::ssize(from), 1, [&](Range some) {
      to.insert(to.end(), from.begin() + some.begin, from.begin() + some.end);
    });
  }

  /// Returns whether the tensor is the weight, value by value.
  static bool is_whole(const WeightPlace& place) {
    return place.layout.stacking == detail::Stacking::alone &&
           place.layout.order == detail::StoredOrder::as_is &&
           place.stored.rows == place.wanted.rows && place.stored.columns == place.wanted.columns;
  }

  void copy(const WeightPlace& place, const std::string& path, std::span<float> out) {
    const auto found = find(place.name);
    if (!found) {
      throw Error(ErrorCode::invalid_input, "the tensor is missing",
                  tensor_place(reader_->location(place.name), place.name), kMismatchHint);
    }
    if (!place.fits(found->shape)) {
      throw Error(
          ErrorCode::invalid_input,
          fmt::format("has shape [{}], but {} is stored as [{}, {}]", fmt::join(found->shape, ", "),
                      path, place.stored.rows, place.stored.columns),
          tensor_place(reader_->location(found->name), found->name), kMismatchHint);
    }
    used_.insert(found->name);
    if (is_whole(place)) return read_whole(place, *found, out);
    AlignedVector<float> stored(static_cast<std::size_t>(place.stored.rows * place.stored.columns));
    read_whole(place, *found, stored);
    detail::copy_part(stored, place.layout, place.range, place.wanted, out);
  }

  PositionTable positions_;
  bool head_has_unit_rows_;
  detail::WeightPlaces places_;
  std::unique_ptr<WeightReader> reader_;
  std::set<std::string> used_;
  std::set<std::string> counted_;  ///< tensors whose bytes are counted
};

}  // namespace

AlignedVector<float> WeightSource::load_part(const Weight& weight,
                                             const std::vector<std::int64_t>& shape,
                                             std::int64_t layer,
                                             std::span<const WeightSlice> slices) {
  const AlignedVector<float> whole = load(weight, shape, layer);
  AlignedVector<float> values(elements_of(slices));
  for_each_block(slices, [&](const WeightBlock& block) {
    for (std::int64_t i = 0; i < block.rows; ++i) {
      std::copy_n(whole.data() + block.source_of(i), block.columns,
                  values.data() + block.target_of(i));
    }
  });
  return values;
}

std::unique_ptr<WeightSource> checkpoint_weights(const ModelSpec& spec, Checkpoint checkpoint) {
  return std::make_unique<StoredWeights>(spec, detail::read_checkpoint(std::move(checkpoint)));
}

std::unique_ptr<WeightSource> stored_weights(const ModelSpec& spec,
                                             std::unique_ptr<WeightReader> reader) {
  return std::make_unique<StoredWeights>(spec, std::move(reader));
}

}  // namespace headroom::measured
