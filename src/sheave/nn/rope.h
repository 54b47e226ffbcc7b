// RoPE: rotary position embedding with given frequencies. How a scaling kind
// makes the frequencies is the models' matter; here they are only applied.
#pragma once

#include <mlx/array.h>

#include <cstdint>
#include <vector>

#include "sheave/kernels/rope/rope.h"

namespace sheave {

namespace mx = mlx::core;

/// What a rotation needs. inv_freq: angle per position of each rotated pair,
/// rotated dims / 2 of them (fewer than head_dim / 2 rotate only the first
/// dims). attention_factor multiplies cos and sin. traditional: pairs are
/// (2i, 2i + 1) rather than (i, i + half).
struct RopeFrequencies {
  std::vector<float> inv_freq;
  float attention_factor = 1.0F;
  bool traditional = false;
};

/// The rotation of one kind of layer; copies share its frequencies.
class Rope {
 public:
  explicit Rope(const RopeFrequencies& frequencies);

  /// Cosines and sines at positions [T] int32: [T, 2 * P] float32.
  mx::array table(const mx::array& positions) const;

  /// x: [T, H, D] float32; table: from table(). Returns [T, H, D].
  mx::array operator()(const mx::array& x, const mx::array& table) const;

  kernels::RopePairs pairs() const {
    return pairs_;
  }
  /// The same for copies, whose tables are the same.
  std::uintptr_t key() const {
    return inv_freq_.id();
  }

 private:
  mx::array inv_freq_;
  float attention_factor_;
  kernels::RopePairs pairs_;
};

} // namespace sheave
