// What the kernels' tests share: seeded random arrays, comparison, and running
// a body under every target that this machine has.
#pragma once

#include <gtest/gtest.h>
#include <mlx/array.h>
#include <mlx/ops.h>
#include <mlx/transforms.h>

#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "sheave/kernels/runtime.h"

namespace sheave::kernels::testing {

namespace mx = mlx::core;

/// Normal deviates from a seed.
inline std::vector<float> random_floats(size_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> result(n);
  for (float& x : result) {
    x = normal(random);
  }
  return result;
}

inline mx::array random_array(const mx::Shape& shape, unsigned seed) {
  size_t size = 1;
  for (const int n : shape) {
    size *= static_cast<size_t>(n);
  }
  const auto data = random_floats(size, seed);
  return mx::array(data.begin(), shape);
}

/// The elements as float32, row by row.
inline std::vector<float> values(const mx::array& x) {
  mx::array result = mx::contiguous(mx::astype(x, mx::float32));
  result.eval();
  return {result.data<float>(), result.data<float>() + result.size()};
}

/// Largest |a - b| / (1 + |b|); infinity where only one of them is finite.
inline float worst_error(const mx::array& a, const mx::array& b) {
  EXPECT_EQ(a.shape(), b.shape());
  const auto x = values(a);
  const auto y = values(b);
  float worst = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const float error = std::abs(x[i] - y[i]) / (1 + std::abs(y[i]));
    worst = std::isnan(error) ? INFINITY : std::max(worst, error);
  }
  return worst;
}

/// Whether both hold the same bytes.
inline bool same_bits(const mx::array& a, const mx::array& b) {
  const auto x = values(a);
  const auto y = values(b);
  return x.size() == y.size() &&
         std::memcmp(x.data(), y.data(), x.size() * sizeof(float)) == 0;
}

/// Runs every test once under each target but the reference.
class EachTarget : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    configure({.threads = 2, .target = GetParam()});
  }
  void TearDown() override {
    configure({});
  }
};

inline std::vector<std::string> own_targets() {
  std::vector<std::string> targets = available_targets();
  targets.pop_back(); // "reference"
  return targets;
}

/// What `compute` returns with the reference path in use.
template <typename Compute>
mx::array by_reference(const std::string& target, const Compute& compute) {
  configure({.threads = 2, .target = "reference"});
  mx::array result = compute();
  result.eval();
  configure({.threads = 2, .target = target});
  return result;
}

} // namespace sheave::kernels::testing

#define SHEAVE_TEST_EACH_TARGET(Suite)                          \
  INSTANTIATE_TEST_SUITE_P(                                     \
      Targets,                                                  \
      Suite,                                                    \
      ::testing::ValuesIn(testing::own_targets()),              \
      [](const ::testing::TestParamInfo<std::string>& target) { \
        return target.param;                                    \
      })
