// Weights of every format with random content, for tests.
#pragma once

#include <mlx/ops.h>

#include <cstdint>
#include <optional>
#include <random>
#include <vector>

#include "sheave/kernels/kernel_test_support.h"
#include "sheave/kernels/weight.h"

namespace sheave::kernels::testing {

/// A weight of any format with random content: float formats from normal
/// deviates, block formats from random bytes with tame scales.
inline Weight random_weight(WeightFormat format, int rows, int columns) {
  const unsigned seed = static_cast<unsigned>(format) * 1000 + rows + columns;
  mx::array data = random_array({rows, columns}, seed);
  const BlockLayout layout = block_layout(format);
  if (format == WeightFormat::kF16 || format == WeightFormat::kBF16) {
    data = mx::astype(
        data,
        format == WeightFormat::kF16 ? mx::float16 : mx::bfloat16);
  } else if (layout.elements > 1) {
    std::mt19937 random(seed);
    const int bytes = columns / layout.elements * layout.bytes;
    std::vector<uint8_t> content(static_cast<size_t>(rows) * bytes);
    for (uint8_t& byte : content) {
      byte = static_cast<uint8_t>(random());
    }
    // Halves at the places where formats keep scales: about 0.01.
    for (size_t at = 0; at < content.size(); at += layout.bytes) {
      const bool last = format == WeightFormat::kQ6_K;
      const size_t place = at + (last ? layout.bytes - 2 : 0);
      content[place + 1] = 0x21;
      if (!last) {
        content[place + 3] = 0x21;
      }
    }
    data = mx::array(content.begin(), {rows, bytes}, mx::uint8);
  }
  return {
      .format = format,
      .out_features = rows,
      .in_features = columns,
      .data = data,
      .scales = std::nullopt,
      .biases = std::nullopt};
}

inline Weight affine_weight(
    int rows,
    int columns,
    int bits,
    int group_size,
    mx::Dtype dtype) {
  const auto parts =
      mx::quantize(random_array({rows, columns}, 7), group_size, bits);
  return {
      .format = WeightFormat::kAffine,
      .out_features = rows,
      .in_features = columns,
      .data = parts[0],
      .scales = mx::astype(parts[1], dtype),
      .biases = mx::astype(parts[2], dtype),
      .bits = bits,
      .group_size = group_size};
}

constexpr WeightFormat kBlockFormats[] = {
    WeightFormat::kQ4_0,
    WeightFormat::kQ4_1,
    WeightFormat::kQ5_0,
    WeightFormat::kQ5_1,
    WeightFormat::kQ8_0,
    WeightFormat::kQ4_K,
    WeightFormat::kQ5_K,
    WeightFormat::kQ6_K};

} // namespace sheave::kernels::testing
