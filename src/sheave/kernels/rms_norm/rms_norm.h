// rms_norm: root-mean-square normalization.
#pragma once

#include <mlx/array.h>

namespace sheave::kernels {

namespace mx = mlx::core;

/// x / sqrt(mean(x^2) + eps) * weight over the last axis. x: [..., D], any
/// float dtype; weight: [D] float32. Returns x's shape, float32. A row's bits
/// don't depend on the others.
/// Throws std::invalid_argument unless weight is [D].
/// Source: Zhang & Sennrich 2019.
mx::array rms_norm(const mx::array& x, const mx::array& weight, float eps);

} // namespace sheave::kernels
