#include "sheave/kernels/logits/logits.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "sheave/kernels/kernel_test_support.h"

namespace sheave::kernels {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

class Logits : public testing::EachTarget {};

/// Random logits with ties, NaN and minus infinity among them.
std::vector<float> some_logits(size_t n, unsigned seed) {
  std::vector<float> x = testing::random_floats(n, seed);
  for (size_t i = 0; i < n; ++i) {
    x[i] = std::round(x[i] * 40) / 8;
    if (i % 17 == 3) {
      x[i] = kNan;
    } else if (i % 23 == 5) {
      x[i] = -kInfinity;
    }
  }
  return x;
}

/// The slow obvious way.
std::vector<TokenLogit> sorted_logits(const std::vector<float>& logits) {
  std::vector<TokenLogit> all;
  for (size_t i = 0; i < logits.size(); ++i) {
    if (logits[i] > -kInfinity) {
      all.push_back({static_cast<int32_t>(i), logits[i]});
    }
  }
  std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) {
    return a.logit > b.logit;
  });
  return all;
}

TEST_P(Logits, FindsTheBestAndTheKBest) {
  for (const size_t n : {1, 2, 7, 15, 16, 17, 33, 1000, 49153}) {
    const auto logits = some_logits(n, static_cast<unsigned>(n));
    const auto expected = sorted_logits(logits);
    ASSERT_FALSE(expected.empty());
    EXPECT_EQ(argmax_logit(logits), expected[0].id) << n;
    for (const int k : {0, 1, 2, 40, 300, 100000}) {
      auto best = expected;
      best.resize(std::min(best.size(), static_cast<size_t>(k)));
      EXPECT_EQ(top_k_logits(logits, k), best) << k << " of " << n;
    }
  }
}

TEST_P(Logits, SumsProbabilities) {
  for (const size_t n : {1, 15, 16, 17, 1000, 262144}) {
    const auto logits = some_logits(n, 5);
    const float best = sorted_logits(logits)[0].logit;
    std::vector<float> probabilities(n);
    relative_probabilities(logits, 0.7F, probabilities);
    double sum = 0;
    for (size_t i = 0; i < n; ++i) {
      const double x = logits[i];
      sum += std::isnan(x) ? 0 : std::exp(x - best);
      const double expected = std::isnan(x) ? 0 : std::exp((x - best) / 0.7);
      ASSERT_NEAR(probabilities[i], expected, 1e-5) << i << " of " << n;
    }
    EXPECT_NEAR(log_sum_exp(logits), best + std::log(sum), 1e-5) << n;
  }
}

TEST_P(Logits, GivesNothingForNothing) {
  for (const float value : {kNan, -kInfinity}) {
    const std::vector<float> logits(20, value);
    EXPECT_EQ(argmax_logit(logits), 0);
    EXPECT_TRUE(top_k_logits(logits, 3).empty());
    EXPECT_EQ(log_sum_exp(logits), -kInfinity);
    std::vector<float> probabilities(20, 1.0F);
    relative_probabilities(logits, 1.0F, probabilities);
    EXPECT_EQ(probabilities, std::vector<float>(20, 0.0F));
  }
}

TEST_P(Logits, TakesInfinityAsTheBest) {
  std::vector<float> logits(40, 1.0F);
  logits[33] = kInfinity;
  EXPECT_EQ(argmax_logit(logits), 33);
  EXPECT_EQ(top_k_logits(logits, 2)[0].id, 33);
  EXPECT_EQ(top_k_logits(logits, 2)[1].id, 0);
}

SHEAVE_TEST_EACH_TARGET(Logits);

} // namespace
} // namespace sheave::kernels
