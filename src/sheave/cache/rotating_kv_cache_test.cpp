#include "sheave/cache/rotating_kv_cache.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <stdexcept>

#include "sheave/cache/cache_test_support.h"

namespace sheave {
namespace {

using testing::append_and_check;

constexpr PlanesShape kShape = {
    .num_key_value_heads = testing::kHeads,
    .head_dim = testing::kHeadDim,
    .dtype = mx::float32};

TEST(RotatingKVCache, KeepsTheLastWindowTokensAfterWrap) {
  RotatingKVCache cache(kShape, 4);
  for (int token = 0; token < 11; ++token) {
    append_and_check(cache, 1, 4);
  }
  EXPECT_TRUE(cache.state().rotated);
  EXPECT_EQ(cache.nbytes(), cache.projected_bytes(11));
}

TEST(RotatingKVCache, ShowsABlockAfterWrapTheWholeWindow) {
  RotatingKVCache cache(kShape, 4);
  for (const int count : {1, 1, 1, 1, 1, 3, 1, 9, 2, 1, 1}) {
    append_and_check(cache, count, 4);
  }
}

TEST(RotatingKVCache, HoldsForRandomSequencesOfBlocks) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    const int window = 1 + static_cast<int>(random() % 9);
    RotatingKVCache cache(kShape, window);
    int largest = 1;
    for (int step = 0; step < 12; ++step) {
      const bool single = random() % 2 == 0;
      const int count =
          single ? 1 : 1 + static_cast<int>(random() % (3 * window));
      largest = std::max(largest, count);
      append_and_check(cache, count, window);
      const int columns =
          static_cast<int>(cache.nbytes() / cache.projected_bytes(1));
      EXPECT_LE(columns, window + largest);
    }
  }
}

TEST(RotatingKVCache, CrossesItsGrowthSteps) {
  RotatingKVCache cache(kShape, 300);
  append_and_check(cache, 255, 300);
  for (int token = 0; token < 50; ++token) {
    append_and_check(cache, 1, 300);
  }
  append_and_check(cache, 20, 300);
  append_and_check(cache, 1, 300);
}

TEST(RotatingKVCache, TrimsUntilItWrapsAndRefusesAfter) {
  RotatingKVCache cache(kShape, 8);
  append_and_check(cache, 5, 8);
  EXPECT_TRUE(cache.trimmable());
  EXPECT_EQ(cache.trim(2), 2);
  append_and_check(cache, 2, 8);
  append_and_check(cache, 9, 8);
  EXPECT_FALSE(cache.trimmable());
  EXPECT_THROW(cache.trim(1), std::invalid_argument);
  append_and_check(cache, 1, 8);
}

TEST(RotatingKVCache, RefusesAWindowOfNothing) {
  EXPECT_THROW(RotatingKVCache(kShape, 0), std::invalid_argument);
}

TEST(RotatingKVCache, SaysWhatItIs) {
  EXPECT_EQ(
      RotatingKVCache(kShape, 512).signature(),
      "rotating window=512 plain float32");
}

} // namespace
} // namespace sheave
