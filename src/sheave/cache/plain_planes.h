// PlainPlanes: the K and V of one layer for all rows, one array each,
// [B, Hkv, S, D]. It stores and moves columns; positions are the cache's
// matter.
#pragma once

#include <mlx/array.h>

#include <array>

#include "sheave/kernels/column_range.h"

namespace sheave {

namespace mx = mlx::core;

/// Shape and dtype of one layer's planes.
struct PlanesShape {
  int num_key_value_heads = 0;
  int head_dim = 0;
  mx::Dtype dtype = mx::float32;
};

/// The two arrays. All calls are lazy; they throw std::invalid_argument where
/// the shapes don't fit.
class PlainPlanes {
 public:
  /// Planes of `rows` rows without columns.
  PlainPlanes(const PlanesShape& shape, int rows);

  int columns() const {
    return keys_.shape(2);
  }
  size_t nbytes() const {
    return keys_.nbytes() + values_.nbytes();
  }
  const mx::array& keys() const {
    return keys_;
  }
  const mx::array& values() const {
    return values_;
  }

  /// Appends `columns` columns of zeros.
  void grow(int columns);

  /// Writes a block at `column`. keys, values: [B, Hkv, L, D], any float
  /// dtype; rounded to the planes' own. In place when nothing else holds the
  /// arrays at evaluation time; nothing but the block is moved then.
  void write(int column, const mx::array& keys, const mx::array& values);

  /// Appends a block after the last column; copies the planes.
  void concat(const mx::array& keys, const mx::array& values);

  /// Keeps the columns of the two ranges, in that order. Copies them, unless
  /// they are the whole planes already.
  void keep(const std::array<kernels::ColumnRange, 2>& ranges);

 private:
  mx::array keys_;
  mx::array values_;
};

} // namespace sheave
