#include "model_reading.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "headroom/error.h"

namespace headroom::cli {

namespace {

void refuse_unread_keys(const Model& model, const std::string& name) {
  const std::vector<std::string>& keys = model.spec.unread_keys;
  if (keys.empty()) return;
  throw Error(ErrorCode::invalid_input,
              fmt::format("{} key{} unknown, which --strict refuses: {}", keys.size(),
                          keys.size() == 1 ? " is" : "s are", fmt::join(keys, ", ")),
              model.source.empty() ? name : model.source,
              "without --strict they are taken to change no figure, with a note");
}

}  // namespace

Model ModelReading::load(const std::string& name) const {
  Model model = load_model(name);
  if (strict) refuse_unread_keys(model, name);
  return model;
}

void add_reading_options(Command command, ModelReading& reading) {
  command.add_flag("--strict", reading.strict,
                   "Refuse a model whose config has any key that headroom does not know");
}

}  // namespace headroom::cli
