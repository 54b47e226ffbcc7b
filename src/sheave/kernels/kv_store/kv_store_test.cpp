#include "sheave/kernels/kv_store/kv_store.h"

#include <gtest/gtest.h>

#include <limits>
#include <stdexcept>

#include "sheave/kernels/kernel_test_support.h"

namespace sheave::kernels {
namespace {

using testing::random_array;
using testing::same_bits;

class StoreKV : public testing::EachTarget {};

KVPlanes zero_planes(int rows, int columns, mx::Dtype dtype) {
  KVPlanes planes = {
      .keys = mx::zeros({rows, 2, columns, 12}, dtype),
      .values = mx::zeros({rows, 2, columns, 12}, dtype)};
  mx::eval(planes.keys, planes.values);
  return planes;
}

/// Two rows in planes of their own and one in shared planes, one of them
/// written in two pieces.
const std::vector<KVWrite> kWrites = {
    {.planes = 0, .first_token = 0, .num_tokens = 3, .column = 5},
    {.planes = 0, .first_token = 3, .num_tokens = 2, .column = 0},
    {.planes = 1,
     .plane_row = 1,
     .first_token = 5,
     .num_tokens = 40,
     .column = 9}};

TEST_P(StoreKV, WritesWhatTheReferenceWrites) {
  for (const mx::Dtype dtype : {mx::float32, mx::float16, mx::bfloat16}) {
    const mx::array keys = random_array({45, 2, 12}, 1);
    const mx::array values = random_array({45, 2, 12}, 2);
    for (size_t i = 0; i < 4; ++i) {
      const auto compute = [&] {
        const auto stored = store_kv(
            {zero_planes(1, 8, dtype), zero_planes(2, 60, dtype)},
            keys,
            values,
            kWrites);
        return i % 2 == 0 ? stored[i / 2].keys : stored[i / 2].values;
      };
      EXPECT_TRUE(
          same_bits(compute(), testing::by_reference(GetParam(), compute)));
    }
  }
}

TEST_P(StoreKV, RoundsAsMlxDoes) {
  const float infinity = std::numeric_limits<float>::infinity();
  std::vector<float> x = testing::random_floats(24 * 40, 3);
  for (size_t i = 0; i < x.size(); ++i) {
    x[i] *= std::pow(2.0F, static_cast<float>(i % 48) - 30.0F);
  }
  const float special[] = {
      0.0F,
      -0.0F,
      infinity,
      -infinity,
      65504.0F,
      65519.9F,
      65520.0F,
      1e30F,
      6e-8F,
      2.98e-8F,
      2.99e-8F,
      1e-45F,
      5.96046448e-8F,
      3.3895e38F};
  std::copy(std::begin(special), std::end(special), x.begin());
  const mx::array packed(x.begin(), {40, 2, 12});
  for (const mx::Dtype dtype : {mx::float16, mx::bfloat16}) {
    const auto stored = store_kv(
        {zero_planes(1, 40, dtype)},
        packed,
        packed,
        {{.num_tokens = 40}});
    const mx::array expected =
        mx::astype(mx::expand_dims(mx::transpose(packed, {1, 0, 2}), 0), dtype);
    EXPECT_TRUE(same_bits(stored[0].keys, expected));
  }
}

TEST_P(StoreKV, WritesInPlaceWhenNothingElseHoldsThePlanes) {
  const mx::array tokens = random_array({1, 2, 12}, 1);
  KVPlanes planes = zero_planes(1, 8, mx::float16);
  const void* before = planes.keys.data<void>();
  std::vector<KVPlanes> list;
  list.push_back(std::move(planes));
  auto stored = store_kv(
      std::move(list),
      tokens,
      tokens,
      {{.num_tokens = 1, .column = 3}});
  mx::eval(stored[0].keys, stored[0].values);
  EXPECT_EQ(stored[0].keys.data<void>(), before);

  const mx::array held = stored[0].keys;
  const mx::array content = mx::array(held);
  const auto old = testing::values(held);
  auto again = store_kv(
      std::move(stored),
      tokens,
      tokens,
      {{.num_tokens = 1, .column = 4}});
  mx::eval(again[0].keys, again[0].values);
  EXPECT_NE(again[0].keys.data<void>(), before);
  EXPECT_EQ(testing::values(held), old);
}

SHEAVE_TEST_EACH_TARGET(StoreKV);

TEST(StoreKVCheck, RefusesWhatDoesNotFit) {
  const mx::array tokens = mx::zeros({3, 2, 12});
  const auto store = [&](const KVWrite& write) {
    return store_kv({zero_planes(1, 8, mx::float16)}, tokens, tokens, {write});
  };
  EXPECT_THROW(store({.num_tokens = 4}), std::invalid_argument);
  EXPECT_THROW(store({.num_tokens = 3, .column = 6}), std::invalid_argument);
  EXPECT_THROW(store({.planes = 1, .num_tokens = 1}), std::invalid_argument);
  EXPECT_THROW(store({.plane_row = 1, .num_tokens = 1}), std::invalid_argument);
  EXPECT_THROW(
      store_kv(
          {zero_planes(1, 8, mx::float16)},
          mx::zeros({3, 2, 8}),
          mx::zeros({3, 2, 8}),
          {}),
      std::invalid_argument);
}

} // namespace
} // namespace sheave::kernels
