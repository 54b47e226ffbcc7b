#include "sheave/kernels/rms_norm/rms_norm.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "sheave/kernels/activations/activations.h"
#include "sheave/kernels/kernel_test_support.h"

namespace sheave::kernels {
namespace {

using testing::random_array;
using testing::same_bits;
using testing::values;

class Elementwise : public testing::EachTarget {};

TEST_P(Elementwise, RmsNormDividesByTheRootMeanSquare) {
  for (const int dims : {1, 15, 16, 17, 33, 576}) {
    const mx::array x = random_array({5, dims}, 1);
    const mx::array weight = random_array({dims}, 2);
    const auto in = values(x);
    const auto w = values(weight);
    const auto got = values(rms_norm(x, weight, 1e-5F));
    for (int row = 0; row < 5; ++row) {
      double sum = 0;
      for (int i = 0; i < dims; ++i) {
        sum += std::pow(in[row * dims + i], 2);
      }
      const double inverse = 1 / std::sqrt(sum / dims + 1e-5);
      for (int i = 0; i < dims; ++i) {
        const double expected = in[row * dims + i] * inverse * w[i];
        EXPECT_NEAR(got[row * dims + i], expected, 1e-5);
      }
    }
  }
}

TEST_P(Elementwise, RmsNormGivesARowTheSameBitsInAnyBatch) {
  const mx::array x = random_array({20, 3, 65}, 1);
  const mx::array weight = random_array({65}, 2);
  const mx::array whole = rms_norm(x, weight, 1e-6F);
  for (int row = 0; row < 20; row += 7) {
    EXPECT_TRUE(same_bits(
        rms_norm(mx::slice(x, {row, 0, 0}, {row + 1, 3, 65}), weight, 1e-6F),
        mx::slice(whole, {row, 0, 0}, {row + 1, 3, 65})));
  }
}

TEST_P(Elementwise, GatesAreAsDefined) {
  std::vector<float> gate;
  for (float x = -30; x <= 30; x += 0.037F) {
    gate.push_back(x);
  }
  const int n = static_cast<int>(gate.size());
  const mx::array g(gate.begin(), {1, n});
  const mx::array up = random_array({1, n}, 3);
  const auto u = values(up);
  const auto silu = values(swiglu(g, up));
  const auto gelu = values(geglu_tanh(g, up));
  for (int i = 0; i < n; ++i) {
    const double x = gate[i];
    const double expected_silu = x / (1 + std::exp(-x)) * u[i];
    EXPECT_NEAR(silu[i], expected_silu, 1e-6 + 1e-6 * std::abs(expected_silu));
    const double inner = std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x);
    const double expected_gelu = 0.5 * x * (1 + std::tanh(inner)) * u[i];
    EXPECT_NEAR(gelu[i], expected_gelu, 1e-6 + 2e-6 * std::abs(expected_gelu));
  }
}

TEST_P(Elementwise, GatesAgreeWithTheReferenceAtEverySize) {
  for (int n = 0; n < 35; ++n) {
    const mx::array gate = random_array({1, n}, 1);
    const mx::array up = random_array({1, n}, 2);
    for (auto* op : {swiglu, geglu_tanh}) {
      const auto compute = [&] { return op(gate, up); };
      const mx::array expected = testing::by_reference(GetParam(), compute);
      EXPECT_LT(testing::worst_error(compute(), expected), 1e-5F);
    }
  }
}

TEST_P(Elementwise, GatesSaturateWithoutNan) {
  const std::vector<float> gate = {-1e30F, -200, -90, 90, 200, 1e30F};
  const mx::array g(gate.begin(), {1, 6});
  for (auto* op : {swiglu, geglu_tanh}) {
    const auto got = values(op(g, mx::ones({1, 6})));
    for (int i = 0; i < 3; ++i) {
      EXPECT_NEAR(got[i], 0, 1e-6);
      EXPECT_EQ(got[5 - i], gate[5 - i]);
    }
  }
}

SHEAVE_TEST_EACH_TARGET(Elementwise);

TEST(ElementwiseCheck, RefusesWhatDoesNotFit) {
  EXPECT_THROW(
      rms_norm(mx::zeros({2, 3}), mx::zeros({4}), 1e-6F),
      std::invalid_argument);
  EXPECT_THROW(
      swiglu(mx::zeros({2, 3}), mx::zeros({2, 4})),
      std::invalid_argument);
}

} // namespace
} // namespace sheave::kernels
