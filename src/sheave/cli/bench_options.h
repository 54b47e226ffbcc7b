// The flags of `sheave bench`.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "sheave/engine/benchmark.h"

namespace sheave {

struct BenchCommandOptions {
  std::string model;
  int threads = 0;
  bool exact = false;
  bool json = false;
  BenchmarkOptions benchmark;
};

/// Adds them to a command. `options` must live as long as it.
void add_bench_options(CLI::App& command, BenchCommandOptions& options);

} // namespace sheave
