#include "sheave/kernels/profile.h"

#include <gtest/gtest.h>
#include <mlx/ops.h>
#include <mlx/random.h>

#include <thread>

#include "sheave/kernels/rms_norm/rms_norm.h"
#include "sheave/kernels/runtime.h"

namespace sheave::kernels {
namespace {

namespace mx = mlx::core;

void time_once(const char* name) {
  const KernelTimer timer(name);
}

TEST(Profile, IsEmptyWhileOff) {
  take_profile();
  time_once("a");
  EXPECT_TRUE(take_profile().empty());
}

TEST(Profile, CountsByNameAndForgetsOnceTaken) {
  enable_profile(true);
  time_once("a");
  time_once("b");
  time_once("a");
  enable_profile(false);
  const auto profile = take_profile();
  ASSERT_EQ(profile.size(), 2U);
  EXPECT_EQ(profile[0].name, "a");
  EXPECT_EQ(profile[0].calls, 2);
  EXPECT_GE(profile[0].nanoseconds, 0);
  EXPECT_EQ(profile[1].calls, 1);
  EXPECT_TRUE(take_profile().empty());
}

TEST(Profile, AddsUpOverThreads) {
  enable_profile(true);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([] {
      for (int call = 0; call < 1000; ++call) {
        time_once("a");
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  enable_profile(false);
  const auto profile = take_profile();
  ASSERT_EQ(profile.size(), 1U);
  EXPECT_EQ(profile[0].calls, 4000);
}

TEST(Profile, SeesPrimitivesByTheirNames) {
  if (use_reference()) {
    GTEST_SKIP() << "the reference has no primitives of ours";
  }
  enable_profile(true);
  mx::array y = rms_norm(mx::random::normal({3, 64}), mx::ones({64}), 1e-6F);
  y.eval();
  enable_profile(false);
  const auto profile = take_profile();
  ASSERT_EQ(profile.size(), 1U);
  EXPECT_EQ(profile[0].name, "SheaveRmsNorm");
  EXPECT_EQ(profile[0].calls, 1);
  EXPECT_GT(profile[0].nanoseconds, 0);
}

} // namespace
} // namespace sheave::kernels
