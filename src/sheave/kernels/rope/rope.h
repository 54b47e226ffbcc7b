// rope: rotary position embedding, a position for each packed token.
#pragma once

#include <mlx/array.h>

namespace sheave::kernels {

namespace mx = mlx::core;

/// The cosines and sines of a step's angles position * inv_freq (one float32
/// product), times attention_factor: made once, used by every layer with the
/// same frequencies. positions: [T] int32; inv_freq: [P] float32. Returns
/// [T, 2 * P] float32, cosines first. A token's bits depend on its own
/// position only.
/// Throws std::invalid_argument when shapes or dtypes don't fit.
mx::array rope_table(
    const mx::array& positions,
    const mx::array& inv_freq,
    float attention_factor);

/// Which dims make a pair: i and i + P, or (traditional) 2 i and 2 i + 1.
enum class RopePairs { kHalves, kTraditional };

/// Rotates the first 2 * P dims of every head by the token's angles; the other
/// dims are copied. x: [T, H, D], any float dtype; table: [T, 2 * P] from
/// rope_table(), 2 * P <= D. Returns [T, H, D] float32.
/// Throws std::invalid_argument when shapes don't fit.
/// Source: Su et al. 2021, section 3.4.
mx::array rope(const mx::array& x, const mx::array& table, RopePairs pairs);

} // namespace sheave::kernels
