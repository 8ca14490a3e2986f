// Readers shared by the JSON of predictions and of measurements. Internal to src/import.
#pragma once

#include <initializer_list>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "headroom/compare.h"
#include "json_fields.h"

namespace headroom::detail {

/// The members of a document. Throws Error{invalid_input} for another schema version.
[[nodiscard]] JsonFields versioned_fields(const nlohmann::json& json, const std::string& where);

/// Model and workload of `document`; phase and new tokens are members of `run`.
[[nodiscard]] RunIdentity read_identity(const JsonFields& document, const JsonFields& run);

/// Stores the member `key`, if there is one, as an amount of `run`.
void store_count(const JsonFields& fields, const char* key, Quantity quantity, ComparedRun& run);
void store_time(const JsonFields& fields, const char* key, Quantity quantity, ComparedRun& run);

/// Reads path and time of every entry of "ops".
void read_operators(const JsonFields& holder, ComparedRun& run);
[[nodiscard]] double sum_of_operator_times(const ComparedRun& run);

/// Throws Error{invalid_input} unless the member equals `expected` to a millionth of `scale`.
void require_equal(const JsonFields& fields, const char* key, double expected, double scale);

/// Throws Error{invalid_input} unless every key is a count.
void require_counts(const JsonFields& fields, std::initializer_list<const char*> keys);
/// Throws Error{invalid_input} if a field is missing that every model's workload has.
void require_identity(const JsonFields& document, const RunIdentity& identity);
/// Throws Error{invalid_input} if a generation lacks its TTFT, or its TPOT with two or more tokens.
void require_token_times(const JsonFields& fields, const RunIdentity& identity);

}  // namespace headroom::detail
