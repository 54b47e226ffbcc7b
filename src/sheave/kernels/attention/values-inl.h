// Weighted sums of values.

/// Vectors of the head dim at a time, as far as the registers hold P * kColumns
/// sums.
constexpr int kValueColumns = kLanes == 16 ? 4 : 2;

/// sums[p, d..] = sums[p, d..] * factors[p] + sum_j weights[p, j] values[j,
/// d..] for P pairs and C vectors, j ascending within `keys`. values: [..,
/// width] from key keys.begin on.
template <int P, int C>
SHEAVE_KERNEL_INLINE void add_value_columns(
    const float* weights,
    const float* values,
    const KeyRange& keys,
    const float* factors,
    size_t width,
    float* sums) {
  VF acc[P][C];
  for (int p = 0; p < P; ++p) {
    for (int c = 0; c < C; ++c) {
      acc[p][c] = load(sums + p * width + c * kLanes) * splat(factors[p]);
    }
  }
  for (int j = keys.begin; j < keys.end; ++j) {
    VF value[C];
    for (int c = 0; c < C; ++c) {
      value[c] = load(values + c * kLanes);
    }
    for (int p = 0; p < P; ++p) {
      const VF weight = splat(weights[p * kAttentionBlock + j]);
      for (int c = 0; c < C; ++c) {
        acc[p][c] = fmadd(weight, value[c], acc[p][c]);
      }
    }
    values += width;
  }
  for (int p = 0; p < P; ++p) {
    for (int c = 0; c < C; ++c) {
      store(sums + p * width + c * kLanes, acc[p][c]);
    }
  }
}

/// The same for the whole head dim.
template <int P>
SHEAVE_KERNEL_INLINE void add_values(
    const float* weights,
    const float* values,
    const KeyRange& keys,
    const float* factors,
    int width,
    float* sums) {
  const auto stride = static_cast<size_t>(width);
  constexpr int kStep = kValueColumns * kLanes;
  int d = 0;
  for (; d + kStep <= width; d += kStep) {
    add_value_columns<P, kValueColumns>(
        weights,
        values + d,
        keys,
        factors,
        stride,
        sums + d);
  }
  for (; d < width; d += kLanes) {
    add_value_columns<P, 1>(
        weights,
        values + d,
        keys,
        factors,
        stride,
        sums + d);
  }
}
