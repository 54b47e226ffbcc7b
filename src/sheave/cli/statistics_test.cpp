#include "sheave/cli/statistics.h"

#include <gtest/gtest.h>

#include "sheave/cli/command_support.h"
#include "sheave/cli/progress_bar.h"

namespace sheave {
namespace {

constexpr GenerationStats kStats = {
    .prompt_tokens = 30,
    .cached_tokens = 10,
    .generated_tokens = 21,
    .prompt_seconds = 0.1,
    .generation_seconds = 0.4};

TEST(Statistics, SayWhatAnAnswerCost) {
  EXPECT_EQ(
      statistics_line(kStats, 201'000'000, std::nullopt),
      "prompt: 30 tokens (10 cached), 200.0 tokens/s; generated: 21 tokens, "
      "50.0 tokens/s; first token: 0.10 s; peak memory: 201 MB");
}

TEST(Statistics, NameTheSeedWhereThereIsOne) {
  EXPECT_TRUE(statistics_line(kStats, 0, 7).ends_with("; seed: 7"));
}

TEST(Statistics, AreTheSameInJson) {
  const auto json = statistics_json(kStats, 5);
  EXPECT_EQ(json.at("prompt_tokens"), 30);
  EXPECT_DOUBLE_EQ(json.at("prompt_tokens_per_second"), 200.0);
  EXPECT_EQ(json.at("peak_memory_bytes"), 5);
}

TEST(Statistics, HoldWhenNothingWasGenerated) {
  const auto line = statistics_line({}, 0, std::nullopt);
  EXPECT_NE(line.find("generated: 0 tokens, 0.0 tokens/s"), std::string::npos);
}

TEST(ProgressLine, FillsUp) {
  EXPECT_EQ(progress_line("x", 0), "x [" + std::string(30, ' ') + "] 0 %");
  EXPECT_EQ(progress_line("x", 2), "x [" + std::string(30, '#') + "] 100 %");
}

TEST(BytesText, PicksAUnit) {
  EXPECT_EQ(bytes_text(999), "999 B");
  EXPECT_EQ(bytes_text(98'300'000), "98.3 MB");
  EXPECT_EQ(bytes_text(2'500'000'000'000), "2.5 TB");
}

} // namespace
} // namespace sheave
