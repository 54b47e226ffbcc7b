// RMSNorm as a layer.
#pragma once

#include <mlx/array.h>

#include <optional>

#include "sheave/kernels/quantized_linear/quantized_linear.h"

namespace sheave {

namespace mx = mlx::core;

/// y = x / sqrt(mean(x^2) + eps) * weight over the last axis.
class RMSNorm {
 public:
  /// weight: [D] float32, whatever offset the checkpoint stores already added.
  RMSNorm(mx::array weight, float eps);

  /// x: [..., D] float32. Returns the same shape.
  mx::array operator()(const mx::array& x) const;

  /// As a fused operation takes it.
  const kernels::NormWeight& weight() const {
    return weight_;
  }

 private:
  kernels::NormWeight weight_;
};

/// An optional norm's weight for a fused operation.
inline std::optional<kernels::NormWeight> weight_of(
    const std::optional<RMSNorm>& norm) {
  return norm ? std::optional(norm->weight()) : std::nullopt;
}

} // namespace sheave
