#include <CLI/CLI.hpp>
#include <memory>

#include "sheave/base/memory.h"
#include "sheave/cli/bench_options.h"
#include "sheave/cli/bench_report.h"
#include "sheave/cli/command_support.h"
#include "sheave/cli/commands.h"
#include "sheave/cli/progress_bar.h"
#include "sheave/engine/model_path.h"

namespace sheave {
namespace {

std::vector<BenchmarkResult> measure(const BenchCommandOptions& options) {
  BenchmarkOptions benchmark = options.benchmark;
  benchmark.cache_dtype = cache_options(options.exact).dtype;
  value_or_throw(benchmark_tests(benchmark)); // refused before it loads
  configure_threads(options.threads);
  const LanguageModel model =
      load_model(options.model, arithmetic(options.exact));
  ProgressBar bar("measuring", stderr);
  benchmark.on_run = [&](int done, int total) {
    bar.update(static_cast<uint64_t>(done), static_cast<uint64_t>(total));
  };
  return value_or_throw(run_benchmark(model.model(), benchmark));
}

void bench(const BenchCommandOptions& options) {
  BenchReport report = {
      .model = options.model,
      .file = value_or_throw(find_model(options.model)).string(),
      .results = measure(options)};
  report.build = build_info();
  report.processor = cpu_features();
  report.usable_cores = usable_cores();
  report.peak_rss_bytes = peak_rss_bytes();
  report.peak_mlx_bytes = peak_mlx_bytes();
  write_stdout(
      options.json ? bench_json(report).dump() + "\n" : bench_table(report));
}

} // namespace

void add_bench_command(CLI::App& app) {
  auto options = std::make_shared<BenchCommandOptions>();
  CLI::App* command = app.add_subcommand(
      "bench",
      "Measure the speed of prompts and of decoding");
  add_bench_options(*command, *options);
  command->footer(
      "Every combination is measured: prompts with each batch, decoding with "
      "each depth and batch.\n"
      "  sheave bench smollm2\n"
      "  sheave bench smollm2 --prefill 0 --depth 0,2048,8192 --profile");
  command->callback([options] { bench(*options); });
}

} // namespace sheave
