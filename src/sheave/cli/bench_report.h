// What `sheave bench` found, in words and as JSON.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sheave/base/cpu_info.h"
#include "sheave/engine/benchmark.h"
#include "sheave/engine/build_info.h"

namespace sheave {

/// A benchmark's results and what they were measured on. model: as the caller
/// named it; file: where it lies.
struct BenchReport {
  std::string model;
  std::string file;
  BuildInfo build;
  CpuFeatures processor;
  int usable_cores = 0;
  std::vector<BenchmarkResult> results;
  uint64_t peak_rss_bytes = 0;
  uint64_t peak_mlx_bytes = 0;
};

/// What it ran on, an aligned table with a line for each test, the peak
/// memory, and a table for each profile.
std::string bench_table(const BenchReport& report);

/// The same as one object; "profile" only where there is one.
nlohmann::ordered_json bench_json(const BenchReport& report);

} // namespace sheave
