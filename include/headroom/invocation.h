// The command line that asked for a report or made a machine file, which their JSON repeats.
#pragma once

#include <string>
#include <vector>

#include "headroom/user_setting.h"

namespace headroom {

struct Invocation {
  std::string version;                  ///< of headroom
  std::string commit;                   ///< of its sources; empty if unknown
  std::vector<std::string> arguments;   ///< the command first; empty: not from a command line
  std::vector<UserSetting> settings{};  ///< taken in place of options
  std::vector<std::string> left_out{};  ///< options without a value, such as "batch"
};

}  // namespace headroom
