#include "sheave/kernels/packed_weight.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "sheave/kernels/linear/linear.h"
#include "sheave/kernels/weight_test_support.h"

namespace sheave::kernels {
namespace {

using testing::affine_weight;
using testing::random_weight;
using testing::same_bits;

TEST(PackedWeight, KeepsEveryValueOfBlockFormats) {
  SlabAllocator slabs;
  for (const WeightFormat format : testing::kBlockFormats) {
    for (const int rows : {1, 15, 16, 17, 40}) {
      const Weight weight = random_weight(format, rows, 512);
      EXPECT_TRUE(
          same_bits(dequantize(pack(weight, slabs)), dequantize(weight)))
          << weight_format_name(format) << " " << rows;
    }
  }
}

TEST(PackedWeight, KeepsEveryValueOfAffineWeights) {
  SlabAllocator slabs;
  for (const int bits : {2, 3, 4, 5, 6, 8}) {
    for (const int group : {32, 64, 128}) {
      for (const mx::Dtype dtype : {mx::float32, mx::float16, mx::bfloat16}) {
        const Weight weight = affine_weight(18, 256, bits, group, dtype);
        EXPECT_TRUE(
            same_bits(dequantize(pack(weight, slabs)), dequantize(weight)))
            << bits << " bits, groups of " << group;
      }
    }
  }
}

TEST(PackedWeight, TakesAsManyBytesAsTheFormat) {
  SlabAllocator slabs;
  for (const WeightFormat format : testing::kBlockFormats) {
    const Weight weight = random_weight(format, 64, 2048);
    const double stored = static_cast<double>(weight.data.nbytes());
    EXPECT_LT(pack(weight, slabs).data.nbytes(), stored * 1.04)
        << weight_format_name(format);
  }
}

TEST(PackedWeight, LiesOnWholeLinesAndOutlivesItsAllocator) {
  const Weight weight = random_weight(WeightFormat::kQ4_1, 20, 64);
  std::optional<PackedWeight> packed;
  {
    SlabAllocator slabs;
    pack(weight, slabs);
    packed = pack(weight, slabs);
  }
  EXPECT_EQ(reinterpret_cast<uintptr_t>(packed->data.data<uint8_t>()) % 64, 0U);
  EXPECT_TRUE(same_bits(dequantize(*packed), dequantize(weight)));
}

TEST(PackedWeight, RefusesWhatCannotBePacked) {
  SlabAllocator slabs;
  const Weight plain = random_weight(WeightFormat::kF16, 4, 64);
  EXPECT_FALSE(packable(plain));
  EXPECT_THROW(pack(plain, slabs), std::invalid_argument);
  Weight broken = random_weight(WeightFormat::kQ4_1, 4, 64);
  broken.in_features = 96;
  EXPECT_THROW(pack(broken, slabs), std::invalid_argument);
}

} // namespace
} // namespace sheave::kernels
