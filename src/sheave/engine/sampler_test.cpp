#include "sheave/engine/sampler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <vector>

namespace sheave {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

/// How often each token comes up in n draws.
std::map<int32_t, int>
draw(const SamplingParams& params, const std::vector<float>& logits, int n) {
  Sampler sampler(params);
  std::map<int32_t, int> counts;
  for (int i = 0; i < n; ++i) {
    ++counts[sampler.sample(logits)];
  }
  return counts;
}

/// Logits of given probabilities.
std::vector<float> logits_of(const std::vector<float>& probabilities) {
  std::vector<float> logits;
  for (const float p : probabilities) {
    logits.push_back(std::log(p));
  }
  return logits;
}

TEST(Sampler, IsGreedyAtTemperatureZero) {
  const auto counts =
      draw({.temperature = 0, .top_p = 0.1F, .top_k = 2}, {0, 5, 4.9F}, 50);
  EXPECT_EQ(counts, (std::map<int32_t, int>{{1, 50}}));
}

TEST(Sampler, DrawsTheSameTokensForTheSameSeed) {
  const std::vector<float> logits = logits_of({0.25F, 0.25F, 0.25F, 0.25F});
  Sampler a({.temperature = 1, .seed = 7});
  Sampler b({.temperature = 1, .seed = 7});
  Sampler other({.temperature = 1, .seed = 8});
  int differing = 0;
  for (int i = 0; i < 64; ++i) {
    const int32_t token = a.sample(logits);
    EXPECT_EQ(token, b.sample(logits));
    differing += token != other.sample(logits) ? 1 : 0;
  }
  EXPECT_GT(differing, 20);
}

TEST(Sampler, FollowsTheProbabilities) {
  const auto counts =
      draw({.temperature = 1, .seed = 3}, logits_of({0.7F, 0.2F, 0.1F}), 20000);
  EXPECT_NEAR(counts.at(0), 14000, 300);
  EXPECT_NEAR(counts.at(1), 4000, 300);
  EXPECT_NEAR(counts.at(2), 2000, 300);
}

TEST(Sampler, AppliesTemperatureBeforeTheLimits) {
  // At temperature 2 the probabilities 0.9 and 0.1 become 0.75 and 0.25.
  const auto counts =
      draw({.temperature = 2, .seed = 3}, logits_of({0.9F, 0.1F}), 20000);
  EXPECT_NEAR(counts.at(1), 5000, 300);
}

TEST(Sampler, KeepsTheTopKTokens) {
  const auto counts = draw(
      {.temperature = 1, .top_k = 2, .seed = 1},
      logits_of({0.1F, 0.4F, 0.3F, 0.2F}),
      5000);
  EXPECT_EQ(counts.size(), 2U);
  EXPECT_NEAR(counts.at(1), 5000 * 4 / 7, 200);
  EXPECT_NEAR(counts.at(2), 5000 * 3 / 7, 200);
}

TEST(Sampler, KeepsTheSmallestSetThatReachesTopP) {
  const auto logits = logits_of({0.1F, 0.4F, 0.3F, 0.2F});
  EXPECT_EQ(draw({.temperature = 1, .top_p = 0.39F}, logits, 500).size(), 1U);
  EXPECT_EQ(draw({.temperature = 1, .top_p = 0.41F}, logits, 500).size(), 2U);
  EXPECT_EQ(draw({.temperature = 1, .top_p = 0.71F}, logits, 500).size(), 3U);
  EXPECT_EQ(draw({.temperature = 1, .top_p = 1e-9F}, logits, 500).size(), 1U);
}

TEST(Sampler, TopPCountsWithinTheTopK) {
  // Of 0.4 and 0.3 alone the first holds 57 %.
  const auto logits = logits_of({0.1F, 0.4F, 0.3F, 0.2F});
  EXPECT_EQ(
      draw({.temperature = 1, .top_p = 0.56F, .top_k = 2}, logits, 500).size(),
      1U);
}

TEST(Sampler, DropsTokensBelowMinP) {
  const auto logits = logits_of({0.1F, 0.4F, 0.3F, 0.2F});
  EXPECT_EQ(draw({.temperature = 1, .min_p = 0.6F}, logits, 500).size(), 2U);
  EXPECT_EQ(draw({.temperature = 1, .min_p = 1.0F}, logits, 500).size(), 1U);
}

TEST(Sampler, SurvivesNanAndInfinity) {
  EXPECT_EQ(draw({.temperature = 1}, {kNan, 1, -kInf}, 50).size(), 1U);
  EXPECT_EQ(draw({.temperature = 1}, {kNan, kNan}, 5).begin()->first, 0);
  EXPECT_EQ(draw({.temperature = 1}, {0, kInf, 0}, 50).begin()->first, 1);
}

} // namespace
} // namespace sheave
