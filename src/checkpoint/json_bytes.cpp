#include "json_bytes.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>

#include "headroom/error.h"
#include "json_text.h"

namespace headroom::checkpoint {
namespace {

[[noreturn]] void refuse_json(const std::string& file, const std::string& message) {
  throw Error(ErrorCode::invalid_input, message, file,
              "download or save the file again: it is damaged or of another format");
}

}  // namespace

nlohmann::json parse_object(std::span<const std::byte> bytes, const std::string& file) {
  // The parser would treat a zero byte as the end and ignore the rest.
  const auto zero = std::ranges::find(bytes, std::byte{0});
  if (zero != bytes.end()) refuse_json(file, "its JSON contains a zero byte");
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  nlohmann::json value = detail::parse_json(text, file);
  if (!value.is_object()) refuse_json(file, "its JSON is not an object");
  return value;
}

}  // namespace headroom::checkpoint
