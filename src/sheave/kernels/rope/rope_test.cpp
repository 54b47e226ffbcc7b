#include "sheave/kernels/rope/rope.h"

#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>

#include "sheave/kernels/kernel_test_support.h"

namespace sheave::kernels {
namespace {

using testing::random_array;

class RopeTest : public testing::EachTarget {};

TEST_P(RopeTest, RotatesPairsByTheirAngle) {
  const mx::array positions({0, 3, 1000, 31}, mx::int32);
  for (const int pairs : {1, 3, 16}) {
    const mx::array inv_freq = mx::abs(random_array({pairs}, 9));
    for (const bool traditional : {false, true}) {
      const mx::array x = random_array({4, 3, 33}, 1);
      const auto in = testing::values(x);
      const auto freq = testing::values(inv_freq);
      const auto got = testing::values(rope(
          x,
          rope_table(positions, inv_freq, 1.5F),
          traditional ? RopePairs::kTraditional : RopePairs::kHalves));
      const int positions_host[] = {0, 3, 1000, 31};
      for (int t = 0; t < 4; ++t) {
        for (int h = 0; h < 3; ++h) {
          const size_t base = static_cast<size_t>(t * 3 + h) * 33;
          for (int i = 0; i < pairs; ++i) {
            const size_t a = base + (traditional ? 2 * i : i);
            const size_t b = base + (traditional ? 2 * i + 1 : i + pairs);
            const double angle = static_cast<double>(
                static_cast<float>(positions_host[t]) * freq[i]);
            const double c = std::cos(angle) * 1.5;
            const double s = std::sin(angle) * 1.5;
            EXPECT_NEAR(got[a], in[a] * c - in[b] * s, 1e-5);
            EXPECT_NEAR(got[b], in[b] * c + in[a] * s, 1e-5);
          }
          for (int d = 2 * pairs; d < 33; ++d) {
            EXPECT_EQ(got[base + d], in[base + d]);
          }
        }
      }
    }
  }
}

TEST_P(RopeTest, AgreesWithTheReference) {
  const mx::array positions({5, 6, 7}, mx::int32);
  const mx::array inv_freq = mx::abs(random_array({8}, 9));
  for (const RopePairs pairs : {RopePairs::kHalves, RopePairs::kTraditional}) {
    const mx::array x = random_array({3, 2, 20}, 1);
    const auto compute = [&] {
      return rope(x, rope_table(positions, inv_freq, 1.0F), pairs);
    };
    const mx::array expected = testing::by_reference(GetParam(), compute);
    EXPECT_LT(testing::worst_error(compute(), expected), 1e-5F);
  }
}

SHEAVE_TEST_EACH_TARGET(RopeTest);

TEST(RopeCheck, RefusesWhatDoesNotFit) {
  const mx::array x = mx::zeros({2, 3, 8});
  const auto halves = RopePairs::kHalves;
  EXPECT_THROW(rope(x, mx::zeros({2, 10}), halves), std::invalid_argument);
  EXPECT_THROW(rope(x, mx::zeros({1, 8}), halves), std::invalid_argument);
  EXPECT_THROW(rope(x, mx::zeros({2, 7}), halves), std::invalid_argument);
  EXPECT_THROW(
      rope_table(mx::zeros({2}), mx::zeros({4}), 1.0F),
      std::invalid_argument);
}

} // namespace
} // namespace sheave::kernels
