// Keys of Hugging Face's configs that change no figure of any family.
#pragma once

#include <string_view>

namespace headroom::detail {

[[nodiscard]] bool is_harmless(std::string_view key);

}  // namespace headroom::detail
