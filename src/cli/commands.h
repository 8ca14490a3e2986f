// One function per command: adds it to `root` with its options, and runs it once it is parsed.
#pragma once

#include "command_line.h"

namespace headroom::cli {

void add_analyze(Command root);
/// Sets `status` to 1 if a claim has no explanation.
void add_explain(Command root, int& status);
void add_diff(Command root);
void add_measure(Command root);
/// Sets `status` to 1 if a verdict fails.
void add_compare(Command root, int& status);
void add_complexity(Command root);
/// Sets `status` to 1 if a tensor or weight is unexplained.
void add_inspect(Command root, int& status);
/// Sets `status` to 1 if the profile is not stored.
void add_calibrate(Command root, int& status);
void add_machines(Command root);
/// Sets `status` to 1 if the plan does not fit.
void add_fit(Command root, int& status);
/// Sets `status` to 1 if no plan fits.
void add_plan(Command root, int& status);
/// Sets `status` to 1 if the targets are missed.
void add_serve(Command root, int& status);
void add_sweep(Command root);
void add_train_time(Command root);
void add_models(Command root);
void add_system(Command root);
void add_presets(Command root);
void add_completion(Command root);
/// Hidden: writes the manuals, for packages and docs/reference.md.
void add_manual(Command root);

/// Adds all commands of this build; one whose verdict fails sets `status` to 1.
void add_commands(Command root, int& status);

}  // namespace headroom::cli
