// RoPE: rotary position embedding with given frequencies. How a scaling kind
// makes the frequencies is the models' matter; here they are only applied.
#pragma once

#include <mlx/array.h>

#include <vector>

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

/// Rotates queries or keys by their positions.
class Rope {
 public:
  explicit Rope(const RopeFrequencies& frequencies);

  /// x: [T, H, D] float32; positions: [T] int32. Returns [T, H, D].
  mx::array operator()(const mx::array& x, const mx::array& positions) const;

 private:
  mx::array inv_freq_;
  float attention_factor_;
  bool traditional_;
};

} // namespace sheave
