#include "sheave/engine/benchmark.h"

#include <mlx/memory.h>
#include <mlx/ops.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <random>
#include <span>

#include "sheave/base/check.h"
#include "sheave/engine/generator.h"
#include "sheave/kernels/logits/logits.h"
#include "sheave/kernels/profile.h"

namespace sheave {
namespace {

using Clock = std::chrono::steady_clock;

/// Any will do; fixed, so that runs compute the same.
constexpr uint32_t kTokenSeed = 1;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

double rate(const BenchmarkTest& test, double seconds) {
  return static_cast<double>(test.tokens) * test.batch / seconds;
}

/// B rows that advance together: their caches and how far they have come.
class Rows {
 public:
  Rows(const Model& model, mx::Dtype cache_dtype, int batch)
      : model_(model),
        batch_(batch),
        caches_(model.make_caches({.dtype = cache_dtype, .num_rows = batch})),
        random_(kTokenSeed) {}

  int64_t steps() const {
    return steps_;
  }

  /// Appends `count` random tokens to each row. Returns the hidden states of
  /// each row's last token, [B, hidden_size], computed. count: at least 1.
  mx::array prefill(int count);

  /// Appends the most likely next token to each row, and chooses the one after
  /// it. Begins with the last token of the prefill, or a random one.
  void decode();

  /// Forgets `count` tokens of each row; false where a cache can't.
  bool rewind(int count);

 private:
  std::vector<int32_t> random_tokens(int count);
  mx::array step(std::span<const int32_t> tokens, int tokens_per_row);

  const Model& model_;
  int batch_;
  LayerCaches caches_;
  std::mt19937 random_;
  std::vector<int32_t> next_; // the token to decode, for each row
  int position_ = 0;          // of the next token, the same in all rows
  int64_t steps_ = 0;
};

std::vector<int32_t> Rows::random_tokens(int count) {
  std::uniform_int_distribution<int32_t> id(0, model_.config().vocab_size - 1);
  std::vector<int32_t> tokens(static_cast<size_t>(count));
  std::generate(tokens.begin(), tokens.end(), [&] { return id(random_); });
  return tokens;
}

StepLayout equal_rows(int batch, int tokens_per_row, int first_position) {
  StepLayout layout;
  for (int row = 0; row < batch; ++row) {
    layout.rows.push_back(
        {.first_token = row * tokens_per_row,
         .num_tokens = tokens_per_row,
         .first_position = first_position});
  }
  return layout;
}

/// Rows `stride - 1`, `2 * stride - 1`, ... of hidden.
mx::array every_last(const mx::array& hidden, int stride) {
  return mx::slice(
      hidden,
      {stride - 1, 0},
      {hidden.shape(0), hidden.shape(1)},
      {stride, 1});
}

mx::array Rows::step(std::span<const int32_t> tokens, int tokens_per_row) {
  const mx::array ids(tokens.begin(), {static_cast<int>(tokens.size())});
  mx::array hidden = model_.forward(
      ids,
      equal_rows(batch_, tokens_per_row, position_),
      caches_);
  position_ += tokens_per_row;
  ++steps_;
  return hidden;
}

mx::array Rows::prefill(int count) {
  SHEAVE_CHECK(count > 0, "a prefill needs tokens");
  const int chunk = std::max(1, static_cast<int>(kPrefillChunk) / batch_);
  for (;;) {
    const int tokens_per_row = std::min(chunk, count);
    mx::array hidden =
        step(random_tokens(batch_ * tokens_per_row), tokens_per_row);
    hidden.eval();
    count -= tokens_per_row;
    if (count == 0) {
      return every_last(hidden, tokens_per_row);
    }
  }
}

void Rows::decode() {
  if (next_.empty()) {
    next_ = random_tokens(batch_);
  }
  mx::array logits = model_.logits(step(next_, 1));
  logits.eval();
  const auto vocabulary = static_cast<size_t>(logits.shape(1));
  const std::span<const float> values(logits.data<float>(), logits.size());
  for (size_t row = 0; row < next_.size(); ++row) {
    next_[row] =
        kernels::argmax_logit(values.subspan(row * vocabulary, vocabulary));
  }
}

bool Rows::rewind(int count) {
  if (!trimmable(caches_)) {
    return false;
  }
  trim(caches_, count);
  position_ -= count;
  return true;
}

/// The seconds and steps of one repetition.
struct Run {
  double seconds = 0;
  int64_t steps = 0;
};

/// The repetitions of one test.
class TestRun {
 public:
  TestRun(
      const Model& model,
      const BenchmarkOptions& options,
      const BenchmarkTest& test)
      : model_(model), options_(options), test_(test) {}

