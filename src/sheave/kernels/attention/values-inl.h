// Weighted sums of values.

/// Vectors of the head dim at a time, as far as the registers hold P * kColumns
/// sums.
constexpr int kValueColumns = kLanes == 16 ? 4 : 2;

/// sums[p, i] = sums[p, i] * factors[p] + sum_j weights[p, j] values[j, i] for
/// P pairs and C vectors from i = d on, j ascending within `keys`. values: rows
/// from key `origin` on.
template <int P, int C, typename Rows>
SHEAVE_KERNEL_INLINE void add_value_columns(
    const float* weights,
    const Rows& values,
    int origin,
    int d,
    const KeyRange& keys,
    const float* factors,
    float* sums) {
  const size_t width = values.width;
  sums += d;
  VF acc[P][C];
  for (int p = 0; p < P; ++p) {
    for (int c = 0; c < C; ++c) {
      acc[p][c] = load(sums + p * width + c * kLanes) * splat(factors[p]);
    }
  }
  for (int j = keys.begin; j < keys.end; ++j) {
    VF value[C];
    for (int c = 0; c < C; ++c) {
      value[c] = values.at(j - origin, d + c * kLanes);
    }
    for (int p = 0; p < P; ++p) {
      const VF weight = splat(weights[p * kAttentionBlock + j]);
      for (int c = 0; c < C; ++c) {
        acc[p][c] = fmadd(weight, value[c], acc[p][c]);
      }
    }
  }
  for (int p = 0; p < P; ++p) {
    for (int c = 0; c < C; ++c) {
      store(sums + p * width + c * kLanes, acc[p][c]);
    }
  }
}

/// The same for the whole head dim.
template <int P, typename Rows>
SHEAVE_KERNEL_INLINE void add_values(
    const float* weights,
    const Rows& values,
    int origin,
    const KeyRange& keys,
    const float* factors,
    float* sums) {
  const int width = static_cast<int>(values.width);
  constexpr int C = kValueColumns;
  int d = 0;
  for (; d + C * kLanes <= width; d += C * kLanes) {
    add_value_columns<P, C>(weights, values, origin, d, keys, factors, sums);
  }
  for (; d < width; d += kLanes) {
    add_value_columns<P, 1>(weights, values, origin, d, keys, factors, sums);
  }
}
