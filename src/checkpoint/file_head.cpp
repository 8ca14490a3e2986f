#include "file_head.h"

#include "headroom/error.h"

namespace headroom::checkpoint {

void refuse_partial(const std::string& file) {
  throw Error(ErrorCode::missing_resource, "only its beginning was read, for its header", file,
              "use the program, which reads whole files");
}

}  // namespace headroom::checkpoint
