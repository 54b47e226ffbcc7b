// RMSNorm as a layer.
#pragma once

#include <mlx/array.h>

namespace sheave {

namespace mx = mlx::core;

/// y = x / sqrt(mean(x^2) + eps) * weight over the last axis.
class RMSNorm {
 public:
  /// weight: [D] float32, whatever offset the checkpoint stores already added.
  RMSNorm(mx::array weight, float eps);

  /// x: [..., D] float32. Returns the same shape.
  mx::array operator()(const mx::array& x) const;

 private:
  mx::array weight_;
  float eps_;
};

} // namespace sheave
