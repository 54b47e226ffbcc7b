#include "sheave/models/rope_frequencies.h"

#include <gtest/gtest.h>

#include <cmath>

namespace sheave {
namespace {

TEST(RopeFrequencies, AreTheUsualPowersByDefault) {
  const RopeFrequencies got = rope_frequencies({.theta = 10000}, 8);
  ASSERT_EQ(got.inv_freq.size(), 4U);
  EXPECT_FLOAT_EQ(got.inv_freq[0], 1.0F);
  EXPECT_FLOAT_EQ(got.inv_freq[1], 0.1F);
  EXPECT_FLOAT_EQ(got.inv_freq[3], 0.001F);
  EXPECT_EQ(got.attention_factor, 1.0F);
  EXPECT_FALSE(got.traditional);
}

TEST(RopeFrequencies, RotateOnlyThePartialDims) {
  const RopeFrequencies got =
      rope_frequencies({.theta = 10000, .partial_rotary_factor = 0.5F}, 8);
  ASSERT_EQ(got.inv_freq.size(), 2U);
  EXPECT_FLOAT_EQ(got.inv_freq[1], 0.01F);
}

TEST(RopeFrequencies, LinearScalingStretchesAll) {
  const RopeFrequencies got = rope_frequencies(
      {.theta = 10000, .type = RopeType::kLinear, .factor = 4},
      8);
  EXPECT_FLOAT_EQ(got.inv_freq[0], 0.25F);
  EXPECT_FLOAT_EQ(got.inv_freq[3], 0.00025F);
}

TEST(RopeFrequencies, Llama3ScalingLeavesShortWavesAlone) {
  const RopeParameters parameters = {
      .theta = 500000,
      .type = RopeType::kLlama3,
      .factor = 8,
      .low_freq_factor = 1,
      .high_freq_factor = 4,
      .original_max_position_embeddings = 8192};
  const RopeFrequencies got = rope_frequencies(parameters, 128);
  EXPECT_FLOAT_EQ(got.inv_freq[0], 1.0F);
  EXPECT_FLOAT_EQ(
      got.inv_freq[63],
      static_cast<float>(std::pow(500000.0, -126.0 / 128) / 8));
}

TEST(RopeFrequencies, YarnRaisesTheAttentionFactor) {
  RopeParameters parameters = {
      .theta = 10000,
      .type = RopeType::kYarn,
      .factor = 4,
      .original_max_position_embeddings = 32};
  EXPECT_FLOAT_EQ(
      rope_frequencies(parameters, 32).attention_factor,
      static_cast<float>(0.1 * std::log(4.0) + 1));
  parameters.mscale = 2.0F;
  parameters.mscale_all_dim = 1.0F;
  EXPECT_FLOAT_EQ(
      rope_frequencies(parameters, 32).attention_factor,
      static_cast<float>(
          (0.2 * std::log(4.0) + 1) / (0.1 * std::log(4.0) + 1)));
  parameters.attention_factor = 1.5F;
  EXPECT_FLOAT_EQ(rope_frequencies(parameters, 32).attention_factor, 1.5F);
}

} // namespace
} // namespace sheave
