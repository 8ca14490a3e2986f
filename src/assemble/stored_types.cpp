#include <fmt/format.h>

#include <utility>

#include "headroom/error.h"
#include "headroom/report.h"

namespace headroom {

Model with_stored_types(Model model, std::vector<std::string>& notes) {
  if (!model.name_note.empty()) notes.push_back(model.name_note);
  try {
    return with_file_types(model);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::internal) throw;
    notes.push_back(fmt::format("the weights next to the config cannot be read: {}", error.what()));
    model.weight_files.clear();
  }
  return model;
}

}  // namespace headroom
