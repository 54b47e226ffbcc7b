#include "sheave/kernels/linear/linear.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <stdexcept>

#include "sheave/kernels/embedding/embedding.h"
#include "sheave/kernels/kernel_test_support.h"
#include "sheave/kernels/weight_test_support.h"

namespace sheave::kernels {
namespace {

using testing::affine_weight;
using testing::kBlockFormats;
using testing::random_array;
using testing::random_weight;
using testing::same_bits;
using testing::worst_error;

class Linear : public testing::EachTarget {};

TEST_P(Linear, AgreesWithMatmulOverOddSizes) {
  for (const WeightFormat format :
       {WeightFormat::kF32, WeightFormat::kF16, WeightFormat::kBF16}) {
    for (const int k : {1, 15, 16, 17, 33, 100}) {
      for (const int n : {1, 3, 4, 5, 33}) {
        for (const int t : {1, 2, 7, 13}) {
          const Weight weight = random_weight(format, n, k);
          const mx::array x = random_array({t, k}, 3);
          const mx::array expected = mx::matmul(
              x,
              mx::transpose(mx::astype(weight.data, mx::float32)));
          EXPECT_LT(worst_error(linear(x, weight, {}), expected), 2e-5F)
              << weight_format_name(format) << " " << t << "x" << k << "x" << n;
        }
      }
    }
  }
}

TEST_P(Linear, AgreesWithItsDecodedWeightInEveryBlockFormat) {
  for (const WeightFormat format : kBlockFormats) {
    const Weight weight = random_weight(format, 37, 512);
    const mx::array x = random_array({5, 512}, 3);
    const mx::array expected = mx::matmul(x, mx::transpose(dequantize(weight)));
    EXPECT_LT(worst_error(linear(x, weight, {}), expected), 1e-4F)
        << weight_format_name(format);
  }
}

TEST_P(Linear, DecodesAffineWeightsAsMlxDoes) {
  for (const int bits : {2, 3, 4, 5, 6, 8}) {
    for (const int group : {32, 64, 128}) {
      const Weight weight = affine_weight(9, 256, bits, group, mx::float32);
      const mx::array expected = mx::dequantize(
          weight.data,
          *weight.scales,
          weight.biases,
          group,
          bits);
      EXPECT_TRUE(same_bits(dequantize(weight), expected))
          << bits << " bits, groups of " << group;
      const mx::array x = random_array({3, 256}, 4);
      const mx::array product = testing::by_reference(GetParam(), [&] {
        return linear(x, weight, {});
      });
      EXPECT_LT(worst_error(linear(x, weight, {}), product), 1e-4F);
    }
  }
}

TEST_P(Linear, TakesScalesInHalfPrecision) {
  for (const mx::Dtype dtype : {mx::float16, mx::bfloat16}) {
    const Weight weight = affine_weight(9, 256, 4, 64, dtype);
    const mx::array expected = mx::dequantize(
        weight.data,
        mx::astype(*weight.scales, mx::float32),
        mx::astype(*weight.biases, mx::float32),
        64,
        4);
    EXPECT_TRUE(same_bits(dequantize(weight), expected));
  }
}

TEST_P(Linear, AddsTheBias) {
  const Weight weight = random_weight(WeightFormat::kF32, 6, 20);
  const mx::array x = random_array({3, 20}, 1);
  const mx::array bias = random_array({6}, 2);
  EXPECT_TRUE(
      same_bits(linear(x, weight, bias), mx::add(linear(x, weight, {}), bias)));
}

TEST_P(Linear, TakesNoTokens) {
  const Weight weight = random_weight(WeightFormat::kF32, 6, 20);
  EXPECT_EQ(linear(mx::zeros({0, 20}), weight, {}).shape(), (mx::Shape{0, 6}));
  mx::array result = linear(mx::zeros({0, 20}), weight, {});
  result.eval();
}

TEST_P(Linear, GivesARowTheSameBitsInAnyBatchAndOnAnyThreads) {
  for (const WeightFormat format :
       {WeightFormat::kF16, WeightFormat::kQ4_1, WeightFormat::kQ6_K}) {
    const Weight weight = random_weight(format, 70, 256);
    const mx::array x = random_array({300, 256}, 5);
    const mx::array whole = linear(x, weight, {});
    for (const int threads : {1, 2, 3}) {
      configure({.threads = threads, .target = GetParam()});
      for (const int rows : {1, 2, 7, 8, 64, 299}) {
        for (const int first : {0, 1}) {
          const mx::array part = mx::slice(x, {first, 0}, {first + rows, 256});
          EXPECT_TRUE(same_bits(
              linear(part, weight, {}),
              mx::slice(whole, {first, 0}, {first + rows, 70})))
              << rows << " rows from " << first;
        }
      }
    }
  }
}

TEST_P(Linear, SurvivesNanAndInfinity) {
  const Weight weight = random_weight(WeightFormat::kQ4_1, 4, 32);
  std::vector<float> x(32, 1.0F);
  x[3] = std::numeric_limits<float>::quiet_NaN();
  x[4] = std::numeric_limits<float>::infinity();
  const auto got =
      testing::values(linear(mx::array(x.begin(), {1, 32}), weight, {}));
  EXPECT_TRUE(std::isnan(got[0]));
}

TEST_P(Linear, EmbeddingDecodesTheRowsAskedFor) {
  for (const WeightFormat format :
       {WeightFormat::kF32, WeightFormat::kQ8_0, WeightFormat::kQ4_K}) {
    const Weight table = random_weight(format, 40, 256);
    const mx::array ids({39, 0, 7, 7}, mx::int32);
    EXPECT_TRUE(
        same_bits(embedding(table, ids), mx::take(dequantize(table), ids, 0)));
  }
}

TEST_P(Linear, EmbeddingOfAForeignIdIsNan) {
  const Weight table = random_weight(WeightFormat::kF32, 4, 8);
  const auto got =
      testing::values(embedding(table, mx::array({-1, 4, 1}, mx::int32)));
  EXPECT_TRUE(std::isnan(got[0]));
  EXPECT_TRUE(std::isnan(got[8]));
  EXPECT_FALSE(std::isnan(got[16]));
}

SHEAVE_TEST_EACH_TARGET(Linear);

TEST(LinearTargets, WideTargetsGiveTheSameBits) {
  const auto targets = available_targets();
  const Weight weight = random_weight(WeightFormat::kQ4_1, 33, 576);
  const mx::array x = random_array({9, 576}, 5);
  std::vector<mx::array> results;
  for (const char* target : {"avx2", "avx512_vnni"}) {
    if (std::find(targets.begin(), targets.end(), target) != targets.end()) {
      configure({.threads = 2, .target = target});
      results.push_back(linear(x, weight, {}));
      results.back().eval();
    }
  }
  configure({});
  for (size_t i = 1; i < results.size(); ++i) {
    EXPECT_TRUE(same_bits(results[0], results[i]));
  }
}

TEST(LinearCheck, RefusesWhatDoesNotFit) {
  Weight weight = random_weight(WeightFormat::kQ4_1, 4, 64);
  EXPECT_THROW(linear(mx::zeros({2, 63}), weight, {}), std::invalid_argument);
  EXPECT_THROW(
      linear(mx::zeros({2, 64}), weight, mx::zeros({5})),
      std::invalid_argument);
  weight.in_features = 48;
  EXPECT_THROW(linear(mx::zeros({2, 48}), weight, {}), std::invalid_argument);
  Weight affine = affine_weight(4, 64, 4, 32, mx::float32);
  affine.bits = 7;
  EXPECT_THROW(dequantize(affine), std::invalid_argument);
  affine.bits = 4;
  affine.scales.reset();
  EXPECT_THROW(dequantize(affine), std::invalid_argument);
}

TEST(Runtime, NamesTheTargetsItHasWhenAskedForAnother) {
  try {
    configure({.target = "mmx"});
    FAIL();
  } catch (const std::invalid_argument& error) {
    EXPECT_NE(std::string(error.what()).find("mmx"), std::string::npos);
    EXPECT_NE(std::string(error.what()).find("reference"), std::string::npos);
  }
  EXPECT_THROW(configure({.threads = -1}), std::invalid_argument);
  EXPECT_THROW(configure({.threads = 100000}), std::invalid_argument);
}

} // namespace
} // namespace sheave::kernels
