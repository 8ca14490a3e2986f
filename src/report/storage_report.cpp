#include "storage_report.h"

#include <fmt/format.h>

#include <optional>
#include <vector>

#include "describe.h"
#include "headroom/storage.h"

namespace headroom::detail {
namespace {

/// Of parameters and buffers, as the bytes.
std::optional<double> bits_per_weight(const StoredWeights& storage, Integer bytes) {
  Integer values = 0;
  for (const StorageGroup& group : storage.groups) values += group.parameters;
  if (values == 0) return std::nullopt;
  return 8 * static_cast<double>(bytes) / static_cast<double>(values);
}

Json groups_json(const std::vector<StorageGroup>& groups) {
  Json rows = Json::array();
  for (const StorageGroup& group : groups) {
    rows.push_back({{"format", group.format},
                    {"parameters", json_integer(group.parameters)},
                    {"bytes", json_integer(group.bytes)}});
  }
  return rows;
}

/// Tensors of the files that are no weights of the model, from a hundredth of their bytes on: a
/// prediction layer that a reader would miss in the size of the files.
std::string describe_extras(const StoredWeights& storage, Integer bytes) {
  constexpr std::int64_t kLeastShare = 100;
  std::string text;
  for (const StorageGroup& extra : storage.extras) {
    if (checked_multiply(extra.bytes, kLeastShare) < bytes) continue;
    text += fmt::format(" · not counted: {}, {}", describe_bytes(extra.bytes), extra.format);
  }
  return text;
}

std::string describe_weights(const std::optional<WeightForm>& form) {
  return form ? name_of(*form) : "as stored";
}

std::string describe_weights(const PlanQuery& query) {
  switch (query.purpose) {
    case Purpose::serve:
      return describe_weights(query.weights);
    case Purpose::train:
      break;
  }
  return fmt::format("by the {} recipe", info(query.states.recipe).name);
}

}  // namespace

std::string describe_storage(const StoredWeights& storage, Integer bytes) {
  std::string text = describe_bytes(bytes);
  if (const auto bits = bits_per_weight(storage, bytes)) {
    text += fmt::format(" · {:.2f} bits per weight", *bits);
  }
  if (!storage.origin.empty()) text += fmt::format(" · {}", storage.origin);
  return text + describe_extras(storage, bytes);
}

Json to_json(const StoredWeights& storage, Integer bytes) {
  Json json;
  json["bytes"] = json_integer(bytes);
  json["bits_per_weight"] = json_or_null(bits_per_weight(storage, bytes));
  json["origin"] = storage.origin;
  json["groups"] = groups_json(storage.groups);
  json["extras"] = groups_json(storage.extras);
  return json;
}

std::string describe_types(const Workload& workload, std::string_view cache_type) {
  std::string text =
      fmt::format("weights {} · activations {} · arithmetic {}", describe_weights(workload.weights),
                  name_of(workload.dtype), name_of(workload.arithmetic_type()));
  if (!cache_type.empty()) text += fmt::format(" · KV-cache {}", cache_type);
  return text;
}

std::string describe_communication(const PlanQuery& query) {
  std::string text(name_of(query.dtype));
  const bool trains = query.purpose == Purpose::train;
  const std::optional<DType> dispatch =
      trains ? info(query.states.recipe).dispatch : std::optional<DType>{};
  if (dispatch) text += fmt::format(" ({} to experts)", name_of(*dispatch));
  return text;
}

std::string describe_types(const PlanQuery& query) {
  std::string text =
      fmt::format("weights {} · activations {} · arithmetic {}", describe_weights(query),
                  name_of(query.dtype), name_of(query.arithmetic.value_or(query.dtype)));
  if (query.purpose == Purpose::serve) {
    text += fmt::format(" · KV-cache {}", name_of(query.kv_dtype));
  }
  return text + fmt::format(" · communication {}", describe_communication(query));
}

}  // namespace headroom::detail
