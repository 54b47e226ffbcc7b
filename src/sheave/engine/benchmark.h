// Benchmark: how fast a model computes prompts and decodes, on random tokens
// and through the calls that answers take. It measures; words and JSON are the
// caller's.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "sheave/base/result.h"
#include "sheave/models/model.h"

namespace sheave {

/// What to measure. Each list is combined with `batches`; decode also with
/// `depths`, the tokens that every row's cache holds before. A 0 among
/// prefill_tokens or decode_tokens leaves that test out.
/// warmup: runs of each test that aren't counted. on_run: called after each
/// run with runs done and in all.
struct BenchmarkOptions {
  std::vector<int> prefill_tokens = {512};
  std::vector<int> decode_tokens = {128};
  std::vector<int> depths = {0};
  std::vector<int> batches = {1};
  int repetitions = 3;
  int warmup = 1;
  mx::Dtype cache_dtype = mx::float16;
  bool profile = false;
  std::function<void(int done, int total)> on_run;
};

enum class BenchmarkKind { kPrefill, kDecode };

/// One test: `tokens` a row, `batch` rows. depth is 0 for a prefill.
struct BenchmarkTest {
  BenchmarkKind kind = BenchmarkKind::kPrefill;
  int tokens = 0;
  int batch = 1;
  int depth = 0;

  bool operator==(const BenchmarkTest&) const = default;
};

/// "prefill" or "decode".
const char* benchmark_kind_name(BenchmarkKind kind);

/// One kind of operation's share of an average step; a step is one forward.
struct OperationTime {
  std::string name;
  double calls_per_step = 0;
  double microseconds_per_step = 0;
};

/// Where the time of a test's steps went. `operations`: Sheave's kernels, the
/// costliest first; what is left of microseconds_per_step went to MLX's own
/// operations, graph building, and choosing tokens.
struct StepProfile {
  int64_t steps = 0;
  double microseconds_per_step = 0;
  std::vector<OperationTime> operations;

  double microseconds_outside_kernels() const;
};

/// What a test took: the seconds of each repetition. `profile` is empty unless
/// asked for.
struct BenchmarkResult {
  BenchmarkTest test;
  std::vector<double> seconds;
  StepProfile profile;

  /// Tokens of all rows by time: of the median, slowest, fastest repetition.
  double tokens_per_second() const;
  double tokens_per_second_min() const;
  double tokens_per_second_max() const;
  /// Of the median repetition; meant for decode, where a step is a token of
  /// each row.
  double milliseconds_per_step() const;
};

/// The middle value, or the mean of the two. values: at least one.
double median(std::vector<double> values);

/// The tests that the options ask for, in the order they run: prefills, then
/// decodes from the shallowest depth given first on.
/// Fails with kInvalidArgument, naming the number, for negative tokens or
/// depths, batches or repetitions below 1, or when nothing is left to measure.
Result<std::vector<BenchmarkTest>> benchmark_tests(
    const BenchmarkOptions& options);

/// Runs the tests one after another on the calling thread.
///
/// Prefill: random prompts, empty caches; chunks of the size that Generator
/// takes, each holding a piece of every row's prompt; the head at each row's
/// last token. Decode: caches filled to the depth (not timed), then steps of
/// one token a row, each with logits, the most likely token fed back. Lengths
/// beyond the model's context are computed all the same: only their text would
/// be nonsense.
/// Fails as benchmark_tests() does.
Result<std::vector<BenchmarkResult>> run_benchmark(
    const Model& model,
    const BenchmarkOptions& options);

/// Most bytes that MLX's allocator held at once in this process.
uint64_t peak_mlx_bytes();

} // namespace sheave
