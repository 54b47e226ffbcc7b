// The program's commands. Each function adds one to the command line; its
// callback runs it and leaves the exit code in `exit_code`, or throws.
#pragma once

#include <CLI/CLI.hpp>

namespace sheave {

void add_run_command(CLI::App& app, int& exit_code);
void add_inspect_command(CLI::App& app);
void add_perplexity_command(CLI::App& app);
void add_bench_command(CLI::App& app);
void add_tokenize_command(CLI::App& app);
void add_models_command(CLI::App& app);

/// The usual text for a MODEL argument.
inline constexpr const char* kModelHelp =
    "a model folder, a .gguf file, or a bundled model (sheave models)";

} // namespace sheave
