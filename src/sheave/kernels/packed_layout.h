// PackedLayout: what the bytes of a packed weight's panels mean. No MLX: raw
// kernels and the packing code read it alike.
#pragma once

#include <cstddef>

namespace sheave::kernels {

/// How a panel stores its scales: as floats, or as K-quants do, an 8-bit
/// integer per group and a half-precision factor per 256 columns.
enum class PackedScales { kF32, kF16, kBF16, kSuper };

/// What the bytes of a panel mean. w = scale * (q - zero) + bias, bias only
/// where has_bias. 32 columns of a panel take 64 * bits bytes: the planes of
/// 4, 2 and 1 bits that `bits` is the sum of, or whole bytes for 8. Register r
/// of such a group holds the columns 4 r .. 4 r + 3 of all 16 rows; a plane's
/// 64 bytes at i hold the registers i * (8 / width) and on, from the low bits
/// up. The scales of all groups come first, 16 rows side by side.
struct PackedLayout {
  int bits;        // 2, 3, 4, 5, 6 or 8
  int zero;        // subtracted from every quant
  int scale_group; // columns per scale: 16, 32, 64 or 128
  bool has_bias;
  PackedScales scales;
  int in_features;

  /// Bytes of a panel's scales, and of a whole panel; multiples of 64.
  size_t scale_bytes() const;
  size_t panel_bytes() const;
  /// Columns that share a scale within a group of 32: 16 or 32.
  int sum_columns() const {
    return scale_group < 32 ? scale_group : 32;
  }
};

/// Rows per panel.
constexpr int kPanelRows = 16;

/// Panels that hold this many rows, the last of them perhaps not full.
constexpr int panels_of(int out_features) {
  return (out_features + kPanelRows - 1) / kPanelRows;
}

} // namespace sheave::kernels
