#include "sheave/cli/bench_options.h"

#include <gtest/gtest.h>

namespace sheave {
namespace {

BenchCommandOptions parse(const std::string& line) {
  CLI::App app;
  BenchCommandOptions options;
  add_bench_options(app, options);
  app.parse(line);
  return options;
}

TEST(BenchOptions, HaveDefaults) {
  const auto benchmark = parse("smollm2").benchmark;
  EXPECT_EQ(benchmark.prefill_tokens, std::vector<int>{512});
  EXPECT_EQ(benchmark.decode_tokens, std::vector<int>{128});
  EXPECT_EQ(benchmark.depths, std::vector<int>{0});
  EXPECT_EQ(benchmark.batches, std::vector<int>{1});
  EXPECT_EQ(benchmark.repetitions, 3);
  EXPECT_EQ(benchmark.warmup, 1);
}

TEST(BenchOptions, ReadLists) {
  const auto options = parse("--batch 1,8 --depth 0,2048,8192 m --prefill=7");
  EXPECT_EQ(options.model, "m");
  EXPECT_EQ(options.benchmark.batches, (std::vector<int>{1, 8}));
  EXPECT_EQ(options.benchmark.depths, (std::vector<int>{0, 2048, 8192}));
  EXPECT_EQ(options.benchmark.prefill_tokens, std::vector<int>{7});
}

TEST(BenchOptions, RefuseWhatIsNoNumber) {
  for (const char* line :
       {"m --batch x",
        "m --batch 1;8",
        "m --depth -1",
        "m --prefill 1.5",
        "m --reps 0",
        "m --prefill"}) {
    EXPECT_THROW(parse(line), CLI::ParseError) << line;
  }
}

} // namespace
} // namespace sheave
