#include "sheave/weights/finite.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

namespace sheave {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::span<const uint8_t> bytes_of(const std::vector<float>& values) {
  return {
      reinterpret_cast<const uint8_t*>(values.data()),
      values.size() * sizeof(float)};
}

// Sizes around the chunk of 1024 that is looked through at once.
TEST(FirstNonFinite, FindsTheFirstAmongFloatsAtEveryPlace) {
  for (const size_t count : {1, 2, 1023, 1024, 1025, 2048, 3000}) {
    std::vector<float> values(count, std::numeric_limits<float>::max());
    EXPECT_EQ(first_non_finite("F32", bytes_of(values)), std::nullopt);
    for (const size_t at : {size_t{0}, count / 2, count - 1}) {
      auto spoiled = values;
      spoiled[count - 1] = kNan;
      spoiled[at] = -kInfinity;
      EXPECT_EQ(first_non_finite("F32", bytes_of(spoiled)), at)
          << at << " of " << count;
    }
  }
}

TEST(FirstNonFinite, KnowsTheHalfTypesApart) {
  const std::vector<uint8_t> half_infinity = {0, 0x7C}; // 0.1e-36 as BF16
  const std::vector<uint8_t> bfloat_nan = {0xC0, 0xFF};
  const std::vector<uint8_t> largest_bfloat = {0x7F, 0x7F};
  EXPECT_EQ(first_non_finite("F16", half_infinity), 0U);
  EXPECT_EQ(first_non_finite("BF16", half_infinity), std::nullopt);
  EXPECT_EQ(first_non_finite("BF16", bfloat_nan), 0U);
  EXPECT_EQ(first_non_finite("BF16", largest_bfloat), std::nullopt);
}

struct BlockCase {
  const char* type;
  size_t bytes;
  std::vector<size_t> scales;
};

TEST(FirstNonFinite, LooksAtTheScalesOfBlocksOnly) {
  const std::vector<BlockCase> cases = {
      {"Q4_0", 18, {0}},
      {"Q4_1", 20, {0, 2}},
      {"Q5_0", 22, {0}},
      {"Q5_1", 24, {0, 2}},
      {"Q8_0", 34, {0}},
      {"Q4_K", 144, {0, 2}},
      {"Q5_K", 176, {0, 2}},
      {"Q6_K", 210, {208}}};
  for (const BlockCase& c : cases) {
    std::vector<uint8_t> bytes(3 * c.bytes, 0xFF); // quants may be any bits
    for (size_t block = 0; block < 3; ++block) {
      for (const size_t scale : c.scales) {
        bytes[block * c.bytes + scale + 1] = 0x3C;
      }
    }
    EXPECT_EQ(first_non_finite(c.type, bytes), std::nullopt) << c.type;
    for (const size_t scale : c.scales) {
      auto spoiled = bytes;
      spoiled[2 * c.bytes + scale + 1] = 0x7E;
      EXPECT_EQ(first_non_finite(c.type, spoiled), 2U) << c.type;
    }
  }
}

TEST(FirstNonFinite, FindsNothingInOtherTypes) {
  const std::vector<uint8_t> bytes(64, 0xFF);
  EXPECT_EQ(first_non_finite("U32", bytes), std::nullopt);
  EXPECT_EQ(first_non_finite("F32", {}), std::nullopt);
}

} // namespace
} // namespace sheave
