#include "sheave/cli/bench_options.h"

#include <vector>

#include "sheave/cli/commands.h"

namespace sheave {
namespace {

/// A flag of one or more numbers: "--prefill 128,512".
void add_list(
    CLI::App& command,
    const std::string& flag,
    std::vector<int>& values,
    const std::string& what) {
  command.add_option(flag, values, what)
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("N,N")
      ->check(CLI::Range(0, 1 << 24).description(""));
}

} // namespace

void add_bench_options(CLI::App& command, BenchCommandOptions& options) {
  BenchmarkOptions& benchmark = options.benchmark;
  command.add_option("MODEL", options.model, kModelHelp)->required();
  add_list(
      command,
      "--prefill",
      benchmark.prefill_tokens,
      "prompt lengths, 0 for none (default 512)");
  add_list(
      command,
      "--decode",
      benchmark.decode_tokens,
      "tokens to decode, 0 for none (default 128)");
  add_list(
      command,
      "--depth",
      benchmark.depths,
      "tokens that the caches hold before decoding (default 0)");
  add_list(
      command,
      "--batch",
      benchmark.batches,
      "rows computed together (default 1)");
  command.add_option("--reps", benchmark.repetitions)
      ->description("timed runs of each test (default 3)")
      ->check(CLI::Range(1, 10000));
  command.add_option("--warmup", benchmark.warmup)
      ->description("runs of each test before those (default 1)")
      ->check(CLI::Range(0, 10000));
  command.add_option("--threads", options.threads)
      ->description("kernel threads (default: the usable physical cores)")
      ->check(CLI::Range(1, 1024));
  command.add_flag("--exact", options.exact)
      ->description("float32 throughout, keys and values included");
  command.add_flag("--profile", benchmark.profile)
      ->description("add a table of the time by operation");
  command.add_flag("--json", options.json, "print one JSON object");
}

} // namespace sheave
