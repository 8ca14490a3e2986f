#include "default_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace headroom::detail {
namespace {

/// Reports whose header shows the value.
enum class Header { any, planner, training, video, none };

/// An option, and where the JSON report has its value.
struct DefaultPlace {
  const char* option;
  const char* pointer;
  Header header = Header::any;
};

/// In the order of headers. An option may have several places: the first that exists counts.
constexpr DefaultPlace kPlaces[] = {
    {"study", "/study", Header::none},
    {"what", "/what"},
    {"phase", "/workload/phase"},
    {"batch", "/workload/batch_size"},
    {"image-size", "/workload/sample"},
    {"seq", "/workload/seq_len"},
    {"seq", "/lengths"},
    {"prompt", "/workload/seq_len"},
    {"enc-seq", "/workload/enc_seq_len"},
    {"past", "/workload/past_len"},
    {"images", "/workload/images/count"},
    {"image-size", "/workload/images"},
    {"frames", "/workload/sample/frames", Header::video},
    {"audio-seconds", "/workload/audio/seconds"},
    {"global-tokens", "/workload/global_tokens"},
    {"new-tokens", "/workload/new_tokens"},
    {"requests", "/workload/traffic/requests"},
    {"input-tokens", "/workload/traffic/input_tokens"},
    {"output-tokens", "/workload/traffic/output_tokens"},
    {"seed", "/workload/traffic/seed", Header::none},
    {"weights", "/workload/weights", Header::planner},
    {"dtype", "/workload/dtype"},
    {"arithmetic", "/workload/arithmetic", Header::planner},
    {"kv-dtype", "/workload/kv_dtype", Header::planner},
    {"attention", "/workload/attention"},
    {"logits", "/workload/logits", Header::none},
    {"latent", "/workload/latent_attention", Header::none},
    {"recompute", "/workload/recompute", Header::training},
    {"kernels", "/workload/kernels", Header::training},
    {"optimizer", "/training/optimizer"},
    {"count", "/machine/count"},
    {"threads", "/context/threads"},
    {"threads", "/time/threads"},
    {"convention", "/convention/name", Header::none},
    {"availability", "/availability", Header::none},
};

/// The value as an option takes it; empty if the report has none.
std::string option_value(const Json& value) {
  if (value.is_null() || value == 0) return {};
  if (value.is_string()) return value.get<std::string>();
  if (value.is_array() && !value.empty()) {
    return fmt::format("{}..{}", value.front().dump(), value.back().dump());
  }
  if (!value.is_object()) return value.dump();
  return fmt::format("{}x{}", value.at("height").dump(), value.at("width").dump());
}

/// Both models of a comparison have the workload that the command line asks for.
const Json& holder_of(const Json& report) { return report.contains("a") ? report["a"] : report; }

bool is_shown(const DefaultPlace& place, const Json& report) {
  const Json::json_pointer communication("/workload/communication");
  const Json::json_pointer phase("/workload/phase");
  switch (place.header) {
    case Header::any:
      return true;
    case Header::planner:
      return report.contains(communication);
    case Header::training:
      return report.contains(phase) && report[phase] == "train";
    case Header::video:
      return report[Json::json_pointer(place.pointer)] > 1;
    case Header::none:
      break;
  }
  return false;
}

/// The size of an image determines the number of latent tokens.
bool is_derived(const DefaultPlace& place, const Json& report) {
  return std::string_view(place.option) == "seq" &&
         report.contains(Json::json_pointer("/workload/sample"));
}

struct FoundDefault {
  const DefaultPlace* place;
  std::string value;
};

std::vector<FoundDefault> find_defaults(const Json& report, const Invocation& invocation) {
  std::vector<FoundDefault> found;
  for (const DefaultPlace& place : kPlaces) {
    const bool left_out =
        std::ranges::find(invocation.left_out, place.option) != invocation.left_out.end();
    const Json::json_pointer pointer(place.pointer);
    if (!left_out || !report.contains(pointer) || is_derived(place, report)) continue;
    std::string value = option_value(report[pointer]);
    const bool is_new =
        found.empty() || std::string_view(found.back().place->option) != place.option;
    if (is_new && !value.empty()) found.push_back({&place, std::move(value)});
  }
  return found;
}

}  // namespace

std::vector<UserSetting> defaults_of(const Json& report, const Invocation& invocation) {
  std::vector<UserSetting> defaults;
  for (const FoundDefault& one : find_defaults(holder_of(report), invocation)) {
    defaults.push_back({one.place->option, one.value, "default"});
  }
  return defaults;
}

std::string describe_defaults(const Json& report, const Invocation& invocation) {
  const Json& holder = holder_of(report);
  std::string text;
  for (const FoundDefault& one : find_defaults(holder, invocation)) {
    if (!is_shown(*one.place, holder)) continue;
    text += fmt::format("{}--{}", text.empty() ? "" : " · ", one.place->option);
  }
  return text;
}

}  // namespace headroom::detail
