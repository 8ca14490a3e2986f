// The commands of the page for browsers: those that count and predict. None runs a model.
#include "commands.h"

namespace headroom::cli {

void add_commands(Command root, int& status) {
  add_analyze(root);
  add_explain(root, status);
  add_diff(root);
  add_inspect(root, status);
  add_fit(root, status);
  add_plan(root, status);
  add_serve(root, status);
  add_sweep(root);
  add_train_time(root);
  add_machines(root);
  add_presets(root);
}

}  // namespace headroom::cli
