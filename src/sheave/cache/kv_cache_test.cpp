#include "sheave/cache/kv_cache.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "sheave/cache/cache_test_support.h"

namespace sheave {
namespace {

using testing::append_and_check;
using testing::keys_at;
using testing::values_at;

constexpr PlanesShape kShape = {
    .num_key_value_heads = testing::kHeads,
    .head_dim = testing::kHeadDim,
    .dtype = mx::float32};

TEST(KVCache, ShowsEveryPositionThroughGrowth) {
  KVCache cache(kShape);
  for (const int count : {1, 7, 256, 1, 1, 300, 1}) {
    append_and_check(cache, count, 0);
  }
  EXPECT_EQ(cache.offset(0), 567);
  EXPECT_EQ(cache.nbytes(), cache.projected_bytes(567));
}

TEST(KVCache, ForgetsTheNewestTokens) {
  KVCache cache(kShape);
  append_and_check(cache, 10, 0);
  EXPECT_EQ(cache.trim(4), 4);
  EXPECT_EQ(cache.offset(0), 6);
  append_and_check(cache, 3, 0);
  EXPECT_EQ(cache.trim(100), 9);
  append_and_check(cache, 2, 0);
  EXPECT_THROW(cache.trim(-1), std::invalid_argument);
}

TEST(KVCache, RefusesWhatItDoesNotExpectAndStaysAsItWas) {
  KVCache cache(kShape);
  append_and_check(cache, 5, 0);
  EXPECT_THROW(
      cache.append(keys_at(0, 1), values_at(0, 1), StepLayout::single(0, 1)),
      std::invalid_argument);
  EXPECT_THROW(
      cache.append(keys_at(5, 2), values_at(5, 2), StepLayout::single(5, 1)),
      std::invalid_argument);
  EXPECT_THROW(
      cache.append(keys_at(5, 1), values_at(5, 1), StepLayout{}),
      std::invalid_argument);
  EXPECT_THROW(cache.offset(1), std::invalid_argument);
  EXPECT_EQ(cache.offset(0), 5);
  append_and_check(cache, 1, 0);
}

TEST(KVCache, RoundsToItsDtype) {
  PlanesShape shape = kShape;
  shape.dtype = mx::float16;
  KVCache cache(shape);
  append_and_check(cache, 9, 0); // small integers are exact in float16
  EXPECT_EQ(cache.signature(), "full plain float16");
  EXPECT_EQ(cache.nbytes(), cache.projected_bytes(1));
}

} // namespace
} // namespace sheave
