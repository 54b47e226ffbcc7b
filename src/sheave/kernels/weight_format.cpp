#include "sheave/kernels/weight_format.h"

#include <stdexcept>

namespace sheave::kernels {

const char* weight_format_name(WeightFormat format) {
  switch (format) {
    case WeightFormat::kF32:
      return "F32";
    case WeightFormat::kF16:
      return "F16";
    case WeightFormat::kBF16:
      return "BF16";
    case WeightFormat::kAffine:
      return "affine";
    case WeightFormat::kQ4_0:
      return "Q4_0";
    case WeightFormat::kQ4_1:
      return "Q4_1";
    case WeightFormat::kQ5_0:
      return "Q5_0";
    case WeightFormat::kQ5_1:
      return "Q5_1";
    case WeightFormat::kQ8_0:
      return "Q8_0";
    case WeightFormat::kQ4_K:
      return "Q4_K";
    case WeightFormat::kQ5_K:
      return "Q5_K";
    case WeightFormat::kQ6_K:
      return "Q6_K";
  }
  return "unknown";
}

BlockLayout block_layout(WeightFormat format) {
  switch (format) {
    case WeightFormat::kF32:
      return {1, 4};
    case WeightFormat::kF16:
    case WeightFormat::kBF16:
      return {1, 2};
    case WeightFormat::kQ4_0:
      return {32, 18};
    case WeightFormat::kQ4_1:
      return {32, 20};
    case WeightFormat::kQ5_0:
      return {32, 22};
    case WeightFormat::kQ5_1:
      return {32, 24};
    case WeightFormat::kQ8_0:
      return {32, 34};
    case WeightFormat::kQ4_K:
      return {256, 144};
    case WeightFormat::kQ5_K:
      return {256, 176};
    case WeightFormat::kQ6_K:
      return {256, 210};
    case WeightFormat::kAffine:
      break;
  }
  throw std::invalid_argument(
      "[block_layout] an affine weight's layout depends on bits and "
      "group_size");
}

} // namespace sheave::kernels
