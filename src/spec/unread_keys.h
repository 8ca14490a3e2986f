// Keys of a config that its reader did not read, judged by what they can change.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace headroom::detail {

enum class KeyEffect {
  none,        ///< known to change no figure, or switched off
  unlikely,    ///< unknown, and its name does not suggest a size or an operator
  structural,  ///< may change sizes or operators
};

/// The effect of a key of the object `owner` that the family's reader did not read.
[[nodiscard]] KeyEffect effect_of_unread(std::string_view key, const nlohmann::json& owner);

/// A key that was not read.
struct UnreadKey {
  std::string pointer;  ///< RFC 6901, from the root of the config
  std::string value;    ///< as in the file, cut off if it is long
};

/// The unread keys of a config and of its nested objects, and sizes that they leave out.
struct UnreadKeys {
  std::vector<UnreadKey> unlikely;
  std::vector<UnreadKey> structural;
  std::vector<std::string> filled;  ///< "num_experts 128": sizes that the class fills in
};

/// Throws Error{invalid_input} that lists all structural keys, if there are any.
void require_no_structural(const UnreadKeys& unread, const std::string& file);

}  // namespace headroom::detail