  Run run() {
    return test_.kind == BenchmarkKind::kPrefill ? prefill() : decode();
  }

 private:
  Rows empty_rows() const {
    return {model_, options_.cache_dtype, test_.batch};
  }

  Run prefill() const {
    Rows rows = empty_rows();
    discard_profile();
    const auto start = Clock::now();
    model_.logits(rows.prefill(test_.tokens)).eval();
    return {seconds_since(start), rows.steps()};
  }

  Run decode() {
    fill();
    discard_profile();
    const auto start = Clock::now();
    for (int i = 0; i < test_.tokens; ++i) {
      filled_->decode();
    }
    return {seconds_since(start), test_.tokens};
  }

  /// Caches at the test's depth: what the last repetition added is taken back,
  /// or they are filled anew.
  void fill() {
    if (filled_ != nullptr && filled_->rewind(test_.tokens)) {
      return;
    }
    filled_ = std::make_unique<Rows>(empty_rows());
    if (test_.depth > 0) {
      filled_->prefill(test_.depth).eval();
    }
  }

  /// What the filling of the caches left behind isn't the test's.
  void discard_profile() const {
    if (options_.profile) {
      kernels::take_profile();
    }
  }

  const Model& model_;
  const BenchmarkOptions& options_;
  const BenchmarkTest test_;
  std::unique_ptr<Rows> filled_;
};

/// Turns kernel timing on while it lives.
class ProfileScope {
 public:
  explicit ProfileScope(bool enabled) {
    kernels::enable_profile(enabled);
  }
  ~ProfileScope() {
    kernels::enable_profile(false);
  }
  ProfileScope(const ProfileScope&) = delete;
  ProfileScope& operator=(const ProfileScope&) = delete;
};

/// Adds up the profiles of a test's repetitions.
class ProfileSum {
 public:
  void add(const Run& run, const std::vector<kernels::KernelTime>& kernels) {
    steps_ += run.steps;
    seconds_ += run.seconds;
    for (const kernels::KernelTime& kernel : kernels) {
      OperationTime& sum = find(kernel.name);
      sum.calls_per_step += static_cast<double>(kernel.calls);
      sum.microseconds_per_step +=
          static_cast<double>(kernel.nanoseconds) / 1e3;
    }
  }

  StepProfile per_step() const {
    const auto steps = static_cast<double>(steps_);
    StepProfile profile = {
        .steps = steps_,
        .microseconds_per_step = seconds_ * 1e6 / steps,
        .operations = sums_};
    for (OperationTime& operation : profile.operations) {
      operation.calls_per_step /= steps;
      operation.microseconds_per_step /= steps;
    }
    std::ranges::sort(
        profile.operations,
        std::greater{},
        &OperationTime::microseconds_per_step);
    return profile;
  }

 private:
  OperationTime& find(const std::string& name) {
    const auto found = std::ranges::find(sums_, name, &OperationTime::name);
    return found != sums_.end() ? *found : sums_.emplace_back(name);
  }

