// A panel of 16 rows with M tokens in plain code: quants are unpacked to bytes
// and multiplied four rows at a time.

constexpr int kTileTokens = 4;

/// Adds a plane's bits, kWidth wide, to the quants at bit `low`.
SHEAVE_KERNEL_INLINE const uint8_t*
add_plane(const uint8_t* plane, int width, int low, uint8_t* quants) {
  const int per_byte = 8 / width;
  const int mask = (1 << width) - 1;
  for (int r = 0; r < 8; ++r) {
    const uint8_t* line = plane + r / per_byte * 64;
    const int right = r % per_byte * width;
    for (int i = 0; i < 64; ++i) {
      const int bits = (line[i] >> right & mask) << low;
      quants[64 * r + i] = static_cast<uint8_t>(quants[64 * r + i] | bits);
    }
  }
  return plane + 64 * width;
}

/// The eight registers of a group, 64 bytes each.
SHEAVE_KERNEL_INLINE void
unpack_group(const uint8_t* group, int bits, uint8_t* quants) {
  if (bits == 8) {
    __builtin_memcpy(quants, group, 512);
    return;
  }
  __builtin_memset(quants, 0, 512);
  int low = 0;
  for (int width = 4; width > 0; width /= 2) {
    if ((bits & width) != 0) {
      group = add_plane(group, width, low, quants);
      low += width;
    }
  }
}

/// sums[n] += the products of a register's four columns of row n with a
/// token's.
SHEAVE_KERNEL_INLINE void add_quads(
    const uint8_t* weights,
    const int8_t* quants,
    int32_t (&sums)[kPanelRows]) {
  for (int n = 0; n < kPanelRows; ++n) {
    for (int j = 0; j < 4; ++j) {
      sums[n] += weights[4 * n + j] * quants[j];
    }
  }
}

/// Adds the scaled products of `count` registers from `first` on, for token m
/// of a view.
SHEAVE_KERNEL_INLINE void add_products(
    const TileView& x,
    int m,
    const uint8_t* weights,
    int first,
    int count,
    VF (&sums)[kParts]) {
  int32_t integers[kPanelRows];
  for (int n = 0; n < kPanelRows; ++n) {
    integers[n] = x.starts[m];
  }
  for (int r = first; r < first + count; ++r) {
    add_quads(weights + 64 * r, x.quants + 32 * m + 4 * r, integers);
  }
  for (int part = 0; part < kParts; ++part) {
    VI lanes;
    __builtin_memcpy(&lanes, integers + part * kLanes, sizeof(lanes));
    const VF factor = load(x.scales + part * kLanes) * splat(x.x_scales[m]);
    sums[part] = fmadd(factor, __builtin_convertvector(lanes, VF), sums[part]);
    if (x.biases != nullptr) {
      const VF bias = load(x.biases + part * kLanes);
      sums[part] = fmadd(bias, splat(x.bias_sums[m]), sums[part]);
    }
  }
}

/// sums[m] = the panel's 16 rows times the M tokens of a view.
template <int kBits, int M>
SHEAVE_KERNEL_INLINE void multiply_panel(
    const PackedTask& task,
    const uint8_t* quants,
    TileView x,
    VF (&sums)[M][kParts]) {
  const int registers = task.layout.scale_group >= 32 ? 8 : 4;
  for (int column = 0; column < task.x.k; column += 32) {
    uint8_t weights[512];
    unpack_group(quants, kBits, weights);
    quants += 64 * kBits;
    for (int first = 0; first < 8; first += registers) {
      for (int m = 0; m < M; ++m) {
        add_products(x, m, weights, first, registers, sums[m]);
      }
      x.next_sum();
    }
    x.next_group();
  }
}

int packed_start_factor(const PackedLayout& layout) {
  return -layout.zero;
}
