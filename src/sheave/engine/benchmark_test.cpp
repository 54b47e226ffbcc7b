#include "sheave/engine/benchmark.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "sheave/engine/language_model.h"
#include "sheave/kernels/runtime.h"

namespace sheave {
namespace {

namespace fs = std::filesystem;

/// A tiny checkpoint with random weights (tests/fixtures/golden).
LanguageModel tiny(const std::string& name) {
  return LanguageModel::load(
      fs::path(SHEAVE_SOURCE_DIR) / "tests" / "fixtures" / "golden" / name);
}

TEST(Median, IsTheMiddleOrTheMeanOfTheTwo) {
  EXPECT_DOUBLE_EQ(median({7}), 7);
  EXPECT_DOUBLE_EQ(median({3, 1}), 2);
  EXPECT_DOUBLE_EQ(median({9, 1, 4}), 4);
  EXPECT_DOUBLE_EQ(median({8, 2, 4, 1}), 3);
}

TEST(BenchmarkTests, CombineLengthsWithDepths) {
  const auto tests = benchmark_tests(
      {.prefill_tokens = {128, 512},
       .decode_tokens = {16},
       .depths = {0, 2048}});
  ASSERT_TRUE(tests);
  const std::vector<BenchmarkTest> expected = {
      {BenchmarkKind::kPrefill, 128, 1, 0},
      {BenchmarkKind::kPrefill, 512, 1, 0},
      {BenchmarkKind::kDecode, 16, 1, 0},
      {BenchmarkKind::kDecode, 16, 1, 2048}};
  EXPECT_EQ(*tests, expected);
}

TEST(BenchmarkTests, LeaveOutWhatHasNoTokens) {
  const auto tests =
      benchmark_tests({.prefill_tokens = {0}, .decode_tokens = {16}});
  ASSERT_TRUE(tests);
  EXPECT_EQ(tests->size(), 1U);
  EXPECT_FALSE(benchmark_tests({.prefill_tokens = {0}, .decode_tokens = {}}));
}

TEST(BenchmarkTests, RefuseWhatCannotBeMeasuredByItsNumber) {
  const std::vector<BenchmarkOptions> all = {
      {.prefill_tokens = {-7}},
      {.decode_tokens = {1, -7}},
      {.depths = {-7}},
      {.batches = {-7}},
      {.repetitions = -7},
      {.warmup = -7}};
  for (const BenchmarkOptions& options : all) {
    const auto tests = benchmark_tests(options);
    ASSERT_FALSE(tests);
    EXPECT_NE(tests.error().message.find("-7"), std::string::npos)
        << tests.error().message;
  }
}

TEST(BenchmarkResult, CountsTheTokensOfAllRows) {
  const BenchmarkResult result = {
      .test = {BenchmarkKind::kDecode, 10, 4, 0},
      .seconds = {0.5, 0.25, 1}};
  EXPECT_DOUBLE_EQ(result.tokens_per_second(), 80);
  EXPECT_DOUBLE_EQ(result.tokens_per_second_min(), 40);
  EXPECT_DOUBLE_EQ(result.tokens_per_second_max(), 160);
  EXPECT_DOUBLE_EQ(result.milliseconds_per_step(), 50);
}

class BenchmarkOf : public ::testing::TestWithParam<const char*> {};

// The sliding window fills up on the way, so its caches can't be rewound.
TEST_P(BenchmarkOf, RunsEveryTestAsOftenAsAsked) {
  const LanguageModel model = tiny(GetParam());
  int last_done = 0;
  int last_total = 0;
  const auto results = run_benchmark(
      model.model(),
      {.prefill_tokens = {1, 40},
       .decode_tokens = {3},
       .depths = {0, 60},
       .repetitions = 3,
       .warmup = 1,
       .cache_dtype = mx::float32,
       .on_run = [&](int done, int total) {
         last_done = done;
         last_total = total;
       }});
  ASSERT_TRUE(results) << results.error().message;
  ASSERT_EQ(results->size(), 4U);
  for (const BenchmarkResult& result : *results) {
    EXPECT_EQ(result.seconds.size(), 3U);
    EXPECT_GT(result.tokens_per_second_min(), 0);
    EXPECT_EQ(result.profile.steps, 0);
  }
  EXPECT_EQ(last_done, 16);
  EXPECT_EQ(last_total, 16);
}

INSTANTIATE_TEST_SUITE_P(
    Families,
    BenchmarkOf,
    ::testing::Values("llama", "gemma3_text", "ministral_swa"));

TEST(Benchmark, ProfilesTheStepsThatWereTimed) {
  const LanguageModel model = tiny("llama");
  const auto results = run_benchmark(
      model.model(),
      {.prefill_tokens = {600}, // two chunks
       .decode_tokens = {5},
       .depths = {20},
       .repetitions = 2,
       .profile = true});
  ASSERT_TRUE(results) << results.error().message;
  EXPECT_EQ(results->at(0).profile.steps, 4);
  const StepProfile& decode = results->at(1).profile;
  EXPECT_EQ(decode.steps, 10);
  EXPECT_GT(decode.microseconds_outside_kernels(), 0);
  if (kernels::use_reference()) {
    EXPECT_TRUE(decode.operations.empty());
    return;
  }
  ASSERT_FALSE(decode.operations.empty());
  for (size_t i = 0; i < decode.operations.size(); ++i) {
    const OperationTime& operation = decode.operations[i];
    // The same calls in every step: neither warm-up nor filling is in it.
    EXPECT_EQ(
        operation.calls_per_step,
        static_cast<int>(operation.calls_per_step))
        << operation.name;
    if (i > 0) {
      EXPECT_LE(
          operation.microseconds_per_step,
          decode.operations[i - 1].microseconds_per_step);
    }
  }
}

} // namespace
} // namespace sheave
