#include "sheave/cli/bench_report.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

namespace sheave {
namespace {

BenchReport report() {
  return {
      .model = "smollm2",
      .file = "folder/model.gguf",
      .build =
          {.version = "1.2.3",
           .mlx_version = "0.32.4",
           .device = "cpu",
           .kernels = "avx2",
           .threads = 2},
      .processor = {.avx2 = true, .avx512 = false},
      .usable_cores = 4,
      .results =
          {{.test = {BenchmarkKind::kPrefill, 512, 1, 0}, .seconds = {2, 1, 4}},
           {.test = {BenchmarkKind::kDecode, 100, 8, 2048},
            .seconds = {2, 1, 4},
            .profile =
                {.steps = 300,
                 .microseconds_per_step = 200,
                 .operations = {{"SheaveLinear", 30, 150}}}}},
      .peak_rss_bytes = 150'000'000,
      .peak_mlx_bytes = 30'000'000};
}

TEST(BenchJson, SaysWhatWasMeasuredOnWhat) {
  const auto json = bench_json(report());
  EXPECT_EQ(json.at("model"), "smollm2");
  EXPECT_EQ(json.at("file"), "folder/model.gguf");
  EXPECT_EQ(json.at("target"), "avx2");
  EXPECT_EQ(json.at("threads"), 2);
  EXPECT_EQ(json.at("mlx_version"), "0.32.4");
  EXPECT_EQ(json.at("memory").at("peak_rss_bytes"), 150'000'000);
  EXPECT_EQ(json.at("memory").at("peak_mlx_bytes"), 30'000'000);
  ASSERT_EQ(json.at("results").size(), 2U);
}

TEST(BenchJson, HasTheRatesOfEachTest) {
  const auto results = bench_json(report()).at("results");
  const auto& prefill = results.at(0);
  EXPECT_EQ(prefill.at("test"), "prefill");
  EXPECT_EQ(prefill.at("tokens"), 512);
  EXPECT_DOUBLE_EQ(prefill.at("tokens_per_second"), 256);
  EXPECT_DOUBLE_EQ(prefill.at("tokens_per_second_min"), 128);
  EXPECT_DOUBLE_EQ(prefill.at("tokens_per_second_max"), 512);
  EXPECT_EQ(prefill.at("reps"), 3);
  EXPECT_FALSE(prefill.contains("milliseconds_per_step"));
  EXPECT_FALSE(prefill.contains("profile"));
  const auto& decode = results.at(1);
  EXPECT_EQ(decode.at("test"), "decode");
  EXPECT_EQ(decode.at("batch"), 8);
  EXPECT_EQ(decode.at("depth"), 2048);
  EXPECT_DOUBLE_EQ(decode.at("tokens_per_second"), 400);
  EXPECT_DOUBLE_EQ(decode.at("milliseconds_per_step"), 20);
}

TEST(BenchJson, SplitsAStepByOperation) {
  const auto profile = bench_json(report()).at("results").at(1).at("profile");
  EXPECT_EQ(profile.at("steps"), 300);
  const auto& linear = profile.at("operations").at(0);
  EXPECT_EQ(linear.at("name"), "SheaveLinear");
  EXPECT_DOUBLE_EQ(linear.at("calls_per_step"), 30);
  EXPECT_DOUBLE_EQ(linear.at("share"), 0.75);
  const auto& outside = profile.at("outside_kernels");
  EXPECT_DOUBLE_EQ(outside.at("microseconds_per_step"), 50);
  EXPECT_DOUBLE_EQ(outside.at("share"), 0.25);
}

/// The lines that begin with `word`.
std::vector<std::string> lines(const std::string& text, const char* word) {
  std::istringstream stream(text);
  std::vector<std::string> found;
  for (std::string line; std::getline(stream, line);) {
    if (line.starts_with(word)) {
      found.push_back(line);
    }
  }
  return found;
}

TEST(BenchTable, IsAligned) {
  const std::string table = bench_table(report());
  const auto header = lines(table, "test ");
  const auto decode = lines(table, "decode ");
  ASSERT_EQ(header.size(), 1U);
  ASSERT_EQ(decode.size(), 2U); // the second heads the profile
  EXPECT_EQ(decode[0].size(), header[0].size());
  EXPECT_EQ(lines(table, "prefill ").size(), 1U);
}

TEST(BenchTable, SaysWhatItRanOn) {
  EXPECT_EQ(
      lines(bench_table(report()), "sheave 1.2.3"),
      std::vector<std::string>{
          "sheave 1.2.3, kernels avx2, 2 threads, MLX 0.32.4, processor: "
          "AVX2, 4 usable cores"});
}

TEST(BenchTable, EndsAProfileWithTheRest) {
  EXPECT_TRUE(bench_table(report()).ends_with(
      "outside kernels                         50.0   25.0 %\n"));
}

} // namespace
} // namespace sheave
