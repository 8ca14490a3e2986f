// Searches in the text of a report.
#pragma once

#include <string>
#include <string_view>

namespace headroom::test {

inline bool prints(const std::string& text, std::string_view words) {
  return text.find(words) != std::string::npos;
}

}  // namespace headroom::test
