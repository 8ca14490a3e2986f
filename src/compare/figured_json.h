// What the JSON of predictions and of measurements have in common. Internal to src/compare.
#pragma once

#include <initializer_list>

#include "headroom/compare.h"
#include "json_fields.h"

namespace headroom::detail {

/// The document's members. Throws Error{invalid_input} where it is of another schema version.
[[nodiscard]] JsonFields versioned_fields(const nlohmann::json& json, const std::string& where);

/// What was asked: `run` has the phase and how many tokens were generated.
[[nodiscard]] RunIdentity read_identity(const JsonFields& document, const JsonFields& run);

/// The member `key`, if it is there, becomes an amount of `figured`.
void store_count(const JsonFields& fields, const char* key, Quantity quantity, Figured& figured);
void store_time(const JsonFields& fields, const char* key, Quantity quantity, Figured& figured);

/// Paths and times of the list "ops".
void read_operators(const JsonFields& holder, Figured& figured);
[[nodiscard]] double sum_of_times(const Figured& figured);

/// Refuses a figure that is not what others in the file make it, to a millionth of `scale`.
void require_equal(const JsonFields& fields, const char* key, double expected, double scale);

/// Refuses a file that lacks the count of one of these.
void require_counts(const JsonFields& fields, std::initializer_list<const char*> keys);
/// Refuses a document that does not say what was asked, but for what only some models have.
void require_identity(const JsonFields& document, const RunIdentity& identity);
/// Refuses a generation without its TTFT, or its TPOT where there is one.
void require_token_times(const JsonFields& fields, const RunIdentity& identity);

}  // namespace headroom::detail
