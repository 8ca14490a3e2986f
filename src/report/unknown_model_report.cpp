// UnknownModel -> Document and JSON (reports/unknown_model.schema.json).
//
//   my-model    architecture unknown: parameters and bytes only
//   type        acme · AcmeForCausalLM · closest known types: arcee
//   parameters  124,439,808
//   weights     237.35 MiB · 16.00 bits per weight · 1 file · 160 tensors
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "describe.h"
#include "schema_version.h"
#include "units.h"
#include "with_noun.h"
#include "writers.h"

namespace headroom::detail {
namespace {

constexpr const char* kStatus = "architecture unknown: parameters and bytes only";

std::string type_text(const UnknownModel& model) {
  std::string text = model.model_type.empty() ? "not stated" : model.model_type;
  if (!model.architecture.empty()) text += " · " + model.architecture;
  if (model.nearest_types.empty()) return text;
  return text + fmt::format(" · closest known types: {}", fmt::join(model.nearest_types, ", "));
}

std::string weights_text(const UnknownModel& model) {
  const std::string bytes = describe_bytes(model.weight_bytes());
  if (model.index) {
    const std::string missing =
        model.index->absent_files == 0
            ? "its pickles are not read"
            : fmt::format("{} of its files missing", model.index->absent_files);
    return fmt::format("{} according to the index · {}", bytes, missing);
  }
  const auto bits = model.files->weights.bits_per_value();
  return fmt::format("{} · {} bits per weight · {} · {}", bytes,
                     bits ? fmt::format("{:.2f}", *bits) : "–",
                     with_noun(static_cast<Integer>(model.files->files), "file"),
                     with_noun(static_cast<Integer>(model.files->weights.tensors), "tensor"));
}

std::string flops_text(const UnknownModelEstimates& estimates) {
  if (!estimates.matrix_flops) return "–";
  return fmt::format("{} FLOP = 2·N·b·s, N = {}", with_separators(*estimates.matrix_flops),
                     with_separators(*estimates.parameters));
}

std::string cache_text(const UnknownModelEstimates& estimates) {
  const StandardSizes& sizes = estimates.sizes;
  return fmt::format("{} = 2·l·b·(p + s)·g·k·{} B, l = {}, g = {}, k = {}",
                     describe_bytes(estimates.kv_cache_bytes), bytes_of(estimates.kv_dtype),
                     sizes.num_hidden_layers, sizes.num_key_value_heads, sizes.head_dim);
}

void add_estimates(const UnknownModel& model, Document& document) {
  document.blocks.emplace_back(Heading{"Estimates for a plain decoder"});
  if (!model.estimates) {
    document.add_line("none", model.why_no_estimates + " is missing");
    return;
  }
  const UnknownModelEstimates& estimates = *model.estimates;
  document.add_line(
      "workload", fmt::format("batch {} · seq {} · past {} · {} KV-cache", estimates.batch_size,
                              estimates.seq_len, estimates.past_len, name_of(estimates.kv_dtype)));
  document.add_line("matrix FLOPs", flops_text(estimates));
  document.add_line("KV-cache", cache_text(estimates));
  document.add_line("KV-cache per token",
                    with_separators(estimates.kv_cache_bytes_per_token) + " B");
  document.add_line("assumed", "every token uses every parameter; attention's FLOPs are left out");
  document.add_line("", "every layer keeps keys and values of full attention");
  document.add_line("where", "N parameters · b batch_size · s seq_len · p past_len");
  document.add_line("", "l num_hidden_layers · g num_key_value_heads · k head_dim");
}

Json optional_json(const std::optional<Integer>& value) {
  return value ? json_integer(*value) : Json(nullptr);
}

Json estimates_json(const UnknownModel& model) {
  if (!model.estimates) return nullptr;
  const UnknownModelEstimates& estimates = *model.estimates;
  return {{"assumption",
           "a plain decoder: full attention in every layer, every parameter used by "
           "every token, attention's own FLOPs left out"},
          {"num_hidden_layers", estimates.sizes.num_hidden_layers},
          {"num_key_value_heads", estimates.sizes.num_key_value_heads},
          {"head_dim", estimates.sizes.head_dim},
          {"batch_size", estimates.batch_size},
          {"seq_len", estimates.seq_len},
          {"past_len", estimates.past_len},
          {"kv_dtype", name_of(estimates.kv_dtype)},
          {"parameters", optional_json(estimates.parameters)},
          {"matrix_flops", optional_json(estimates.matrix_flops)},
          {"kv_cache_bytes", json_integer(estimates.kv_cache_bytes)},
          {"kv_cache_bytes_per_token", json_integer(estimates.kv_cache_bytes_per_token)}};
}

Json text_or_null(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

}  // namespace

Document to_type_table(const UnknownModel& model) {
  Document document;
  if (model.files) document.blocks.emplace_back(storage_type_table(*model.files));
  if (model.files) return document;
  // The index gives one sum.
  Table table;
  table.columns = {words_column("type", "Type"), number_column("tensors", "Tensors"),
                   number_column("values", "Values"), number_column("bytes", "Bytes")};
  const std::optional<Integer> parameters = model.parameters();
  table.rows.push_back(
      {"total", Integer{model.index->tensors}, cell_or_none(parameters), model.weight_bytes()});
  table.total_rows = 1;
  document.blocks.emplace_back(std::move(table));
  return document;
}

Document to_document(const UnknownModel& model, Detail detail) {
  Document document;
  document.add_subject(model.path, kStatus);
  document.add_line("type", type_text(model));
  const std::optional<Integer> parameters = model.parameters();
  document.add_line("parameters", parameters
                                      ? with_separators(*parameters)
                                      : "not stated by the index, and the shards are not read");
  document.add_line("weights", weights_text(model));
  if (model.files && detail == Detail::operators) {
    document.blocks.emplace_back(component_table(*model.files, model.files->components.size()));
  }
  document.blocks.emplace_back(Heading{"Storage types"});
  for (Block& block : to_type_table(model).blocks) document.blocks.push_back(std::move(block));
  add_estimates(model, document);
  return document;
}

Json to_json(const UnknownModel& model) {
  Json json;
  json["schema_version"] = kSchemaVersion;
  json["schema"] = "unknown_model.schema.json";
  json["path"] = model.path;
  json["status"] = kStatus;
  json["complete"] = false;
  json["model_type"] = text_or_null(model.model_type);
  json["architecture"] = text_or_null(model.architecture);
  json["nearest_model_types"] = model.nearest_types;
  json["parameters"] = optional_json(model.parameters());
  json["weight_bytes"] = json_integer(model.weight_bytes());
  json["files"] = model.files ? Json(model.files->files) : Json(nullptr);
  json["absent_files"] = model.index ? model.index->absent_files : 0;
  json["all"] = model.files ? totals_json(model.files->all) : Json(nullptr);
  json["types"] = model.files ? types_json(*model.files) : Json::array();
  json["estimates"] = estimates_json(model);
  json["missing_key"] = text_or_null(model.estimates ? std::string() : model.why_no_estimates);
  return json;
}

}  // namespace headroom::detail
