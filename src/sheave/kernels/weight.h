// Weight: a matrix [out_features, in_features] as its file stores it, float or
// quantized. Not an operation and not an owner of files: the arrays inside may
// lie over a memory-mapped checkpoint.
#pragma once

#include <mlx/array.h>

#include <optional>

#include "sheave/kernels/weight_format.h"

namespace sheave::kernels {

namespace mx = mlx::core;

/// A stored matrix.
/// data: float formats [out_features, in_features] of that dtype; kAffine
/// [out_features, in_features * bits / 32] uint32; kQ* [out_features,
/// row_bytes] uint8, the rows' blocks one after another.
/// scales, biases: only kAffine, [out_features, in_features / group_size],
/// one of float32, float16, bfloat16.
struct Weight {
  WeightFormat format = WeightFormat::kF32;
  int out_features = 0;
  int in_features = 0;
  mx::array data;
  std::optional<mx::array> scales;
  std::optional<mx::array> biases;
  int bits = 0;
  int group_size = 0;
};

} // namespace sheave::kernels