  int64_t steps_ = 0;
  double seconds_ = 0;
  std::vector<OperationTime> sums_;
};

template <typename AfterRun>
BenchmarkResult measure(
    const Model& model,
    const BenchmarkOptions& options,
    const BenchmarkTest& test,
    const AfterRun& after_run) {
  TestRun runs(model, options, test);
  for (int i = 0; i < options.warmup; ++i) {
    runs.run();
    after_run();
  }
  BenchmarkResult result = {.test = test};
  ProfileSum profile;
  for (int i = 0; i < options.repetitions; ++i) {
    const Run run = runs.run();
    result.seconds.push_back(run.seconds);
    if (options.profile) {
      profile.add(run, kernels::take_profile());
    }
    after_run();
  }
  if (options.profile) {
    result.profile = profile.per_step();
  }
  return result;
}

Result<void>
check_at_least(int low, const std::vector<int>& values, const char* what) {
  for (const int value : values) {
    if (value < low) {
      return fail(
          ErrorCode::kInvalidArgument,
          std::string(what) + " of " + std::to_string(value) +
              " in a benchmark; at least " + std::to_string(low) +
              " is needed");
    }
  }
  return {};
}

Result<void> check(const BenchmarkOptions& options) {
  struct Limit {
    int low;
    const std::vector<int>& values;
    const char* what;
  };
  const std::vector<int> repetitions = {options.repetitions};
  const std::vector<int> warmup = {options.warmup};
  for (const Limit& limit :
       {Limit{0, options.prefill_tokens, "a prompt length"},
        Limit{0, options.decode_tokens, "a number of tokens to decode"},
        Limit{0, options.depths, "a depth"},
        Limit{1, options.batches, "a batch"},
        Limit{1, repetitions, "a number of repetitions"},
        Limit{0, warmup, "a number of warm-up runs"}}) {
    if (const auto ok = check_at_least(limit.low, limit.values, limit.what);
        !ok) {
      return ok;
    }
  }
  return {};
}

} // namespace

const char* benchmark_kind_name(BenchmarkKind kind) {
  return kind == BenchmarkKind::kPrefill ? "prefill" : "decode";
}

double StepProfile::microseconds_outside_kernels() const {
  double outside = microseconds_per_step;
  for (const OperationTime& operation : operations) {
    outside -= operation.microseconds_per_step;
  }
  return outside;
}

double BenchmarkResult::tokens_per_second() const {
  return rate(test, median(seconds));
}

double BenchmarkResult::tokens_per_second_min() const {
  return rate(test, std::ranges::max(seconds));
}

double BenchmarkResult::tokens_per_second_max() const {
  return rate(test, std::ranges::min(seconds));
}

double BenchmarkResult::milliseconds_per_step() const {
  return median(seconds) * 1e3 / test.tokens;
}

double median(std::vector<double> values) {
  SHEAVE_CHECK(!values.empty(), "the median of nothing");
  std::ranges::sort(values);
  const size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half]
                                : (values[half - 1] + values[half]) / 2;
}

Result<std::vector<BenchmarkTest>> benchmark_tests(
    const BenchmarkOptions& options) {
  if (const auto ok = check(options); !ok) {
    return tl::unexpected(ok.error());
  }
  std::vector<BenchmarkTest> tests;
  const auto add = [&](BenchmarkKind kind, int tokens, int depth) {
    for (const int batch : options.batches) {
      if (tokens > 0) {
        tests.push_back({kind, tokens, batch, depth});
      }
    }
  };
  for (const int tokens : options.prefill_tokens) {
    add(BenchmarkKind::kPrefill, tokens, 0);
  }
  for (const int depth : options.depths) {
    for (const int tokens : options.decode_tokens) {
      add(BenchmarkKind::kDecode, tokens, depth);
    }
  }
  if (tests.empty()) {
    return fail(ErrorCode::kInvalidArgument, "there is nothing to measure");
  }
  return tests;
}

Result<std::vector<BenchmarkResult>> run_benchmark(
    const Model& model,
    const BenchmarkOptions& options) {
  const auto tests = benchmark_tests(options);
  if (!tests) {
    return tl::unexpected(tests.error());
  }
  const ProfileScope profiling(options.profile);
  const int total =
      static_cast<int>(tests->size()) * (options.warmup + options.repetitions);
  int done = 0;
  const auto after_run = [&] {
    ++done;
    if (options.on_run) {
      options.on_run(done, total);
    }
  };
  std::vector<BenchmarkResult> results;
  for (const BenchmarkTest& test : *tests) {
    results.push_back(measure(model, options, test, after_run));
  }
  return results;
}

uint64_t peak_mlx_bytes() {
  return mx::get_peak_memory();
}

} // namespace sheave
