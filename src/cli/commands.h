// One function a command: adds it to the application; the command runs when it was parsed.
#pragma once

#include <CLI/CLI.hpp>

namespace headroom::cli {

void add_analyze(CLI::App& app);
void add_explain(CLI::App& app);
void add_diff(CLI::App& app);
void add_measure(CLI::App& app);
/// `status` becomes 1 when a verdict fails.
void add_compare(CLI::App& app, int& status);
void add_complexity(CLI::App& app);
/// `status` becomes 1 when something is left unexplained.
void add_inspect(CLI::App& app, int& status);
void add_calibrate(CLI::App& app);
void add_machines(CLI::App& app);
void add_fit(CLI::App& app);
void add_plan(CLI::App& app);
void add_sweep(CLI::App& app);
void add_presets(CLI::App& app);
/// `root` is what the scripts complete.
void add_completion(CLI::App& root);

}  // namespace headroom::cli
