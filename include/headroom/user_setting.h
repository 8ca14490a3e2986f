// Values that a user sets once for options that a command line leaves out.
#pragma once

#include <string>

namespace headroom {

/// A value and its origin.
struct UserSetting {
  std::string name;  ///< its key in the configuration file, such as "machine"
  std::string value;
  std::string source;  ///< "HEADROOM_MACHINE", or the file's path
};

}  // namespace headroom
