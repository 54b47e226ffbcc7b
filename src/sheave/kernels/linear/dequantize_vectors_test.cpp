// dequantize() against values that the gguf package computed, bit for bit:
// tests/fixtures/quant/README.md.

#include "sheave/kernels/linear/linear.h"

#include <gtest/gtest.h>
#include <mlx/io.h>

#include <cstring>
#include <string>
#include <unordered_map>

#include "sheave/kernels/kernel_test_support.h"
#include "sheave/kernels/weight_test_support.h"

namespace sheave::kernels {
namespace {

class DequantizeVectors : public testing::EachTarget {};

using Vectors = std::unordered_map<std::string, mx::array>;

Vectors load_vectors() {
  return mx::load_safetensors(SHEAVE_SOURCE_DIR
                              "/tests/fixtures/quant/vectors.safetensors")
      .first;
}

/// The blocks of this format as a weight.
Weight weight_of(const Vectors& vectors, WeightFormat format) {
  const std::string name = weight_format_name(format);
  const mx::array& values = vectors.at(name + ".values");
  return {
      .format = format,
      .out_features = values.shape(0),
      .in_features = values.shape(1),
      .data = vectors.at(name + ".blocks"),
      .scales = std::nullopt,
      .biases = std::nullopt};
}

/// Whether every element is the vectors', also in the sign of a zero.
::testing::AssertionResult decodes_exactly(
    const Vectors& vectors,
    WeightFormat format) {
  const std::string name = weight_format_name(format);
  const auto expected = testing::values(vectors.at(name + ".values"));
  const auto found = testing::values(dequantize(weight_of(vectors, format)));
  if (found.size() != expected.size()) {
    return ::testing::AssertionFailure() << name << ": other size";
  }
  for (size_t i = 0; i < found.size(); ++i) {
    if (std::memcmp(&found[i], &expected[i], sizeof(float)) != 0) {
      return ::testing::AssertionFailure()
             << name << ": element " << i << " is " << found[i] << ", expected "
             << expected[i];
    }
  }
  return ::testing::AssertionSuccess();
}

TEST_P(DequantizeVectors, AreDecodedBitForBit) {
  const Vectors vectors = load_vectors();
  for (const WeightFormat format : testing::kBlockFormats) {
    EXPECT_TRUE(decodes_exactly(vectors, format));
  }
}

SHEAVE_TEST_EACH_TARGET(DequantizeVectors);

TEST(DequantizeVectorsReference, DecodesThemBitForBit) {
  configure({.threads = 2, .target = "reference"});
  const Vectors vectors = load_vectors();
  for (const WeightFormat format : testing::kBlockFormats) {
    EXPECT_TRUE(decodes_exactly(vectors, format));
  }
  configure({});
}

} // namespace
} // namespace sheave::kernels
