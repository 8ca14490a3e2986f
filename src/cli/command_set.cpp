// The commands of the program.
#include "commands.h"

namespace headroom::cli {

void add_commands(Command root, int& status) {
  add_analyze(root);
  add_explain(root, status);
  add_diff(root);
  add_measure(root);
  add_compare(root, status);
  add_complexity(root);
  add_inspect(root, status);
  add_fit(root, status);
  add_plan(root, status);
  add_serve(root, status);
  add_sweep(root);
  add_train_time(root);
  add_calibrate(root, status);
  add_machines(root);
  add_system(root);
  add_models(root);
  add_presets(root);
  add_completion(root);
  add_manual(root);
}

}  // namespace headroom::cli
