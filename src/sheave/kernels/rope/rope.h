// rope: rotary position embedding, a position for each packed token.
#pragma once

#include <mlx/array.h>

namespace sheave::kernels {

namespace mx = mlx::core;

/// traditional: rotate the pairs (2i, 2i + 1) rather than (i, i + half).
/// attention_factor multiplies cosine and sine.
struct RopeOptions {
  bool traditional = false;
  float attention_factor = 1.0F;
};

/// Rotates the first 2 * P dims of every head, P = size of inv_freq, by the
/// angles position * inv_freq (one float32 product); the other dims are
/// copied. x: [T, H, D], any float dtype; positions: [T] int32; inv_freq: [P]
/// float32, 2 * P <= D. Returns [T, H, D] float32. A token's bits depend on
/// its own position only.
/// Throws std::invalid_argument when shapes or dtypes don't fit.
/// Source: Su et al. 2021, section 3.4.
mx::array rope(
    const mx::array& x,
    const mx::array& positions,
    const mx::array& inv_freq,
    const RopeOptions& options);

} // namespace sheave::kernels
